// sequence_concat_grad: each X gets back its part of every sequence of Out@GRAD.
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferSequenceConcatGrad(InferContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  const Tensor& grad = ctx.input(kOutGrad);
  if (grad.shape.rank() == 0) return InvalidArgument("input 'Out@GRAD' is a scalar");
  int64_t rows = 0;
  for (const Tensor* x : inputs) {
    if (x == nullptr) return InvalidArgument("an argument of input 'X' is empty");
    INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(*x, "X"));
    if (SequenceCount(offsets) != SequenceCount(inputs[0]->lod.back()) ||
        RowSize(*x) != RowSize(grad)) {
      return InvalidArgument(
          "arguments of input 'X' differ in the number of their sequences, or "
          "their rows in size from those of 'Out@GRAD'");
    }
    INTERP_ASSIGN_OR_RETURN(rows, CheckedSum(rows, x->shape[0]));
  }
  if (grad.shape[0] != rows) {
    return InvalidArgument("input 'Out@GRAD' has ", grad.shape[0], " rows, expected ", rows,
                           ", those of all arguments of 'X'");
  }
  const absl::Span<Tensor* const> outputs = ctx.outputs(kXGrad);
  if (!outputs.empty() && outputs.size() != inputs.size()) {
    return InvalidArgument("output 'X@GRAD' has ", outputs.size(), " arguments, expected ",
                           inputs.size());
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] == nullptr) continue;
    outputs[k]->shape = inputs[k]->shape;
    outputs[k]->lod = inputs[k]->lod;
  }
  return absl::OkStatus();
}

absl::Status SequenceConcatGrad(KernelContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  const absl::Span<Tensor* const> outputs = ctx.outputs(kXGrad);
  const Tensor& grad = ctx.input(kOutGrad);
  const auto row_bytes = RowSize(grad) * static_cast<int64_t>(SizeOf(grad.dtype));
  if (grad.numel() == 0 || outputs.empty()) return absl::OkStatus();
  const char* from = static_cast<const char*>(grad.raw_data());
  for (int64_t i = 0; i < SequenceCount(inputs[0]->lod.back()); ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int64_t begin = inputs[k]->lod.back()[i];
      const int64_t bytes = (inputs[k]->lod.back()[i + 1] - begin) * row_bytes;
      if (bytes > 0 && outputs[k] != nullptr) {
        std::memcpy(static_cast<char*>(outputs[k]->mutable_raw_data()) + begin * row_bytes, from,
                    bytes);
      }
      from += bytes;
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_concat_grad",
    .inputs = {{"X", kVariadic | kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kVariadic | kOptional}},
    .infer = InferSequenceConcatGrad,
    .kernels = {{DType::kUndefined, SequenceConcatGrad}},
});

}  // namespace
}  // namespace interp
