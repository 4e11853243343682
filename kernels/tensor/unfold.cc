// unfold: Y[n, (c, i, j), (h, w)] = the pixel of channel c that element (i, j) of the kernel meets
// when the window is at (h, w); 0 in the margins. fold: Y = the image in which the elements of X, a
// result of unfold, are added where they came from. Each is the gradient of the other.
#include <vector>

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 0;

struct UnfoldAttrs {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> paddings;  // top, left, bottom, right
  std::vector<int64_t> dilations;
  std::vector<int64_t> image;  // of fold: height and width
};

UnfoldAttrs ReadUnfoldAttrs(AttrReader& reader) {
  UnfoldAttrs attrs = {reader.Ints("kernel_sizes"),
                       reader.Ints("strides", {1, 1}),
                       reader.Ints("paddings", {0, 0, 0, 0}),
                       reader.Ints("dilations", {1, 1}),
                       {}};
  if (attrs.paddings.size() == 2) {
    attrs.paddings = {attrs.paddings[0], attrs.paddings[1], attrs.paddings[0], attrs.paddings[1]};
  }
  if (attrs.kernel.size() != 2 || attrs.strides.size() != 2 || attrs.paddings.size() != 4 ||
      attrs.dilations.size() != 2) {
    reader.Fail("expected 2 'kernel_sizes', 2 'strides', 4 'paddings' and 2 'dilations'");
    return attrs;
  }
  constexpr int64_t kMost = 1 << 20;
  for (const auto* list : {&attrs.kernel, &attrs.strides, &attrs.dilations}) {
    for (const int64_t v : *list) {
      if (v < 1 || v > kMost) reader.Fail(absl::StrCat("window attributes have the entry ", v));
    }
  }
  for (const int64_t v : attrs.paddings) {
    if (v < 0 || v > kMost) reader.Fail(absl::StrCat("'paddings' have the entry ", v));
  }
  return attrs;
}

UnfoldAttrs ReadFoldAttrs(AttrReader& reader) {
  UnfoldAttrs attrs = ReadUnfoldAttrs(reader);
  attrs.image = reader.Ints("output_sizes");
  if (attrs.image.size() != 2 || attrs.image[0] < 1 || attrs.image[1] < 1) {
    reader.Fail("'output_sizes' are expected to be 2 positive numbers");
  }
  return attrs;
}

// An image, and how often the window fits into it.
struct Grid {
  int64_t size[2] = {0, 0};
  int64_t windows[2] = {0, 0};
  int64_t channels = 0;
  int64_t count() const { return windows[0] * windows[1]; }
};

absl::StatusOr<Grid> GridOf(const UnfoldAttrs& attrs, int64_t channels, int64_t height,
                            int64_t width) {
  Grid grid = {{height, width}, {}, channels};
  for (int d = 0; d < 2; ++d) {
    const int64_t padded = grid.size[d] + attrs.paddings[d] + attrs.paddings[d + 2];
    const int64_t extent = attrs.dilations[d] * (attrs.kernel[d] - 1) + 1;
    if (padded < extent) {
      return InvalidArgument("an image of ", height, " x ", width,
                             " with its margins is smaller than the window");
    }
    grid.windows[d] = (padded - extent) / attrs.strides[d] + 1;
  }
  return grid;
}

absl::StatusOr<Grid> GridOfImage(const UnfoldAttrs& attrs, const Shape& image) {
  if (image.rank() != 4) {
    return InvalidArgument("the image has shape ", ToString(image), ", expected rank 4");
  }
  return GridOf(attrs, image[1], image[2], image[3]);
}

// Shape of the columns of images: [n, channels * kernel, windows].
absl::StatusOr<Shape> ColumnsShape(const UnfoldAttrs& attrs, const Grid& grid, int64_t images) {
  INTERP_ASSIGN_OR_RETURN(const int64_t rows,
                          CheckedProduct(grid.channels, attrs.kernel[0] * attrs.kernel[1]));
  return Shape{images, rows, grid.count()};
}

// Calls visit(pixel, column) for all elements of the columns of one channel that lie inside of the
// image: offsets in the channel and in its columns.
template <typename Visit>
void ForEachPixel(const UnfoldAttrs& attrs, const Grid& grid, const Visit& visit) {
  int64_t at = 0;
  for (int64_t i = 0; i < attrs.kernel[0]; ++i) {
    for (int64_t j = 0; j < attrs.kernel[1]; ++j) {
      for (int64_t h = 0; h < grid.windows[0]; ++h, at += grid.windows[1]) {
        const int64_t y = h * attrs.strides[0] - attrs.paddings[0] + i * attrs.dilations[0];
        if (y < 0 || y >= grid.size[0]) continue;
        for (int64_t w = 0; w < grid.windows[1]; ++w) {
          const int64_t x = w * attrs.strides[1] - attrs.paddings[1] + j * attrs.dilations[1];
          if (x >= 0 && x < grid.size[1]) visit(y * grid.size[1] + x, at + w);
        }
      }
    }
  }
}

// Calls body(channel's image, its columns) for every channel of every image; each is one task.
template <typename T, typename Image, typename Columns, typename Body>
void ForEachChannel(const KernelContext& ctx, const UnfoldAttrs& attrs, const Grid& grid,
                    int64_t images, Image* image, Columns* columns, const Body& body) {
  const int64_t pixels = grid.size[0] * grid.size[1];
  const int64_t column = attrs.kernel[0] * attrs.kernel[1] * grid.count();
  const int64_t grain = GrainFor(column);
  ParallelFor(ctx.num_threads(), images * grid.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) body(image + c * pixels, columns + c * column);
  });
}

