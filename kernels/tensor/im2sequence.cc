// im2sequence: every window of the images X becomes a row of Out, in the order C, kernel height,
// kernel width; the windows of one image make one sequence of Out's LoD.
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

struct Im2SequenceAttrs {
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t pad_before[2] = {0, 0};
  int64_t pad_after[2] = {0, 0};
};

Im2SequenceAttrs ReadIm2SequenceAttrs(AttrReader& reader) {
  Im2SequenceAttrs attrs;
  const std::vector<int64_t> kernels = reader.Ints("kernels");
  const std::vector<int64_t> strides = reader.Ints("strides", {1, 1});
  const std::vector<int64_t> paddings =
      reader.Ints("paddings", {0, 0, 0, 0});  // up left down right
  if (kernels.size() != 2 || strides.size() != 2 || paddings.size() != 4) {
    reader.Fail("expected 2 'kernels', 2 'strides' and 4 'paddings'");
    return attrs;
  }
  constexpr int64_t kMost = 1 << 20;
  for (int d = 0; d < 2; ++d) {
    attrs.kernel[d] = kernels[d];
    attrs.stride[d] = strides[d];
    attrs.pad_before[d] = paddings[d];
    attrs.pad_after[d] = paddings[d + 2];
    for (const int64_t v : {kernels[d], strides[d], paddings[d] + 1, paddings[d + 2] + 1}) {
      if (v < 1 || v > kMost) reader.Fail(absl::StrCat("window attributes have the entry ", v));
    }
  }
  return attrs;
}

// Number of windows along spatial dimension d.
absl::StatusOr<int64_t> Windows(const Im2SequenceAttrs& attrs, const Shape& x, int d) {
  const int64_t padded = x[2 + d] + attrs.pad_before[d] + attrs.pad_after[d];
  if (padded < attrs.kernel[d]) {
    return InvalidArgument("'X' of shape ", ToString(x), " is smaller than the kernel");
  }
  return (padded - attrs.kernel[d]) / attrs.stride[d] + 1;
}

absl::Status InferIm2Sequence(InferContext& ctx) {
  const Im2SequenceAttrs& attrs = ctx.attrs<Im2SequenceAttrs>();
  const Shape& x = ctx.input(kX).shape;
  if (ctx.has_input(kY)) return Unimplemented("input 'Y' (real image sizes) is not supported");
  if (x.rank() != 4) return InvalidArgument("'X' has shape ", ToString(x), ", expected rank 4");
  INTERP_ASSIGN_OR_RETURN(const int64_t height, Windows(attrs, x, 0));
  INTERP_ASSIGN_OR_RETURN(const int64_t width, Windows(attrs, x, 1));
  INTERP_ASSIGN_OR_RETURN(const int64_t windows, CheckedProduct(height, width));
  INTERP_ASSIGN_OR_RETURN(const int64_t rows, CheckedProduct(windows, x[0]));
  INTERP_ASSIGN_OR_RETURN(const int64_t columns,
                          CheckedProduct(x[1], attrs.kernel[0] * attrs.kernel[1]));
  ctx.SetShape(kOut, {rows, columns});
  std::vector<int64_t> level = {0};
  for (int64_t n = 0; n < x[0]; ++n) level.push_back(level.back() + windows);
  ctx.output(kOut).lod = {std::move(level)};
  return absl::OkStatus();
}

// Copies one window whose first pixel is (top, left); outside of the image it is 0.
template <typename Element>
Element* CopyWindow(const Im2SequenceAttrs& attrs, const Element* image, const Shape& x,
                    int64_t top, int64_t left, Element* out) {
  for (int64_t c = 0; c < x[1]; ++c) {
    for (int64_t h = top; h < top + attrs.kernel[0]; ++h) {
      for (int64_t w = left; w < left + attrs.kernel[1]; ++w) {
        const bool inside = h >= 0 && h < x[2] && w >= 0 && w < x[3];
        *out++ = inside ? image[(c * x[2] + h) * x[3] + w] : Element{};
      }
    }
  }
  return out;
}

absl::Status Im2Sequence(KernelContext& ctx) {
  const Im2SequenceAttrs& attrs = ctx.attrs<Im2SequenceAttrs>();
  const Tensor& x = ctx.input(kX);
  const Shape& shape = x.shape;
  INTERP_ASSIGN_OR_RETURN(const int64_t height, Windows(attrs, shape, 0));
  INTERP_ASSIGN_OR_RETURN(const int64_t width, Windows(attrs, shape, 1));
  WithElementSize(x.dtype, [&](auto element) {
    using Element = decltype(element);
    const Element* image = static_cast<const Element*>(x.raw_data());
    Element* out = static_cast<Element*>(ctx.output(kOut).mutable_raw_data());
    for (int64_t n = 0; n < shape[0]; ++n, image += shape.numel(1, 4)) {
      for (int64_t h = 0; h < height; ++h) {
        for (int64_t w = 0; w < width; ++w) {
          out = CopyWindow(attrs, image, shape, h * attrs.stride[0] - attrs.pad_before[0],
                           w * attrs.stride[1] - attrs.pad_before[1], out);
        }
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "im2sequence",
    .inputs = {{"X"}, {"Y", kOptional | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Im2SequenceAttrs, ReadIm2SequenceAttrs>,
    .infer = InferIm2Sequence,
    .kernels = {{DType::kUndefined, Im2Sequence}},
});

}  // namespace
}  // namespace interp
