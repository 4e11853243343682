// The interpolation ops: slots, attributes, shapes and taps, for both directions.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/tensor/resample.h"

namespace interp {

// The first inputs of an op and of its gradient: X, OutSize, SizeTensor, Scale.
inline constexpr int kInterpX = 0;
inline constexpr int kInterpOutSize = 1;
inline constexpr int kInterpSizeTensor = 2;
inline constexpr int kInterpScale = 3;

enum class InterpMethod { kNearest, kLinear, kCubic };

struct InterpAttrs {
  InterpMethod method = InterpMethod::kNearest;
  int min_rank = 4;
  int max_rank = 5;
  bool v2 = false;
  bool gradient = false;
  bool channels_last = false;  // logically: the shape itself is N, spatial, C
  bool align_corners = true;
  int64_t align_mode = 1;
  int64_t size[3] = {0, 0, 0};  // out_d, out_h, out_w
  std::vector<float> scale;
};

InterpAttrs ReadInterpAttrs(AttrReader& reader);

// The shape of Out, after a check of all inputs.
absl::StatusOr<Shape> InterpShape(const InferContext& ctx);

// How X and Out lie in memory. REQUIRES: not both channels-last logically and in memory.
ImageView InterpView(const InterpAttrs& attrs, const Tensor& x, const Shape& out);

// How the coordinates of depth, height and width map. Error: a scale that fits nothing.
absl::Status FillInterpMaps(const OpContext& ctx, const ImageView& view, CoordinateMap (&maps)[3]);

// Sets the taps of the three dimensions. Error: a scale that fits nothing.
template <typename Weight>
absl::Status FillInterpTaps(const OpContext& ctx, const ImageView& view, Taps<Weight> (&taps)[3]);

extern template absl::Status FillInterpTaps<float>(const OpContext&, const ImageView&,
                                                   Taps<float> (&)[3]);
extern template absl::Status FillInterpTaps<double>(const OpContext&, const ImageView&,
                                                    Taps<double> (&)[3]);

}  // namespace interp
