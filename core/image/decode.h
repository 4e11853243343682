// Pictures in files: JPEG (libjpeg-turbo) and PNG (libpng).
//
// Pixels are as OpenCV reads them: a JPEG is turned as its file says of the camera (EXIF), grey
// pictures get three equal channels, of 16 bits the upper 8 count, and what a PNG file says of
// transparency and gamma does not. Thread-safety: any number of threads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/image/picture.h"
#include "core/status.h"

namespace interp {

struct PictureSize {
  int width = 0;
  int height = 0;
};

// From the header alone. Errors: those of DecodePicture.
absl::StatusOr<PictureSize> SizeOfPicture(absl::string_view file);

// `shrink`: 1, 2, 4 or 8. The sides of a JPEG are that many times smaller, rounded up, which takes
// less time than decoding all of it; a PNG keeps its size. `max_bytes` bounds what decoding takes,
// as if nothing were shrunk: 3 bytes a pixel, more of CMYK, of JPEGs in several scans and of those
// that are turned.
// Errors: InvalidArgument for what is no picture or damaged, Unimplemented for kinds of JPEG that
// libjpeg-turbo does not read, ResourceExhausted.
absl::StatusOr<Picture<uint8_t>> DecodePicture(absl::string_view file, size_t max_bytes,
                                               int shrink = 1);

// What is in the file of a picture, of at most `max_bytes`. InvalidArgument for pipes, which would
// be waited for, and devices, which may have no end.
absl::StatusOr<std::string> ReadPictureFile(const std::string& path, size_t max_bytes);
// The picture in a file of at most `max_bytes`. Errors start with the path; NotFound, too.
absl::StatusOr<Picture<uint8_t>> ReadPicture(const std::string& path, size_t max_bytes);

}  // namespace interp
