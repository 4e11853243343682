// Options that say how pictures become feeds: "size=224,mean=0.485/0.456/0.406".
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/dtype.h"
#include "core/image/prepare.h"
#include "core/status.h"

namespace interp {

// What follows from a feed's declaration. `dims` may lack the batch, or be empty; dims below 0 are
// not known.
ImagePreparation PreparationFor(DType dtype, absl::Span<const int64_t> dims);

// Sets one of
//   size=224 or size=HEIGHTxWIDTH
//   fit=stretch|crop                  all of the picture, or as much of the middle as has the shape
//   color=rgb|bgr|gray
//   scale=0.5 or scale=1/255          what pixels from 0 to 255 are multiplied by
//   mean=M or mean=R/G/B, std=...     subtracted and divided by afterwards; in the order of
//   `color`,
//                                     for color=bgr B/G/R
//   layout=nchw|nhwc
// Errors, InvalidArgument, start with the name.
absl::Status SetImageOption(absl::string_view name, absl::string_view value,
                            ImagePreparation& preparation);

// Sets one of those, or one of
//   fit=random                        a part at random
//   resize=256, resize=no             the shorter side before a part is cut out; default: as small
//   as
//                                     the part allows
//   area=0.08/1                       with fit=random: the part's share of the picture
//   aspect=0.75/1.333                 with area: the part's width by its height
//   mirror=no|yes|random
absl::Status SetAugmentOption(absl::string_view name, absl::string_view value,
                              ImagePreparation& preparation);

// What options do not say one by one: InvalidArgument for three means or deviations of grey.
absl::Status CheckImageOptions(const ImagePreparation& preparation);

}  // namespace interp