template <typename T>
void ToColumns(const KernelContext& ctx, const UnfoldAttrs& attrs, const Grid& grid, int64_t images,
               const T* image, Tensor& columns) {
  FillZero(ctx.num_threads(), columns);
  ForEachChannel<T>(
      ctx, attrs, grid, images, image, columns.mutable_data<T>(), [&](const T* from, T* to) {
        ForEachPixel(attrs, grid, [=](int64_t pixel, int64_t column) { to[column] = from[pixel]; });
      });
}

template <typename T>
void ToImage(const KernelContext& ctx, const UnfoldAttrs& attrs, const Grid& grid, int64_t images,
             const T* columns, Tensor& image) {
  FillZero(ctx.num_threads(), image);
  ForEachChannel<T>(
      ctx, attrs, grid, images, image.mutable_data<T>(), columns, [&](T* to, const T* from) {
        ForEachPixel(attrs, grid,
                     [=](int64_t pixel, int64_t column) { to[pixel] += from[column]; });
      });
}

absl::Status InferUnfold(InferContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Grid grid, GridOfImage(attrs, x));
  INTERP_ASSIGN_OR_RETURN(const Shape y, ColumnsShape(attrs, grid, x[0]));
  ctx.SetShape(kY, y);
  return absl::OkStatus();
}

template <typename T>
absl::Status Unfold(KernelContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Tensor& x = ctx.input(kX);
  ToColumns(ctx, attrs, *GridOfImage(attrs, x.shape), x.shape[0], x.data<T>(), ctx.output(kY));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "unfold",
    .inputs = {{"X"}},
    .outputs = {{"Y"}},
    .parse = ParseAttrs<UnfoldAttrs, ReadUnfoldAttrs>,
    .infer = InferUnfold,
    .kernels = {{DType::kFloat32, Unfold<float>}, {DType::kFloat64, Unfold<double>}},
    .gradient = {.inputs = {"X", "Y@GRAD"}, .outputs = {"X@GRAD"}},
});

// The grid of an input of fold.
absl::StatusOr<Grid> GridOfColumns(const UnfoldAttrs& attrs, const Shape& columns) {
  const int64_t kernel = attrs.kernel[0] * attrs.kernel[1];
  INTERP_ASSIGN_OR_RETURN(Grid grid, GridOf(attrs, columns.rank() == 3 ? columns[1] / kernel : 0,
                                            attrs.image[0], attrs.image[1]));
  if (columns.rank() == 3 && columns[1] % kernel == 0 && columns[2] == grid.count()) return grid;
  return InvalidArgument("'X' has shape ", ToString(columns), ", expected [n, a multiple of ",
                         kernel, ",", grid.count(), "]");
}

absl::Status InferFold(InferContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Grid grid, GridOfColumns(attrs, x));
  ctx.SetShape(kY, {x[0], grid.channels, attrs.image[0], attrs.image[1]});
  return absl::OkStatus();
}

template <typename T>
absl::Status Fold(KernelContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Tensor& x = ctx.input(kX);
  ToImage(ctx, attrs, *GridOfColumns(attrs, x.shape), x.shape[0], x.data<T>(), ctx.output(kY));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fold",
    .inputs = {{"X"}},
    .outputs = {{"Y"}},
    .parse = ParseAttrs<UnfoldAttrs, ReadFoldAttrs>,
    .infer = InferFold,
    .kernels = {{DType::kFloat32, Fold<float>}, {DType::kFloat64, Fold<double>}},
    .gradient = {.inputs = {"X", "Y@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kYGrad = 1;
constexpr int kXGrad = 0;

absl::Status CheckYGrad(InferContext& ctx, const Shape& expected) {
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kYGrad, "Y@GRAD", expected));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status InferUnfoldGrad(InferContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Grid grid, GridOfImage(attrs, x));
  INTERP_ASSIGN_OR_RETURN(const Shape y, ColumnsShape(attrs, grid, x[0]));
  return CheckYGrad(ctx, y);
}

template <typename T>
absl::Status UnfoldGrad(KernelContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Shape& x = ctx.input(kX).shape;
  ToImage(ctx, attrs, *GridOfImage(attrs, x), x[0], ctx.input(kYGrad).data<T>(),
          ctx.output(kXGrad));
  return absl::OkStatus();
}

absl::Status InferFoldGrad(InferContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Grid grid, GridOfColumns(attrs, x));
  return CheckYGrad(ctx, {x[0], grid.channels, attrs.image[0], attrs.image[1]});
}

template <typename T>
absl::Status FoldGrad(KernelContext& ctx) {
  const UnfoldAttrs& attrs = ctx.attrs<UnfoldAttrs>();
  const Shape& x = ctx.input(kX).shape;
  ToColumns(ctx, attrs, *GridOfColumns(attrs, x), x[0], ctx.input(kYGrad).data<T>(),
            ctx.output(kXGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "unfold_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Y@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<UnfoldAttrs, ReadUnfoldAttrs>,
    .infer = InferUnfoldGrad,
    .kernels = {{DType::kFloat32, UnfoldGrad<float>}, {DType::kFloat64, UnfoldGrad<double>}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "fold_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Y@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<UnfoldAttrs, ReadFoldAttrs>,
    .infer = InferFoldGrad,
    .kernels = {{DType::kFloat32, FoldGrad<float>}, {DType::kFloat64, FoldGrad<double>}},
});

}  // namespace
}  // namespace interp
