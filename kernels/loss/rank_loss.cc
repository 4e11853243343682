// rank_loss: Out = log(1 + e^o) - Label o for o = Left - Right.
// margin_rank_loss: Out = max(0, margin - Label (X1 - X2)), Activated = Out > 0; of releases
// before 2.0.
#include "kernels/loss/rank_loss.h"

#include <algorithm>

#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/vector_math.h"

namespace interp {
namespace {

constexpr int kLabel = 0;
constexpr int kLeft = 1;
constexpr int kRight = 2;

namespace rank_loss {

constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckRankLossInputs(ctx));
  ctx.SetShape(kOut, ctx.input(kLabel).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const auto* const label = ctx.input(kLabel).data<T>();
  const auto* const left = ctx.input(kLeft).data<T>();
  const auto* const right = ctx.input(kRight).data<T>();
  auto* const out = ctx.output(kOut).mutable_data<T>();
  ParallelFor(ctx.num_threads(), ctx.input(kLabel).numel(), pair_loss::kGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T o = left[i] - right[i];
                  out[i] = Log(T{1} + Exp(o)) - label[i] * o;
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rank_loss",
    .inputs = {{"Label"}, {"Left"}, {"Right"}},
    .outputs = {{"Out"}},
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
    .gradient = {.inputs = {"Label", "Left", "Right", "Out@GRAD"},
                 .outputs = {"Left@GRAD", "Right@GRAD"}},
});

}  // namespace rank_loss

namespace margin_rank_loss {

constexpr int kActivated = 0;
constexpr int kOut = 1;

struct Attrs {
  float margin = 0;
};

Attrs Read(AttrReader& reader) { return {reader.Float("margin", 0.0f)}; }

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kLeft, "X1", 0, "Label"));
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kRight, "X2", 0, "Label"));
  ctx.ShareShape(kLabel, kActivated);
  ctx.ShareShape(kLabel, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const T margin = static_cast<T>(ctx.attrs<Attrs>().margin);
  const auto* const label = ctx.input(kLabel).data<T>();
  const auto* const x1 = ctx.input(kLeft).data<T>();
  const auto* const x2 = ctx.input(kRight).data<T>();
  auto* const out = ctx.output(kOut).mutable_data<T>();
  auto* const activated = ctx.output(kActivated).mutable_data<T>();
  const int64_t n = ctx.input(kLabel).numel();
  for (int64_t i = 0; i < n; ++i) {
    const T loss = std::max(margin - label[i] * (x1[i] - x2[i]), T{0});
    out[i] = loss;
    activated[i] = loss > 0 ? T{1} : T{0};
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "margin_rank_loss",
    .inputs = {{"Label"}, {"X1"}, {"X2"}},
    .outputs = {{"Activated"}, {"Out"}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
    .gradient = {.inputs = {"Label", "Activated", "Out@GRAD"}, .outputs = {"X1@GRAD", "X2@GRAD"}},
});

}  // namespace margin_rank_loss
}  // namespace
}  // namespace interp
