// im2sequence: every window of the images X becomes a row of Out, in the order C, kernel height,
// kernel width; the windows of one image make one sequence of Out's LoD. Y has the height and width
// of the original images: only the windows of as many pixels of X are taken as `out_stride` steps
// fit into them. A single image is taken whole, whatever its Y.

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
  int64_t out_stride[2] = {1, 1};
};

Im2SequenceAttrs ReadIm2SequenceAttrs(AttrReader& reader) {
  Im2SequenceAttrs attrs;
  const std::vector<int64_t> kernels = reader.Ints("kernels");
  const std::vector<int64_t> strides = reader.Ints("strides", {1, 1});
  const std::vector<int64_t> paddings =
      reader.Ints("paddings", {0, 0, 0, 0});  // up left down right
  const std::vector<int64_t> out_stride = reader.Ints("out_stride", {1, 1});
  if (kernels.size() != 2 || strides.size() != 2 || paddings.size() != 4 ||
      out_stride.size() != 2) {
    reader.Fail("expected 2 'kernels', 2 'strides', 4 'paddings' and 2 'out_stride'");
    return attrs;
  }
  constexpr int64_t kMost = 1 << 20;
  for (int d = 0; d < 2; ++d) {
    attrs.kernel[d] = kernels[d];
    attrs.stride[d] = strides[d];
    attrs.pad_before[d] = paddings[d];
    attrs.pad_after[d] = paddings[d + 2];
    attrs.out_stride[d] = out_stride[d];
    for (const int64_t v :
         {kernels[d], strides[d], paddings[d] + 1, paddings[d + 2] + 1, out_stride[d]}) {
      if (v < 1 || v > kMost) reader.Fail(absl::StrCat("window attributes have the entry ", v));
    }
  }
  return attrs;
}

// Windows of one image.
struct Grid {
  int64_t rows = 0;
  int64_t columns = 0;
};

// Number of windows along spatial dimension d of an image that is `size` pixels long there.
absl::StatusOr<int64_t> Windows(const Im2SequenceAttrs& attrs, const Shape& x, int64_t size,
                                int d) {
  const int64_t image = x[2 + d] + attrs.pad_before[d] + attrs.pad_after[d];
  const int64_t padded = size + attrs.pad_before[d] + attrs.pad_after[d];
  if (padded < attrs.kernel[d]) {
    return InvalidArgument("an image of ", size, " pixels in 'X' of shape ", ToString(x),
                           " is smaller than the kernel");
  }
  const int64_t windows = (padded - attrs.kernel[d]) / attrs.stride[d] + 1;
  if ((windows - 1) * attrs.stride[d] >= image) {
    return InvalidArgument("'Y' gives an image of 'X' of shape ", ToString(x), " ", size,
                           " pixels, more than there are");
  }
  return windows;
}

absl::StatusOr<Grid> GridOf(const Im2SequenceAttrs& attrs, const Shape& x, int64_t height,
                            int64_t width) {
  INTERP_ASSIGN_OR_RETURN(const int64_t rows, Windows(attrs, x, height, 0));
  INTERP_ASSIGN_OR_RETURN(const int64_t columns, Windows(attrs, x, width, 1));
  return Grid{rows, columns};
}

// The windows of every image.
absl::StatusOr<std::vector<Grid>> Grids(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<Im2SequenceAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const Tensor* const y = ctx.optional_input(kY);
  if (y == nullptr || x[0] <= 1) {
    INTERP_ASSIGN_OR_RETURN(const Grid whole, GridOf(attrs, x, x[2], x[3]));
    return std::vector<Grid>(x[0], whole);
  }
  if (y->shape.rank() == 0 || y->numel() / 2 != x[0] || y->numel() % 2 != 0) {
    return InvalidArgument("'Y' is ", DescribeType(*y), ", expected the sizes of ", x[0],
                           " images");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, InferContext::Integers(*y));
  std::vector<Grid> grids;
  for (int64_t n = 0; n < x[0]; ++n) {
    int64_t real[2];
    for (int d = 0; d < 2; ++d) {
      const int64_t size = sizes[2 * n + d];
      if (size < 1 || size > int64_t{1} << 40) {
        return InvalidArgument("'Y' has the size ", size, " for image ", n);
      }
      real[d] = (size + attrs.out_stride[d] - 1) / attrs.out_stride[d];
    }
    INTERP_ASSIGN_OR_RETURN(const Grid grid, GridOf(attrs, x, real[0], real[1]));
    grids.push_back(grid);
  }
  return grids;
}

absl::Status InferIm2Sequence(InferContext& ctx) {
  const Im2SequenceAttrs& attrs = ctx.attrs<Im2SequenceAttrs>();
  const Shape& x = ctx.input(kX).shape;
  constexpr int64_t kMostImages = int64_t{1} << 26;  // offsets are not part of the memory pool
  if (x.rank() != 4 || x[0] > kMostImages) {
    return InvalidArgument("'X' has shape ", ToString(x), ", expected rank 4 and at most ",
                           kMostImages, " images");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<Grid> grids, Grids(ctx));
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
  INTERP_ASSIGN_OR_RETURN(const std::vector<Grid> grids, Grids(ctx));
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
});

}  // namespace
}  // namespace interp
