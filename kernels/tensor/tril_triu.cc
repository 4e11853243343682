// tril_triu: Out = X with everything above (`lower`) or below the given diagonal of each matrix set
// to 0. tril_triu_grad is the same on Out@GRAD.
#include "kernels/tensor/tril_triu.h"

#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status InferTrilTriu(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() < 2) {
    return InvalidArgument("'X' has shape ", ToString(x), ", expected rank 2 or more");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status TrilTriu(KernelContext& ctx) {
  const TrilTriuAttrs& attrs = ctx.attrs<TrilTriuAttrs>();
  const Tensor& x = ctx.input(kX);
  const int64_t rows = x.shape.back(2);
  const int64_t columns = x.shape.back(1);
  const int64_t all_rows = x.shape.numel(0, x.shape.rank() - 1);
  const size_t bytes = SizeOf(x.dtype);
  const char* const in = static_cast<const char*>(x.raw_data());
  char* const out = static_cast<char*>(ctx.output(kOut).mutable_raw_data());
  const int64_t grain = GrainFor(columns);
  ParallelFor(ctx.num_threads(), all_rows, grain, [=, &attrs](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      // Columns [0, split) lie on or below the diagonal (tril), or strictly below it (triu).
      const int64_t split =
          std::clamp<int64_t>(r % rows + attrs.diagonal + (attrs.lower ? 1 : 0), 0, columns);
      const char* const from = in + r * columns * bytes;
      char* const to = out + r * columns * bytes;
      const size_t below = split * bytes;
      const size_t above = (columns - split) * bytes;
      std::memcpy(to + (attrs.lower ? 0 : below), from + (attrs.lower ? 0 : below),
                  attrs.lower ? below : above);
      std::memset(to + (attrs.lower ? below : 0), 0, attrs.lower ? above : below);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "tril_triu",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<TrilTriuAttrs, ReadTrilTriuAttrs>,
    .infer = InferTrilTriu,
    .kernels = {{DType::kUndefined, TrilTriu}},
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

// The same, on Out@GRAD.
INTERP_REGISTER_OP(OpDef{
    .type = "tril_triu_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<TrilTriuAttrs, ReadTrilTriuAttrs>,
    .infer = InferTrilTriu,
    .kernels = {{DType::kUndefined, TrilTriu}},
});

}  // namespace
}  // namespace interp
