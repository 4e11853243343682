// The windows that im2sequence takes of images; shared with its gradient.
#pragma once

#include <vector>

#include "core/op_def.h"

namespace interp {

struct Im2SequenceAttrs {
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t pad_before[2] = {0, 0};
  int64_t pad_after[2] = {0, 0};
  int64_t out_stride[2] = {1, 1};
};

inline Im2SequenceAttrs ReadIm2SequenceAttrs(AttrReader& reader) {
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

inline absl::Status CheckImages(const Shape& x) {
  constexpr int64_t kMostImages = int64_t{1} << 26;  // offsets are not part of the memory pool
  if (x.rank() == 4 && x[0] <= kMostImages) return absl::OkStatus();
  return InvalidArgument("'X' has shape ", ToString(x), ", expected rank 4 and at most ",
                         kMostImages, " images");
}

// Windows of one image.
struct Grid {
  int64_t rows = 0;
  int64_t columns = 0;
};

// Number of windows along spatial dimension d of an image that is `size` pixels long there.
inline absl::StatusOr<int64_t> Windows(const Im2SequenceAttrs& attrs, const Shape& x, int64_t size,
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

inline absl::StatusOr<Grid> GridOf(const Im2SequenceAttrs& attrs, const Shape& x, int64_t height,
                                   int64_t width) {
  INTERP_ASSIGN_OR_RETURN(const int64_t rows, Windows(attrs, x, height, 0));
  INTERP_ASSIGN_OR_RETURN(const int64_t columns, Windows(attrs, x, width, 1));
  return Grid{rows, columns};
}

// The windows of every image.
inline absl::StatusOr<std::vector<Grid>> Grids(const Im2SequenceAttrs& attrs, const Shape& x,
                                               const Tensor* y) {
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

}  // namespace interp
