// How the camera was held: a JPEG file may say (EXIF, in a segment APP1) how its pixels are to be
// turned before they are looked at. OpenCV does so, and so do we.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/image/picture.h"

namespace interp {

// What is done to the stored pixels, in this order.
struct Orientation {
  bool transposes = false;  // rows become columns
  bool mirrors = false;     // the left column becomes the right one
  bool flips = false;       // the top row becomes the bottom one

  bool turns() const { return transposes || mirrors || flips; }
  bool operator==(const Orientation&) const = default;
};

// Of the eight numbers of EXIF; as stored for any other.
Orientation OrientationOfNumber(int number);

// As a JPEG file says; as stored where it says nothing, or nothing that can be understood. Bytes
// may be any.
Orientation OrientationOf(absl::string_view jpeg);

// Takes as much memory again.
Picture<uint8_t> Turned(const Picture<uint8_t>& picture, const Orientation& orientation);

}  // namespace interp
