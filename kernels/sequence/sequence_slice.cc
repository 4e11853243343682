// sequence_slice: of each sequence of X, `Length` rows from row `Offset` on.
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/slices.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOffset = 1;
constexpr int kLength = 2;
constexpr int kOut = 0;

absl::Status InferSequenceSlice(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(std::vector<int64_t> level,
                          OffsetsOfSlices(x, ctx.input(kOffset), ctx.input(kLength)));
  Shape shape = x.shape;
  shape[0] = level.back();
  ctx.SetShape(kOut, shape);
  ctx.output(kOut).lod.push_back(std::move(level));
  return absl::OkStatus();
}

absl::Status SequenceSlice(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out_tensor = ctx.output(kOut);
  const auto row_bytes = RowSize(x) * static_cast<int64_t>(SizeOf(x.dtype));
  const Offsets from = x.lod.back();
  const Offsets to = out_tensor.lod.back();
  if (out_tensor.numel() == 0) return absl::OkStatus();
  const char* const in = static_cast<const char*>(x.raw_data());
  char* const out = static_cast<char*>(out_tensor.mutable_raw_data());
  return WithIndices(ctx.input(kOffset), "Offset", [&](const auto* starts) {
    for (int64_t i = 0; i < SequenceCount(to); ++i) {
      std::memcpy(out + to[i] * row_bytes, in + (from[i] + starts[i]) * row_bytes,
                  (to[i + 1] - to[i]) * row_bytes);
    }
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_slice",
    .inputs = {{"X"}, {"Offset", kAnyDType | kValueInInfer}, {"Length", kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .infer = InferSequenceSlice,
    .kernels = {{DType::kUndefined, SequenceSlice}},
    .gradient = {.inputs = {"X", "Offset", "Length", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
