// box_coder: between boxes and their offsets from prior boxes, in centre and size.
//
//   encode_center_size  TargetBox [R,4], PriorBox [C,4] -> OutputBox [R,C,4]
//   decode_center_size  TargetBox [R,C,4] offsets -> OutputBox [R,C,4]; PriorBox belongs to the
//                       columns (axis 0) or the rows (axis 1)
//
// Offsets are divided (encode) or multiplied (decode) by variances: PriorBoxVar, else the
// attribute.
#include <array>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/box_attrs.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/read_choice.h"

namespace interp {
namespace {

constexpr int kPriorBox = 0;
constexpr int kPriorBoxVar = 1;
constexpr int kTargetBox = 2;
constexpr int kOutputBox = 0;

constexpr int64_t kGrain = 2048;  // boxes per task; each takes two exponentials or logarithms

BoxCoderAttrs ReadAttrs(AttrReader& reader) {
  BoxCoderAttrs attrs = {.decode = ReadChoice<bool>(reader, "code_type",
                                                    {{"encode_center_size", false},
                                                     {"decode_center_size", true},
                                                     {"EncodeCenterSize", false},
                                                     {"DecodeCenterSize", true}}),
                         .normalized = reader.Bool("box_normalized", true),
                         .axis = reader.Int("axis", 0),
                         .variance = reader.Floats("variance")};
  if (attrs.axis != 0 && attrs.axis != 1) {
    reader.Fail(absl::StrCat("attribute 'axis' is ", attrs.axis, ", expected 0 or 1"));
  }
  if (!attrs.variance.empty() && attrs.variance.size() != 4) {
    reader.Fail(
        absl::StrCat("attribute 'variance' has ", attrs.variance.size(), " values, expected 4"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const BoxCoderAttrs& attrs = ctx.attrs<BoxCoderAttrs>();
  const Shape& prior = ctx.input(kPriorBox).shape;
  const Shape& target = ctx.input(kTargetBox).shape;
  if (prior.rank() != 2 || prior[1] != 4) {
    return InvalidArgument("input 'PriorBox' has shape ", ToString(prior), ", expected [C,4]");
  }
  if (const Tensor* variance = ctx.optional_input(kPriorBoxVar)) {
    if (!(variance->shape == prior)) {
      return InvalidArgument("input 'PriorBoxVar' has shape ", ToString(variance->shape),
                             ", expected that of 'PriorBox', ", ToString(prior));
    }
    if (!attrs.variance.empty()) {
      return InvalidArgument("input 'PriorBoxVar' and attribute 'variance' exclude each other");
    }
  }
  if (!attrs.decode) {
    if (target.rank() != 2 || target[1] != 4) {
      return InvalidArgument("input 'TargetBox' has shape ", ToString(target), ", expected [R,4]");
    }
    ctx.SetShape(kOutputBox, {target[0], prior[0], 4});
  } else {
    if (target.rank() != 3 || target[2] != 4 || target[attrs.axis == 0 ? 1 : 0] != prior[0]) {
      return InvalidArgument("input 'TargetBox' has shape ", ToString(target), ", expected ",
                             attrs.axis == 0 ? "[R,C,4] with C = " : "[R,C,4] with R = ", prior[0]);
    }
    ctx.SetShape(kOutputBox, target);
  }
  // Row r is that of a prior along axis 0, which then are the ones dealt out to images.
  const bool by_prior = attrs.decode && attrs.axis == 1;
  ctx.output(kOutputBox).lod = ctx.input(by_prior ? kPriorBox : kTargetBox).lod;
  return absl::OkStatus();
}

template <typename T>
struct CenteredBox {
  CenteredBox(const T* box, T pixel)
      : width(box[2] - box[0] + pixel),
        height(box[3] - box[1] + pixel),
        x(box[0] + width / 2),
        y(box[1] + height / 2) {}
  T width, height, x, y;
};

template <typename T>
void Encode(const T* target, const CenteredBox<T>& prior, const T* variance, T pixel, T* out) {
  const T x = (target[2] + target[0]) / 2;  // without the pixel that the width counts
  const T y = (target[3] + target[1]) / 2;
  const T width = target[2] - target[0] + pixel, height = target[3] - target[1] + pixel;
  out[0] = (x - prior.x) / prior.width / variance[0];
  out[1] = (y - prior.y) / prior.height / variance[1];
  out[2] = std::log(std::abs(width / prior.width)) / variance[2];
  out[3] = std::log(std::abs(height / prior.height)) / variance[3];
}

template <typename T>
void Decode(const T* offset, const CenteredBox<T>& prior, const T* variance, T pixel, T* out) {
  const T x = variance[0] * offset[0] * prior.width + prior.x;
  const T y = variance[1] * offset[1] * prior.height + prior.y;
  const T width = std::exp(variance[2] * offset[2]) * prior.width;
  const T height = std::exp(variance[3] * offset[3]) * prior.height;
  out[0] = x - width / 2;
  out[1] = y - height / 2;
  out[2] = x + width / 2 - pixel;
  out[3] = y + height / 2 - pixel;
}

template <typename T>
absl::Status BoxCoder(KernelContext& ctx) {
  const BoxCoderAttrs& attrs = ctx.attrs<BoxCoderAttrs>();
  const Tensor* variances = ctx.optional_input(kPriorBoxVar);
  Tensor& output = ctx.output(kOutputBox);
  std::array<T, 4> shared_variance = {1, 1, 1, 1};
  std::copy(attrs.variance.begin(), attrs.variance.end(), shared_variance.begin());

  const T pixel = attrs.normalized ? T{0} : T{1};
  const T* priors = ctx.input(kPriorBox).data<T>();
  const T* target = ctx.input(kTargetBox).data<T>();
  T* out = output.mutable_data<T>();
  const int64_t columns = output.shape[1];
  ParallelFor(ctx.num_threads(), output.numel() / 4, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = attrs.decode && attrs.axis == 1 ? i / columns : i % columns;
      const CenteredBox<T> prior(priors + p * 4, pixel);
      const T* variance =
          variances != nullptr ? variances->data<T>() + p * 4 : shared_variance.data();
      if (attrs.decode) {
        Decode(target + i * 4, prior, variance, pixel, out + i * 4);
      } else {
        Encode(target + i / columns * 4, prior, variance, pixel, out + i * 4);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "box_coder",
    .inputs = {{"PriorBox"}, {"PriorBoxVar", kOptional}, {"TargetBox"}},
    .outputs = {{"OutputBox"}},
    .parse = ParseAttrs<BoxCoderAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, BoxCoder<float>}, {DType::kFloat64, BoxCoder<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
