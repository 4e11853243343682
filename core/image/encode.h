// Pictures as files: JPEG (libjpeg-turbo) and PNG (libpng). Thread-safety: any number of threads.
#pragma once

#include <string>

#include "core/image/picture.h"
#include "core/status.h"

namespace interp {

// `quality`: from 1 to 100. Colours have half the resolution, as JPEG files of most programs.
absl::StatusOr<std::string> EncodeJpeg(const Picture<uint8_t>& picture, int quality);

// Lossless.
absl::StatusOr<std::string> EncodePng(const Picture<uint8_t>& picture);

// Writes a PNG file, beside its place and renamed. Errors are those of FileWriter (core/io/file.h).
absl::Status WritePng(const std::string& path, const Picture<uint8_t>& picture);

}  // namespace interp
