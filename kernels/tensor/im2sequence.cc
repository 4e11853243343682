// im2sequence: every window of the images X becomes a row of Out, in the order C, kernel height,
// kernel width; the windows of one image make one sequence of Out's LoD. Y has the height and width
// of the original images: only the windows of as many pixels of X are taken as `out_stride` steps
// fit into them. A single image is taken whole, whatever its Y.
#include "core/op_def.h"
#include "kernels/tensor/image_windows.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

absl::Status InferIm2Sequence(InferContext& ctx) {
  const Im2SequenceAttrs& attrs = ctx.attrs<Im2SequenceAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckImages(x));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Grid> grids, Grids(attrs, x, ctx.optional_input(kY)));
  std::vector<int64_t> level = {0};
  for (const Grid& grid : grids) {
    INTERP_ASSIGN_OR_RETURN(const int64_t windows, CheckedProduct(grid.rows, grid.columns));
    INTERP_ASSIGN_OR_RETURN(const int64_t end, CheckedSum(level.back(), windows));
    level.push_back(end);
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t columns,
                          CheckedProduct(x[1], attrs.kernel[0] * attrs.kernel[1]));
  ctx.SetShape(kOut, {level.back(), columns});
  ctx.output(kOut).lod = {std::move(level)};
  return absl::OkStatus();
}

// An image and where in it a window starts.
template <typename Element>
struct WindowSource {
  const Im2SequenceAttrs& attrs;
  const Shape& x;
  const Element* image;
  int64_t top;
  int64_t left;
};

// Copies kCount windows side by side; outside of the image it is 0. Reads run along a row of the
// image and writes along each of the windows.
template <int kCount, typename Element>
void CopyWindows(const WindowSource<Element>& source, Element* out) {
  const Im2SequenceAttrs& attrs = source.attrs;
  const Shape& x = source.x;
  const int64_t size = x[1] * attrs.kernel[0] * attrs.kernel[1];
  const int64_t stride = attrs.stride[1];
  for (int64_t c = 0; c < x[1]; ++c) {
    for (int64_t h = source.top; h < source.top + attrs.kernel[0]; ++h) {
      const bool row_inside = h >= 0 && h < x[2];
      const Element* const row = row_inside ? source.image + (c * x[2] + h) * x[3] : nullptr;
      for (int64_t w = source.left; w < source.left + attrs.kernel[1]; ++w, ++out) {
        if (row_inside && w >= 0 && w + (kCount - 1) * stride < x[3]) {
          for (int64_t i = 0; i < kCount; ++i) out[i * size] = row[w + i * stride];
          continue;
        }
        for (int64_t i = 0; i < kCount; ++i) {
          const int64_t column = w + i * stride;
          const bool inside = row_inside && column >= 0 && column < x[3];
          out[i * size] = inside ? row[column] : Element{};
        }
      }
    }
  }
}

// Copies all windows of one image and returns the end.
template <typename Element>
Element* CopyImage(const Im2SequenceAttrs& attrs, const Shape& x, const Grid& grid,
                   const Element* image, Element* out) {
  constexpr int kBlock = 8;
  const int64_t size = x[1] * attrs.kernel[0] * attrs.kernel[1];
  for (int64_t h = 0; h < grid.rows; ++h) {
    WindowSource<Element> source = {attrs, x, image, h * attrs.stride[0] - attrs.pad_before[0],
                                    -attrs.pad_before[1]};
    int64_t w = 0;
    for (; w + kBlock <= grid.columns; w += kBlock) {
      CopyWindows<kBlock>(source, out);
      source.left += kBlock * attrs.stride[1];
      out += kBlock * size;
    }
    for (; w < grid.columns; ++w) {
      CopyWindows<1>(source, out);
      source.left += attrs.stride[1];
      out += size;
    }
  }
  return out;
}

absl::Status Im2Sequence(KernelContext& ctx) {
  const Im2SequenceAttrs& attrs = ctx.attrs<Im2SequenceAttrs>();
  const Tensor& x = ctx.input(kX);
  const Shape& shape = x.shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<Grid> grids,
                          Grids(attrs, shape, ctx.optional_input(kY)));
  WithElementSize(x.dtype, [&](auto element) {
    using Element = decltype(element);
    const Element* image = static_cast<const Element*>(x.raw_data());
    Element* out = static_cast<Element*>(ctx.output(kOut).mutable_raw_data());
    for (const Grid& grid : grids) {
      out = CopyImage(attrs, shape, grid, image, out);
      image += shape.numel(1, 4);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "im2sequence",
    .inputs = {{"X"}, {"Y", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Im2SequenceAttrs, ReadIm2SequenceAttrs>,
    .infer = InferIm2Sequence,
    .kernels = {{DType::kUndefined, Im2Sequence}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
