// fill: Out, of shape `shape`, has the elements `value`. (Paddle before 2.6: fluid/operators/
// fill_op.h; later ones know the op and have no kernel for it.)
#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/op_def.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kOut = 0;

struct Attrs {
  std::vector<float> values;
  Shape shape;
  DType dtype = DType::kFloat32;
};

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs;
  attrs.values = reader.Floats("value");
  attrs.dtype = reader.Type("dtype", DType::kFloat32);
  const std::vector<int64_t> shape = reader.Ints("shape");
  const bool fits = shape.size() <= kMaxRank &&
                    std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d >= 0; });
  if (fits) attrs.shape = Shape(shape);
  if (!fits || attrs.shape.CheckedNumel() != std::ssize(attrs.values)) {
    reader.Fail(absl::StrCat("attribute 'value' has ", attrs.values.size(),
                             " elements, expected those of 'shape', [", absl::StrJoin(shape, ","),
                             "]"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  ctx.SetShape(kOut, ctx.attrs<Attrs>().shape);
  return absl::OkStatus();
}

absl::Status Fill(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  const size_t bytes = SizeOf(out.dtype);
  int64_t i = 0;
  for (const float value : ctx.attrs<Attrs>().values) {
    const ScalarBytes element = ToScalarBytes(out.dtype, static_cast<double>(value));
    std::copy_n(reinterpret_cast<const char*>(element.bytes.data()), bytes,
                At(out.mutable_raw_data(), i++, bytes));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fill",
    .inputs = {},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.attrs<Attrs>().dtype; },
    .infer = Infer,
    .kernels = {{DType::kUndefined, Fill}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
