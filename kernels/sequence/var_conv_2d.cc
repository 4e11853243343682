// var_conv_2d: a convolution of images of sizes of their own. Sequence n of X is an image of
// InputChannel planes; its height and width are the lengths of sequence n of ROW and of COLUMN, of
// which nothing else counts. Windows are centred, with zeros beside the image, and strides start at
// its first element. Col has the windows, W the filters as rows. var_conv_2d_grad: its derivatives.
#include <algorithm>
#include <vector>

#include "core/op_def.h"
#include "kernels/product/product.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/zeroed_output.h"

namespace interp::var_conv {
namespace {

constexpr int kX = 0;
constexpr int kRow = 1;
constexpr int kColumn = 2;
constexpr int kW = 3;
constexpr int kOut = 0;
constexpr int kCol = 1;

struct Attrs {
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  int64_t stride_h = 1;
  int64_t stride_w = 1;
  int64_t kernel_h = 1;
  int64_t kernel_w = 1;

  int64_t window() const { return in_channels * kernel_h * kernel_w; }
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Int("InputChannel", 1), reader.Int("OutputChannel", 1),
                       reader.Int("StrideH", 1),      reader.Int("StrideW", 1),
                       reader.Int("KernelH", 1),      reader.Int("KernelW", 1)};
  for (const int64_t value : {attrs.in_channels, attrs.out_channels, attrs.stride_h, attrs.stride_w,
                              attrs.kernel_h, attrs.kernel_w}) {
    if (value < 1 || value > (int64_t{1} << 20)) {
      reader.Fail(absl::StrCat("channels, strides and sizes of the kernel have the value ", value,
                               ", expected 1 to ", int64_t{1} << 20));
    }
  }
  return attrs;
}

// Where an image and what is made of it start, in elements.
struct Image {
  int64_t in = 0;
  int64_t col = 0;
  int64_t out = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;

  int64_t places() const { return out_height * out_width; }
};

// The images and, last, where they end. InvalidArgument unless X, ROW, COLUMN and W fit each other.
absl::StatusOr<std::vector<Image>> ImagesOf(const OpContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& x = ctx.input(kX);
  if (x.shape.rank() != 2 || x.shape[1] != 1 ||
      !(ctx.input(kW).shape == Shape{attrs.out_channels, attrs.window()})) {
    return InvalidArgument("inputs 'X' and 'W' have shapes ", ToString(x.shape), " and ",
                           ToString(ctx.input(kW).shape), ", expected [n,1] and [",
                           attrs.out_channels, ",", attrs.window(), "]");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets of_x, OnlyLevelOffsets(x, "X"));
  INTERP_ASSIGN_OR_RETURN(const Offsets rows, OnlyLevelOffsets(ctx.input(kRow), "ROW"));
  INTERP_ASSIGN_OR_RETURN(const Offsets columns, OnlyLevelOffsets(ctx.input(kColumn), "COLUMN"));
  if (rows.size() != of_x.size() || columns.size() != of_x.size()) {
    return InvalidArgument("inputs 'X', 'ROW' and 'COLUMN' have ", SequenceCount(of_x), ", ",
                           SequenceCount(rows), " and ", SequenceCount(columns),
                           " sequences, expected as many");
  }
  std::vector<Image> images(of_x.size());
  for (size_t n = 1; n < of_x.size(); ++n) {
    Image& image = images[n - 1];
    image.height = rows[n] - rows[n - 1];
    image.width = columns[n] - columns[n - 1];
    INTERP_ASSIGN_OR_RETURN(const int64_t pixels, CheckedProduct(image.height, image.width));
    INTERP_ASSIGN_OR_RETURN(const int64_t size, CheckedProduct(pixels, attrs.in_channels));
    if (size != of_x[n] - of_x[n - 1]) {
      return InvalidArgument("sequence ", n - 1, " of 'X' has ", of_x[n] - of_x[n - 1],
                             " elements, expected ", size);
    }
    image.out_height = (image.height + attrs.stride_h - 1) / attrs.stride_h;
    image.out_width = (image.width + attrs.stride_w - 1) / attrs.stride_w;
    INTERP_ASSIGN_OR_RETURN(const int64_t col, CheckedProduct(image.places(), attrs.window()));
    INTERP_ASSIGN_OR_RETURN(const int64_t out, CheckedProduct(image.places(), attrs.out_channels));
    images[n].in = of_x[n];
    INTERP_ASSIGN_OR_RETURN(images[n].col, CheckedSum(image.col, col));
    INTERP_ASSIGN_OR_RETURN(images[n].out, CheckedSum(image.out, out));
  }
  return images;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Image> images, ImagesOf(ctx));
  std::vector<int64_t> cols;
  std::vector<int64_t> outs;
  for (const Image& image : images) {
    cols.push_back(image.col);
    outs.push_back(image.out);
  }
  ctx.SetShape(kOut, {outs.back(), 1});
  ctx.SetShape(kCol, {cols.back(), 1});
  ctx.output(kOut).lod = {std::move(outs)};
  ctx.output(kCol).lod = {std::move(cols)};
  return absl::OkStatus();
}

