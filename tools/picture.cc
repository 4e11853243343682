#include "tools/picture.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "core/io/file.h"

namespace interp {
namespace {

using Bytes = Picture<uint8_t>;

absl::Status CheckSize(uint64_t width, uint64_t height, size_t max_bytes) {
  if (width == 0 || height == 0) return InvalidArgument("the picture has no pixels");
  if (width > max_bytes / Bytes::kChannels / height) {
    return absl::ResourceExhaustedError(absl::StrCat("a picture of ", width, " x ", height,
                                                     " pixels takes more than ", max_bytes,
                                                     " bytes (--max-file-memory)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bytes> Sized(uint64_t width, uint64_t height, size_t max_bytes) {
  INTERP_RETURN_IF_ERROR(CheckSize(width, height, max_bytes));
  Bytes picture{static_cast<int>(width), static_cast<int>(height)};
  picture.pixels.resize(width * height * Bytes::kChannels);
  return picture;
}

absl::StatusOr<Bytes> DecodeJpeg(const std::string& file, size_t max_bytes) {
  struct Destroy {
    void operator()(void* handle) const { tjDestroy(handle); }
  };
  const std::unique_ptr<void, Destroy> decoder(tjInitDecompress());
  if (decoder == nullptr) return absl::ResourceExhaustedError("no memory for the JPEG decoder");
  const auto* const data = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0;
  int height = 0;
  int sampling = 0;
  int colours = 0;
  const auto failed = [&] {
    return InvalidArgument("damaged or cut off: ", tjGetErrorStr2(decoder.get()));
  };
  if (tjDecompressHeader3(decoder.get(), data, file.size(), &width, &height, &sampling, &colours) !=
      0) {
    return failed();
  }
  INTERP_ASSIGN_OR_RETURN(Bytes picture, Sized(width, height, max_bytes));
  if (tjDecompress2(decoder.get(), data, file.size(), picture.pixels.data(), width, /*pitch=*/0,
                    height, TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0) {
    return failed();
  }
  return picture;
}

absl::StatusOr<Bytes> DecodePng(const std::string& file, size_t max_bytes) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  const auto failed = [&] { return InvalidArgument("damaged or cut off: ", image.message); };
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) return failed();
  image.format = PNG_FORMAT_RGB;
  absl::StatusOr<Bytes> picture = Sized(image.width, image.height, max_bytes);
  if (!picture.ok()) {
    png_image_free(&image);
    return picture.status();
  }
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&image, &black, picture->pixels.data(), /*row_stride=*/0, nullptr) ==
      0) {
    return failed();
  }
  return picture;
}

absl::StatusOr<Bytes> Decode(const std::string& file, size_t max_bytes) {
  if (absl::StartsWith(file, "\xff\xd8\xff")) return DecodeJpeg(file, max_bytes);
  if (absl::StartsWith(file, "\x89PNG\r\n\x1a\n")) return DecodePng(file, max_bytes);
  return InvalidArgument("no picture: expected a JPEG or PNG file");
}

// What one output position takes of the input: weights of positions [first, first + size).
struct Taps {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Taps> MakeTaps(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double radius = std::max(1.0, scale);
  std::vector<Taps> taps(to);
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    taps[i].first = std::max(0, static_cast<int>(std::floor(centre - radius + 0.5)));
    const int last = std::min(from, static_cast<int>(std::floor(centre + radius + 0.5)));
    double sum = 0;
    std::vector<double> weights;
    for (int j = taps[i].first; j < last; ++j) {
      weights.push_back(std::max(0.0, 1 - std::abs(j + 0.5 - centre) / radius));
      sum += weights.back();
    }
    for (const double weight : weights) taps[i].weights.push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

Picture<float> ResizeRows(const Picture<float>& picture, int width) {
  constexpr int kChannels = Picture<float>::kChannels;
  const std::vector<Taps> taps = MakeTaps(picture.width, width);
  Picture<float> out{width, picture.height};
  out.pixels.resize(static_cast<size_t>(width) * picture.height * kChannels);
  float* to = out.pixels.data();
  for (int y = 0; y < picture.height; ++y) {
    const float* const row =
        picture.pixels.data() + static_cast<size_t>(y) * picture.width * kChannels;
    for (const Taps& tap : taps) {
      for (int c = 0; c < kChannels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < tap.weights.size(); ++k) {
          sum += tap.weights[k] * row[(tap.first + k) * kChannels + c];
        }
        *to++ = sum;
      }
    }
  }
  return out;
}

Picture<float> ResizeColumns(const Picture<float>& picture, int height) {
  const std::vector<Taps> taps = MakeTaps(picture.height, height);
  const size_t row_size = static_cast<size_t>(picture.width) * Picture<float>::kChannels;
  Picture<float> out{picture.width, height};
  out.pixels.assign(row_size * height, 0);
  for (int y = 0; y < height; ++y) {
    float* const to = out.pixels.data() + y * row_size;
    for (size_t k = 0; k < taps[y].weights.size(); ++k) {
      const float weight = taps[y].weights[k];
      const float* const row = picture.pixels.data() + (taps[y].first + k) * row_size;
      for (size_t i = 0; i < row_size; ++i) to[i] += weight * row[i];
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<Picture<uint8_t>> ReadPicture(const std::string& path, size_t max_bytes) {
  INTERP_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, max_bytes));
  absl::StatusOr<Bytes> picture = Decode(file, max_bytes);
  if (!picture.ok()) return Annotate(picture.status(), path);
  return picture;
}

absl::Status WritePng(const std::string& path, const Bytes& picture) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGB;
  const auto encode = [&](void* memory, png_alloc_size_t* size_bytes) {
    return png_image_write_to_memory(&image, memory, size_bytes, /*convert_to_8_bit=*/0,
                                     picture.pixels.data(), /*row_stride=*/0, nullptr) != 0;
  };
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size_bytes = file.size();
  if (!encode(file.data(), &size_bytes)) {
    return absl::InternalError(absl::StrCat("'", path, "': ", image.message));
  }
  file.resize(size_bytes);
  INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(writer.Append(file));
  return writer.Commit();
}

Picture<float> Resize(const Picture<float>& picture, int width, int height) {
  return ResizeColumns(ResizeRows(picture, width), height);
}

}  // namespace interp
