// Feeds made from pictures.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/status.h"
#include "core/tensor.h"
#include "tools/feed_values.h"

namespace interp {

// A batch of one from "FILE[,OPTION=VALUE...]", a JPEG or PNG file (picture.h):
//   size=224 or size=HEIGHTxWIDTH   default: what the program declares, else the picture's own
//   fit=stretch|crop                crop: the middle, as much as `size`'s shape takes; default
//   stretch color=rgb|bgr|gray              default rgb; gray where the program declares one
//   channel scale=0.5 or scale=1/255        what pixels from 0 to 255 are multiplied by; default
//   1/255,
//                                   and 1 for integers
//   mean=M or mean=R/G/B, std=...   subtracted and divided by afterwards; default 0 and 1
//   layout=nchw|nhwc                default: where the program declares the channels, else nchw
// A comma in FILE is part of it where such a file exists. Values for integers are rounded. Errors:
// those of ReadPicture, InvalidArgument for options and for dtypes that hold no pixels.
absl::StatusOr<Tensor> ReadImageFeed(const FeedTarget& target, absl::string_view description,
                                     size_t max_bytes);

}  // namespace interp
