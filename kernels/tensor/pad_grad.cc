// pad_grad, pad2d_grad, pad3d_grad: X@GRAD takes every element of Out@GRAD that was copied from it.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/tensor/pad.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/second_gradient.h"

namespace interp {
namespace {

constexpr int kXGrad = 0;

// pad: constant margins only, so that the inside is copied.
namespace pad {

constexpr int kOutGrad = 0;

absl::Status Infer(InferContext& ctx) {
  const IntList& paddings = ctx.attrs<PadAttrs>().paddings;
  Shape shape = ctx.input(kOutGrad).shape;
  if (paddings.size() != 2 * static_cast<size_t>(shape.rank())) {
    return InvalidArgument("'paddings' has ", paddings.size(), " entries for rank ", shape.rank());
  }
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t before = paddings[2 * d];
    const int64_t after = paddings[2 * d + 1];
    if (before < 0 || after < 0 || before > shape[d] || after > shape[d] - before) {
      return InvalidArgument("'Out@GRAD' has shape ", ToString(shape), ", too small in dimension ",
                             d, " for the margins ", before, " and ", after);
    }
    shape[d] -= before + after;
  }
  ctx.SetShape(kXGrad, shape);
  return absl::OkStatus();
}

absl::Status Run(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Tensor& grad = ctx.input(kOutGrad);
  const Strides from = StridesOf(grad);
  const Strides to = StridesOf(*x_grad);
  int64_t first = 0;
  CopyDims dims;
  for (int d = 0; d < grad.shape.rank(); ++d) {
    first += ctx.attrs<PadAttrs>().paddings[2 * d] * from[d];
    dims.push_back({x_grad->shape[d], from[d], to[d]});
  }
  return CopyStrided(ctx, dims, {grad, first}, {*x_grad});
}

// The gradient of what cuts margins off is what adds them, of zeros.
absl::Status MakeSecond(GradientMaker& maker) {
  if (!maker.Wants("Out@GRAD")) return absl::OkStatus();
  Op& pad = maker.Add("pad");
  pad.attrs = maker.op().attrs;
  SetAttr(pad, "pad_value", 0.0F);
  AddInput(pad, "X", maker.OutputGradients("X@GRAD"));
  AddOutput(pad, "Out", maker.InputGradients("Out@GRAD"));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "pad_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<PadAttrs, ReadPad>,
    .infer = Infer,
    .kernels = MoveKernels(Run),
    .layout = LayoutRule::kFollows,
    .gradient = {.make = MakeSecond},
});

}  // namespace pad

namespace spatial {

constexpr int kOutGrad = 2;

PadAttrs Read2(AttrReader& reader) { return ReadSpatialPad(reader, 2); }
PadAttrs Read3(AttrReader& reader) { return ReadSpatialPad(reader, 3); }

template <int kSpatialDims>
absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Margins margins, SpatialPadMargins(ctx, kSpatialDims));
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          PaddedShape(ctx.input(kPadX).shape, ctx.attrs<PadAttrs>().mode, margins));
  if (!(ctx.input(kOutGrad).shape == shape)) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(ctx.input(kOutGrad).shape),
                           ", expected ", ToString(shape));
  }
  ctx.ShareShape(kPadX, kXGrad);
  return absl::OkStatus();
}

// Images as [outer][depth][height][width][inner] and, for each of the three axes, the index that
// every index of Out was copied from; -1: none.
struct PadImages {
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t in[3] = {1, 1, 1};
  std::vector<int64_t> source[3] = {{0}, {0}, {0}};
};

