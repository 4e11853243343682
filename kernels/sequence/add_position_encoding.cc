// add_position_encoding: Out[t] = alpha * X[t] + beta * e(t) for the row at position t of a
// sequence, where e(t) has D / 2 sines and then as many cosines of t / 10000^(k / (D/2 - 1)). X has
// a LoD, or it is a batch [B,T,D] of sequences of length T.
#include <cmath>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/row_windows.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct PositionEncodingAttrs {
  float alpha = 1;
  float beta = 1;
};

PositionEncodingAttrs ReadPositionEncodingAttrs(AttrReader& reader) {
  return {reader.Float("alpha", 1), reader.Float("beta", 1)};
}

absl::Status InferPositionEncoding(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckRowsInTime(x));
  if (x.shape.back() % 2 != 0) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected an even number of columns");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// e(t) for the positions so far; sines cost far more than the rest of the op.
struct EncodingState : KernelState {
  int64_t width = 0;
  std::vector<double> rows;
};

void Encode(int64_t position, int64_t half, double* out) {
  for (int64_t k = 0; k < half; ++k) {
    const double divisor =
        half > 1 ? std::pow(10000.0, static_cast<double>(k) / static_cast<double>(half - 1))
                 : 10000.0;
    const double angle = static_cast<double>(position) / divisor;
    out[k] = std::sin(angle);
    out[half + k] = std::cos(angle);
  }
}

// Rows for `positions` positions, at least. REQUIRES: width > 0.
const double* Encodings(KernelContext& ctx, int64_t positions, int64_t width) {
  auto& state = ctx.state<EncodingState>();
  if (state.width != width) state.rows.clear();
  state.width = width;
  const int64_t known = std::ssize(state.rows) / width;
  if (known >= positions) return state.rows.data();
  state.rows.resize(positions * width);
  ParallelFor(ctx.num_threads(), positions - known, GrainFor(64 * width),
              [&](int64_t begin, int64_t end) {
                for (int64_t t = known + begin; t < known + end; ++t) {
                  Encode(t, width / 2, state.rows.data() + t * width);
                }
              });
  return state.rows.data();
}

template <typename T>
absl::Status AddPositionEncoding(KernelContext& ctx) {
  const auto attrs = ctx.attrs<PositionEncodingAttrs>();
  const Tensor& x_tensor = ctx.input(kX);
  if (x_tensor.numel() == 0) return absl::OkStatus();
  const bool batch = x_tensor.lod.empty();
  const Offsets offsets = batch ? Offsets() : Offsets(x_tensor.lod.back());
  const int64_t width = x_tensor.shape.back();
  const int64_t count = batch ? x_tensor.shape[0] : SequenceCount(offsets);
  const int64_t longest = batch ? x_tensor.shape[1] : LongestSequence(offsets);
  const double* const encodings = Encodings(ctx, longest, width);
  const T* const x = x_tensor.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t grain = GrainForShare(x_tensor.numel(), count);
  ParallelFor(ctx.num_threads(), count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = (batch ? i * longest : offsets[i]) * width;
      const int64_t end = (batch ? (i + 1) * longest : offsets[i + 1]) * width;
      for (int64_t k = begin; k < end; ++k) {
        out[k] = static_cast<T>(static_cast<double>(x[k] * static_cast<T>(attrs.alpha)) +
                                encodings[k - begin] * attrs.beta);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "add_position_encoding",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PositionEncodingAttrs, ReadPositionEncodingAttrs>,
    .infer = InferPositionEncoding,
    .kernels = {{DType::kFloat32, AddPositionEncoding<float>},
                {DType::kFloat64, AddPositionEncoding<double>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
