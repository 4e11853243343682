// sequence_concat: sequence i of Out is the sequences i of all X, joined.
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status CheckInput(const Tensor* x, const Tensor& first) {
  if (x == nullptr) return InvalidArgument("an argument of input 'X' is empty");
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(*x, "X"));
  const int64_t expected = SequenceCount(first.lod.back());
  if (SequenceCount(offsets) != expected) {
    return InvalidArgument("arguments of input 'X' have ", expected, " and ",
                           SequenceCount(offsets), " sequences, expected equal numbers");
  }
  if (RowSize(*x) != RowSize(first)) {
    return InvalidArgument("arguments of input 'X' have shapes ", ToString(first.shape), " and ",
                           ToString(x->shape), ", expected rows of one size");
  }
  return absl::OkStatus();
}

absl::Status InferSequenceConcat(InferContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  if (inputs.empty() || inputs[0] == nullptr) return InvalidArgument("input 'X' is empty");
  const Tensor& first = *inputs[0];
  INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(first, "X").status());
  std::vector<int64_t> level(first.lod.back().size(), 0);
  for (const Tensor* x : inputs) {
    INTERP_RETURN_IF_ERROR(CheckInput(x, first));
    for (size_t i = 0; i < level.size(); ++i) {
      INTERP_ASSIGN_OR_RETURN(level[i], CheckedSum(level[i], x->lod.back()[i]));
    }
  }
  Shape shape = first.shape;
  shape[0] = level.back();
  ctx.SetShape(kOut, shape);
  ctx.output(kOut).lod.push_back(std::move(level));
  return absl::OkStatus();
}

absl::Status SequenceConcat(KernelContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  Tensor& out_tensor = ctx.output(kOut);
  const auto row_bytes = RowSize(out_tensor) * static_cast<int64_t>(SizeOf(out_tensor.dtype));
  if (row_bytes == 0) return absl::OkStatus();
  char* out = static_cast<char*>(out_tensor.mutable_raw_data());
  for (int64_t i = 0; i < SequenceCount(out_tensor.lod.back()); ++i) {
    for (const Tensor* x : inputs) {
      const int64_t begin = x->lod.back()[i];
      const int64_t bytes = (x->lod.back()[i + 1] - begin) * row_bytes;
      if (bytes == 0) continue;  // then X may have no memory
      std::memcpy(out, static_cast<const char*>(x->raw_data()) + begin * row_bytes, bytes);
      out += bytes;
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_concat",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out"}},
    .infer = InferSequenceConcat,
    .kernels = {{DType::kUndefined, SequenceConcat}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
