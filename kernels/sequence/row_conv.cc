// row_conv: Out[t] = X[t] * Filter[0] + X[t + 1] * Filter[1] + ..., element by element, as far as
// the sequence of t goes. X has a LoD, or it is a batch [B,T,D] of sequences of length T.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/sequence/row_windows.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kFilter = 1;
constexpr int kOut = 0;

absl::Status InferRowConv(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckRowConv(ctx.input(kX), ctx.input(kFilter).shape));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

struct RowFilter {
  const float* weights;
  int64_t rows;
  int64_t width;
};

// One output row; `rows_left` of X are in its sequence from `x` on.
void ConvolveRow(const RowFilter& filter, const float* x, int64_t rows_left, float* out) {
  const int64_t width = filter.width;
  std::fill_n(out, width, 0.0F);
  for (int64_t w = 0; w < std::min(filter.rows, rows_left); ++w) {
    const float* const weights = filter.weights + w * width;
    const float* const row = x + w * width;
    for (int64_t d = 0; d < width; ++d) out[d] += weights[d] * row[d];
  }
}

absl::Status RowConv(KernelContext& ctx) {
  const Tensor& x_tensor = ctx.input(kX);
  const Tensor& filter_tensor = ctx.input(kFilter);
  const RowFilter filter = {filter_tensor.data<float>(), filter_tensor.shape[0],
                            filter_tensor.shape[1]};
  if (x_tensor.numel() == 0) return absl::OkStatus();
  const float* const x = x_tensor.data<float>();
  float* const out = ctx.output(kOut).mutable_data<float>();
  const int64_t grain = GrainFor(filter.width * filter.rows);
  ParallelFor(ctx.num_threads(), x_tensor.numel() / filter.width, grain,
              [&](int64_t from, int64_t to) {
                ForEachSequenceRow(x_tensor, from, to, [&](int64_t t, int64_t, int64_t end) {
                  ConvolveRow(filter, x + t * filter.width, end - t, out + t * filter.width);
                });
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "row_conv",
    .inputs = {{"X"}, {"Filter"}},
    .outputs = {{"Out"}},
    .infer = InferRowConv,
    .kernels = {{DType::kFloat32, RowConv}},
    .gradient = {.inputs = {"X", "Filter", "Out@GRAD"}, .outputs = {"X@GRAD", "Filter@GRAD"}},
});

}  // namespace
}  // namespace interp