PadImages ImagesOf(const PadAttrs& attrs, const Margins& margins, const Tensor& x,
                   const Shape& out) {
  PadImages images;
  const int rank = x.shape.rank();
  const int first = attrs.channels_last ? 1 : 2;
  const int64_t channels = x.shape[attrs.channels_last ? rank - 1 : 1];
  const bool last = attrs.channels_last || x.layout == Layout::kChannelsLast;
  images.outer = x.shape[0] * (last ? 1 : channels);
  images.inner = last ? channels : 1;
  for (int i = 0; i < rank - 2; ++i) {
    const int d = first + i;
    const int axis = 5 - rank + i;
    images.in[axis] = x.shape[d];
    std::vector<int64_t>& source = images.source[axis];
    source.resize(static_cast<size_t>(out[d]));
    for (int64_t at = 0; at < out[d]; ++at) {
      source[at] = SourceIndex(attrs.mode, at, margins.before[d], x.shape[d]);
    }
  }
  return images;
}

// Adds one row of Out@GRAD to a row of X@GRAD.
template <typename T>
void AddRow(const std::vector<int64_t>& source, int64_t inner, const T* from, T* to) {
  for (const int64_t at : source) {
    if (at >= 0) {
      T* pixel = to + at * inner;
      for (int64_t c = 0; c < inner; ++c) pixel[c] += from[c];
    }
    from += inner;
  }
}

template <typename T>
void AddImages(const PadImages& images, const T* out_grad, T* x_grad, int num_threads) {
  const int64_t row = images.in[2] * images.inner;
  const int64_t in_image = images.in[0] * images.in[1] * row;
  const int64_t out_row = std::ssize(images.source[2]) * images.inner;
  const int64_t out_image = std::ssize(images.source[0]) * std::ssize(images.source[1]) * out_row;
  const int64_t grain = GrainFor(out_image);
  ParallelFor(num_threads, images.outer, grain, [&](int64_t begin, int64_t end) {
    std::fill(x_grad + begin * in_image, x_grad + end * in_image, T{0});
    for (int64_t image = begin; image < end; ++image) {
      const T* from = out_grad + image * out_image;
      for (const int64_t d : images.source[0]) {
        for (const int64_t h : images.source[1]) {
          if (d >= 0 && h >= 0) {
            AddRow(images.source[2], images.inner, from,
                   x_grad + image * in_image + (d * images.in[1] + h) * row);
          }
          from += out_row;
        }
      }
    }
  });
}

template <typename T, int kSpatialDims>
absl::Status Run(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Margins margins, SpatialPadMargins(ctx, kSpatialDims));
  const Tensor& grad = ctx.input(kOutGrad);
  AddImages(ImagesOf(ctx.attrs<PadAttrs>(), margins, *x_grad, grad.shape), grad.data<T>(),
            x_grad->mutable_data<T>(), ctx.num_threads());
  return absl::OkStatus();
}

// Images whose dims have the channels last already stay as they are.
LayoutRule LayoutOf(const void* attrs, DType /*kernel*/) {
  return static_cast<const PadAttrs*>(attrs)->channels_last ? LayoutRule::kPlain
                                                            : LayoutRule::kFollows;
}

template <int kSpatialDims>
OpDef Def(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer},
                 {"Paddings", kOptional | kAnyDType | kValueInInfer},
                 {"Out@GRAD"}},
      .outputs = {{"X@GRAD", kOptional}},
      .parse = parse,
      .infer = Infer<kSpatialDims>,
      .kernels = {{DType::kFloat32, Run<float, kSpatialDims>},
                  {DType::kFloat64, Run<double, kSpatialDims>}},
      .layout_rule = LayoutOf,
  };
}

constexpr SecondGradient kSecond3 = {.type = "pad3d_double_grad",
                                     .values = {{{"Paddings", "Paddings"}}},
                                     .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
                                     .results = {{{"grad_out@GRAD", "Out@GRAD"}}}};

INTERP_REGISTER_OP(Def<2>("pad2d_grad", ParseAttrs<PadAttrs, Read2>));
INTERP_REGISTER_OP(WithSecond<kSecond3>(Def<3>("pad3d_grad", ParseAttrs<PadAttrs, Read3>)));

}  // namespace spatial
}  // namespace
}  // namespace interp
