#include "core/infer_dtypes.h"

#include <algorithm>

#include "core/attr_reader.h"

namespace interp {
namespace {

// That of the first input that has one.
DType OfFirstInput(const Op& op, absl::Span<const DType> inputs) {
  for (const DType dtype : inputs) {
    if (dtype != DType::kUndefined) return dtype;
  }
  if (!inputs.empty()) return DType::kUndefined;
  AttrReader reader(op);
  return reader.Type("dtype", DType::kFloat32);
}

}  // namespace

DType KernelDType(const OpDef& def, const Op& op, const void* attrs, DTypeContext::Inputs inputs,
                  DTypeContext::Outputs outputs) {
  if (def.kernel_dtype == nullptr) return OfFirstInput(op, inputs.dtypes);
  return def.kernel_dtype(DTypeContext(inputs, attrs, DType::kUndefined, outputs));
}

void InferDTypes(const OpDef& def, const void* attrs, DType kernel, DTypeContext::Inputs inputs,
                 DTypeContext::Outputs outputs) {
  if (kernel != DType::kUndefined) {
    std::fill(outputs.dtypes.begin(), outputs.dtypes.end(), kernel);
  }
  if (def.infer_dtype == nullptr) return;
  DTypeContext context(inputs, attrs, kernel, outputs);
  def.infer_dtype(context);
}

}  // namespace interp