// Calls body(element of the image, element of its windows) for all in the image; element -1 for
// those beside it.
template <typename Body>
void ForEachTap(const Attrs& attrs, const Image& image, const Body& body) {
  int64_t element = 0;
  for (int64_t c = 0; c < attrs.in_channels; ++c) {
    for (int64_t ky = 0; ky < attrs.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < attrs.kernel_w; ++kx) {
        for (int64_t oy = 0; oy < image.out_height; ++oy) {
          const int64_t y = oy * attrs.stride_h + ky - attrs.kernel_h / 2;
          for (int64_t ox = 0; ox < image.out_width; ++ox, ++element) {
            const int64_t x = ox * attrs.stride_w + kx - attrs.kernel_w / 2;
            const bool inside = y >= 0 && y < image.height && x >= 0 && x < image.width;
            body(inside ? (c * image.height + y) * image.width + x : -1, element);
          }
        }
      }
    }
  }
}

template <typename T>
absl::Status VarConv(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  INTERP_ASSIGN_OR_RETURN(const std::vector<Image> images, ImagesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  T* const cols = ctx.output(kCol).mutable_data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  for (const Image& image : images) {
    if (image.places() == 0) continue;
    const T* const from = x + image.in;
    T* const to = cols + image.col;
    ForEachTap(attrs, image, [=](int64_t pixel, int64_t element) {
      to[element] = pixel < 0 ? T{0} : from[pixel];
    });
    INTERP_RETURN_IF_ERROR(
        nn::RunProduct<T>(ctx, nn::ProductOf(attrs.out_channels, image.places(), attrs.window()),
                          ctx.input(kW).data<T>(), to, /*y_constant=*/false,
                          /*bias=*/nullptr, out + image.out));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "var_conv_2d",
    .inputs =
        {{"X"}, {"ROW", kNoNeedBuffer | kAnyDType}, {"COLUMN", kNoNeedBuffer | kAnyDType}, {"W"}},
    .outputs = {{"Out"}, {"Col"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, VarConv<float>}, {DType::kFloat64, VarConv<double>}},
    .gradient = {.inputs = {"X", "W", "ROW", "COLUMN", "Col", "Out", "Out@GRAD"},
                 .outputs = {"X@GRAD", "W@GRAD"}},
});

constexpr int kGivenCol = 4;
constexpr int kOutGrad = 6;
constexpr int kXGrad = 0;
constexpr int kWGrad = 1;

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Image> images, ImagesOf(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kGivenCol, "Col", {images.back().col, 1}));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", {images.back().out, 1}));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kW, kWGrad);
  return absl::OkStatus();
}

// Adds what the windows of an image get to the gradient of the image.
template <typename T>
absl::Status AddToImage(KernelContext& ctx, const Image& image, const T* out_grad, T* x_grad) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const int64_t size = image.places() * attrs.window();
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(size) * sizeof(T)));
  nn::Product product = nn::ProductOf(attrs.window(), image.places(), attrs.out_channels);
  product.trans_x = true;
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, ctx.input(kW).data<T>(), out_grad,
                                           /*y_constant=*/false, /*bias=*/nullptr, work.data<T>()));
  const T* const from = work.data<T>();
  ForEachTap(attrs, image, [=](int64_t pixel, int64_t element) {
    if (pixel >= 0) x_grad[pixel] += from[element];
  });
  return absl::OkStatus();
}

// The same for the filters.
template <typename T>
absl::Status AddToFilters(KernelContext& ctx, const Image& image, const T* out_grad, T* w_grad) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const int64_t size = attrs.out_channels * attrs.window();
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(size) * sizeof(T)));
  nn::Product product = nn::ProductOf(attrs.out_channels, attrs.window(), image.places());
  product.trans_y = true;
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, out_grad,
                                           ctx.input(kGivenCol).data<T>() + image.col,
                                           /*y_constant=*/false, /*bias=*/nullptr, work.data<T>()));
  const T* const from = work.data<T>();
  for (int64_t i = 0; i < size; ++i) w_grad[i] += from[i];
  return absl::OkStatus();
}

template <typename T>
absl::Status VarConvGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Image> images, ImagesOf(ctx));
  T* const x_grad = ZeroedOutput<T>(ctx, kXGrad);
  T* const w_grad = ZeroedOutput<T>(ctx, kWGrad);
  for (const Image& image : images) {
    if (image.places() == 0) continue;
    const T* const out_grad = ctx.input(kOutGrad).data<T>() + image.out;
    if (x_grad != nullptr) {
      INTERP_RETURN_IF_ERROR(AddToImage(ctx, image, out_grad, x_grad + image.in));
    }
    if (w_grad != nullptr) INTERP_RETURN_IF_ERROR(AddToFilters(ctx, image, out_grad, w_grad));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "var_conv_2d_grad",
    .inputs = {{"X", kNoNeedBuffer},
               {"ROW", kNoNeedBuffer | kAnyDType},
               {"COLUMN", kNoNeedBuffer | kAnyDType},
               {"W"},
               {"Col"},
               {"Out", kNoNeedBuffer},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"W@GRAD", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, VarConvGrad<float>}, {DType::kFloat64, VarConvGrad<double>}},
});

}  // namespace
}  // namespace interp::var_conv
