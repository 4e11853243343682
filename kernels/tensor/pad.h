// pad, pad2d, pad3d: attributes, margins and shapes, for both directions.
#pragma once

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {

// The first inputs of pad2d and pad3d and of their gradients.
inline constexpr int kPadX = 0;
inline constexpr int kPadPaddings = 1;

enum class PadMode { kConstant, kReflect, kReplicate, kCircular };

struct PadAttrs {
  IntList paddings;
  float value = 0;
  PadMode mode = PadMode::kConstant;
  bool channels_last = false;  // logically: the shape itself is N, spatial, C
};

// Margins by logical dimension of X.
struct Margins {
  Shape before;
  Shape after;
};

// Where output index `i` of a dimension reads: input index i - before, mapped into the input by the
// mode; -1 for the constant.
int64_t SourceIndex(PadMode mode, int64_t i, int64_t before, int64_t length);

// pad: margins of every dimension.
PadAttrs ReadPad(AttrReader& reader);
absl::StatusOr<Margins> PadMargins(const OpContext& ctx);

// pad2d (2) and pad3d (3).
PadAttrs ReadSpatialPad(AttrReader& reader, int spatial_dims);
absl::StatusOr<Margins> SpatialPadMargins(const OpContext& ctx, int spatial_dims);

// The shape of Out; checks that each mode can fill its margins.
absl::StatusOr<Shape> PaddedShape(const Shape& x, PadMode mode, const Margins& margins);

}  // namespace interp
