// sigmoid_focal_loss: with p = sigmoid(X[i,c]) and f = max(FgNum, 1), Out[i,c] is
//   -alpha (1 - p)^gamma log(p) / f          where Label[i] is c + 1,
//   -(1 - alpha) p^gamma log(1 - p) / f      where it is another class or 0, the background,
//   0                                        where it is -1.
// (Paddle before 2.6: fluid/operators/detection/sigmoid_focal_loss_op.h.)
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kLabel = 1;
constexpr int kFgNum = 2;
constexpr int kOut = 0;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

constexpr int64_t kGrain = 1024;  // elements per task, four transcendental functions each

struct Attrs {
  float gamma = 2;
  float alpha = 0.25f;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {reader.Float("gamma", 2), reader.Float("alpha", 0.25f)};
}

absl::Status CheckInputs(const InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& label = ctx.input(kLabel).shape;
  if (x.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [rows,classes]");
  }
  if (label != Shape{x[0], 1}) {
    return InvalidArgument("input 'Label' has shape ", ToString(label), ", expected [", x[0],
                           ",1]");
  }
  if (ctx.input(kFgNum).numel() != 1) {
    return InvalidArgument("input 'FgNum' has shape ", ToString(ctx.input(kFgNum).shape),
                           ", expected one element");
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputs(ctx));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status InferGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputs(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kX).shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// The two sums that an element can be in, without their weights.
template <typename T>
struct Element {
  T x, gamma;

  T p() const { return T{1} / (T{1} + std::exp(-x)); }
  T log_p() const { return std::log(std::max(p(), static_cast<T>(FLT_MIN))); }
  // log(1 - p), without cancellation.
  T log_rest() const { return -std::max(x, T{0}) - std::log(T{1} + std::exp(-std::abs(x))); }
};

template <typename T>
struct Loss {
  T positive(const Element<T>& e) const { return std::pow(T{1} - e.p(), e.gamma) * e.log_p(); }
  T negative(const Element<T>& e) const { return std::pow(e.p(), e.gamma) * e.log_rest(); }
};

template <typename T>
struct Slope {
  T positive(const Element<T>& e) const {
    const T p = e.p();
    return std::pow(T{1} - p, e.gamma) * (T{1} - p - e.gamma * p * e.log_p());
  }
  T negative(const Element<T>& e) const {
    const T p = e.p();
    return std::pow(p, e.gamma) * (e.gamma * (T{1} - p) * e.log_rest() - p);
  }
};

// out[i] = the weighted term of element i times grad[i], or 1 without one.
template <typename T, typename Term, typename Label>
void RunTerms(KernelContext& ctx, const Label* labels, int64_t fg_num, const T* grad, T* out) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const int64_t classes = ctx.input(kX).shape[1];
  const T* const x = ctx.input(kX).data<T>();
  const T share = T{1} / static_cast<T>(std::max<int64_t>(fg_num, 1));
  const T alpha = static_cast<T>(attrs.alpha);
  const T gamma = static_cast<T>(attrs.gamma);
  ParallelFor(ctx.num_threads(), ctx.input(kX).numel(), kGrain, [=](int64_t begin, int64_t end) {
    const Term term;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t label = labels[i / classes];
      const Element<T> element = {x[i], gamma};
      T value = 0;
      if (label == i % classes + 1) {
        value = -alpha * share * term.positive(element);
      } else if (label != -1) {
        value = -(T{1} - alpha) * share * term.negative(element);
      }
      out[i] = grad == nullptr ? value : value * grad[i];
    }
  });
}

template <typename T, typename Term>
absl::Status Run(KernelContext& ctx, const T* grad, T* out) {
  int64_t fg_num = 0;
  INTERP_RETURN_IF_ERROR(WithIndices(ctx.input(kFgNum), "FgNum", [&](const auto* value) {
    fg_num = *value;
    return absl::OkStatus();
  }));
  return WithIndices(ctx.input(kLabel), "Label", [&](const auto* labels) {
    RunTerms<T, Term>(ctx, labels, fg_num, grad, out);
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status FocalLoss(KernelContext& ctx) {
  return Run<T, Loss<T>>(ctx, /*grad=*/nullptr, ctx.output(kOut).mutable_data<T>());
}

template <typename T>
absl::Status FocalLossGrad(KernelContext& ctx) {
  return Run<T, Slope<T>>(ctx, ctx.input(kOutGrad).data<T>(), ctx.output(kXGrad).mutable_data<T>());
}

INTERP_REGISTER_OP(OpDef{
    .type = "sigmoid_focal_loss",
    .inputs = {{"X"}, {"Label", kAnyDType}, {"FgNum", kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, FocalLoss<float>}, {DType::kFloat64, FocalLoss<double>}},
    .precision = PrecisionRule::kFull,
    .gradient = {.inputs = {"X", "Label", "FgNum", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "sigmoid_focal_loss_grad",
    .inputs = {{"X"}, {"Label", kAnyDType}, {"FgNum", kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, FocalLossGrad<float>}, {DType::kFloat64, FocalLossGrad<double>}},
    .precision = PrecisionRule::kFull,
});

}  // namespace
}  // namespace interp
