// Feeds made from pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/image/picture.h"
#include "core/status.h"
#include "core/tensor.h"
#include "tools/feed_values.h"

namespace interp {

// Which part of a picture was fed, and the size it was fed in. In pixels.
struct PictureRegion {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  int fed_width = 0;
  int fed_height = 0;
};

// What a feed was made of.
struct FedPicture {
  std::string feed;
  Picture<uint8_t> picture;  // all of the file
  PictureRegion region;
};

// A batch of one from "FILE[,OPTION=VALUE...]", a JPEG or PNG file (core/image/decode.h):
//   size=224 or size=HEIGHTxWIDTH  default: what the program declares, else the picture's own
//   fit=stretch|crop               crop: the middle, as much as the shape of `size` takes; default:
//                                  stretch
//   color=rgb|bgr|gray             default: gray where the program declares one channel, else rgb
//   scale=0.5 or scale=1/255       what pixels from 0 to 255 are multiplied by; default: 1/255, and
//                                  1 for integers
//   mean=M or mean=R/G/B, std=...  subtracted and divided by afterwards; default: 0 and 1
//   layout=nchw|nhwc               default: where the program declares the channels, else nchw
// A comma in FILE is part of it where such a file exists. Values for integers are rounded. With
// `pictures`, what was fed is added to them. Errors: those of ReadPicture, InvalidArgument for
// options and for dtypes that hold no pixels.
absl::StatusOr<Tensor> ReadImageFeed(const FeedTarget& target, absl::string_view description,
                                     size_t max_bytes, std::vector<FedPicture>* pictures = nullptr);

// The FILE of such a description.
std::string FileOfImageFeed(absl::string_view description);

}  // namespace interp
