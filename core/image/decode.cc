#include "core/image/decode.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/annotate.h"
#include "core/image/jpeg_segments.h"
#include "core/image/orientation.h"
#include "core/io/file.h"

namespace interp {
namespace {

using Bytes = Picture<uint8_t>;

constexpr absl::string_view kJpegMagic = "\xff\xd8\xff";
constexpr absl::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

// `pixel_bytes`: what decoding takes for each pixel.
absl::Status CheckSize(PictureSize size, size_t pixel_bytes, size_t max_bytes) {
  const auto width = static_cast<uint64_t>(size.width);
  const auto height = static_cast<uint64_t>(size.height);
  if (width == 0 || height == 0) return InvalidArgument("the picture has no pixels");
  if (width > max_bytes / pixel_bytes / height) {
    return ResourceExhausted("decoding a picture of ", width, " x ", height,
                             " pixels takes more than ", max_bytes, " bytes");
  }
  return absl::OkStatus();
}

Bytes Sized(int width, int height) {
  Bytes picture{width, height};
  picture.pixels.resize(static_cast<size_t>(width) * height * Bytes::kChannels);
  return picture;
}

// What libjpeg keeps of each pixel, in bytes, until the last of several scans: coefficients of 16
// bits. 0 for pictures in one scan, of which it keeps a few rows.
size_t CoefficientBytes(absl::string_view file) {
  constexpr size_t kMostComponents = 4;
  size_t components = 0;
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.Next()) {
    const auto byte = [&](size_t at) -> size_t {
      return at < segment->body.size() ? static_cast<uint8_t>(segment->body[at]) : 0;
    };
    const int marker = segment->marker;
    if (marker == JpegSegments::kStartOfScan) return byte(0) < components ? components * 2 : 0;
    const bool is_frame = marker >= 0xc0 && marker <= 0xcf && marker % 4 != 0;
    if (is_frame || marker == 0xc0) components = std::min(byte(5), kMostComponents);
    if (is_frame && marker % 4 == 2) return components * 2;  // progressive
  }
  return 0;
}

// A JPEG file whose header has been read.
class Jpeg {
 public:
  static absl::StatusOr<Jpeg> Open(absl::string_view file) {
    Jpeg jpeg(file);
    if (jpeg.decoder_ == nullptr) return ResourceExhausted("no memory for the JPEG decoder");
    int sampling = 0;
    const int result =
        tjDecompressHeader3(jpeg.decoder_.get(), jpeg.data(), file.size(), &jpeg.size_.width,
                            &jpeg.size_.height, &sampling, &jpeg.colours_);
    // A sampling without a name is an error of a header that was read, and no matter here.
    if (sampling >= 0) INTERP_RETURN_IF_ERROR(jpeg.StatusOf(result));
    jpeg.orientation_ = OrientationOf(file);
    return jpeg;
  }
  PictureSize size() const {
    return orientation_.transposes ? PictureSize{.width = size_.height, .height = size_.width}
                                   : size_;
  }
  size_t pixel_bytes() const {
    const size_t while_decoded = (has_four_inks() ? kInks : 0) + CoefficientBytes(file_);
    const size_t while_turned = orientation_.turns() ? Bytes::kChannels : 0;
    return Bytes::kChannels + std::max(while_decoded, while_turned);
  }

  absl::StatusOr<Bytes> Decode(int shrink) {
    INTERP_ASSIGN_OR_RETURN(Bytes picture, DecodeAsStored(shrink));
    return orientation_.turns() ? Turned(picture, orientation_) : std::move(picture);
  }

 private:
  static constexpr size_t kInks = 4;

  struct Destroy {
    void operator()(void* handle) const { tjDestroy(handle); }
  };

  explicit Jpeg(absl::string_view file) : file_(file), decoder_(tjInitDecompress()) {}
  const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(file_.data()); }
  bool has_four_inks() const { return colours_ == TJCS_CMYK || colours_ == TJCS_YCCK; }

  absl::StatusOr<Bytes> DecodeAsStored(int shrink) {
    const tjscalingfactor factor = {1, shrink};
    Bytes picture = Sized(TJSCALED(size_.width, factor), TJSCALED(size_.height, factor));
    if (!has_four_inks()) {
      INTERP_RETURN_IF_ERROR(DecodeTo(TJPF_RGB, picture.width, picture.height, picture.pixels));
      return picture;
    }
    std::vector<uint8_t> inks(picture.pixels.size() / Bytes::kChannels * kInks);
    INTERP_RETURN_IF_ERROR(DecodeTo(TJPF_CMYK, picture.width, picture.height, inks));
    MixInks(inks, picture.pixels);
    return picture;
  }

  absl::Status DecodeTo(int format, int width, int height, std::vector<uint8_t>& to) {
    return StatusOf(tjDecompress2(decoder_.get(), data(), file_.size(), to.data(), width,
                                  /*pitch=*/0, height, format,
                                  TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS));
  }

  // Inks are stored inverted, as Adobe's programs do and all others after them: 255 is no ink. The
  // rounding is OpenCV's.
  static void MixInks(const std::vector<uint8_t>& inks, std::vector<uint8_t>& pixels) {
    for (size_t i = 0; i < pixels.size(); ++i) {
      const uint8_t* const pixel = inks.data() + i / Bytes::kChannels * kInks;
      const int black = pixel[kInks - 1];
      pixels[i] = static_cast<uint8_t>(black - ((255 - pixel[i % Bytes::kChannels]) * black >> 8));
    }
  }

  absl::Status StatusOf(int result) const {
    if (result == 0) return absl::OkStatus();
    const absl::string_view problem = tjGetErrorStr2(decoder_.get());
    if (tjGetErrorCode(decoder_.get()) == TJERR_WARNING && IsHarmless(problem)) {
      return absl::OkStatus();
    }
    if (absl::StartsWith(problem, "Unsupported")) return Unimplemented("a JPEG file: ", problem);
    return InvalidArgument("damaged or cut off: ", problem);
  }

  // What libjpeg warns of although no pixel suffers. It tells the first warning of a file alone.
  static bool IsHarmless(absl::string_view problem) {
    constexpr absl::string_view kStrayBytes = "extraneous bytes before marker ";
    // Before 0xd0 to 0xd7, which part what is compressed, they are a part of it.
    const size_t stray = problem.find(kStrayBytes);
    if (stray != absl::string_view::npos) {
      const absl::string_view marker = problem.substr(stray + kStrayBytes.size());
      return !absl::StartsWith(marker, "0xd") || marker > "0xd7";
    }
    return absl::StrContains(problem, "Invalid SOS parameters for sequential JPEG") ||
           absl::StrContains(problem, "Unknown Adobe color transform code") ||
           absl::StrContains(problem, "unknown JFIF revision number");
  }

  absl::string_view file_;
  std::unique_ptr<void, Destroy> decoder_;
  PictureSize size_;  // as stored
  int colours_ = -1;
  Orientation orientation_;
};

// A PNG file. What libpng reports comes back as a jump, so what it is called from has no objects of
// its own.
class Png {
 public:
  explicit Png(absl::string_view file) : left_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
    if (png_ == nullptr) return;
    info_ = png_create_info_struct(png_);
    ok_ = info_ != nullptr && ReadHeader();
  }
  ~Png() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  absl::StatusOr<PictureSize> size() const {
    if (!ok_) return Failed();
    return PictureSize{.width = static_cast<int>(png_get_image_width(png_, info_)),
                       .height = static_cast<int>(png_get_image_height(png_, info_))};
  }
  absl::StatusOr<Bytes> Decode(PictureSize size) {
    Bytes picture = Sized(size.width, size.height);
    if (!ReadRows(picture.pixels.data(), size.height)) return Failed();
    return picture;
  }

 private:
  [[noreturn]] static void OnError(png_structp png, png_const_charp problem) {
    auto* const self = static_cast<Png*>(png_get_error_ptr(png));
    absl::SNPrintF(self->problem_, sizeof(self->problem_), "%s", problem);
    png_longjmp(png, 1);
  }
  static void OnWarning(png_structp /*png*/, png_const_charp /*problem*/) {}
  static void Read(png_structp png, png_bytep to, size_t size) {
    auto* const self = static_cast<Png*>(png_get_io_ptr(png));
    if (size > self->left_.size()) png_error(png, "the file ends");
    std::memcpy(to, self->left_.data(), size);
    self->left_.remove_prefix(size);
  }

  bool ReadHeader() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, Read);
    png_read_info(png_, info_);
    return true;
  }
  // Pixels as they are stored, as OpenCV reads them: of 16 bits the upper 8, without what is said
  // of gamma and transparency.
  bool ReadRows(uint8_t* pixels, int height) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    const size_t row_bytes = png_get_rowbytes(png_, info_);
    if (row_bytes != static_cast<size_t>(png_get_image_width(png_, info_)) * Bytes::kChannels) {
      png_error(png_, "pixels of an unknown size");
    }
    for (int pass = 0; pass < passes; ++pass) {
      for (int y = 0; y < height; ++y) png_read_row(png_, pixels + y * row_bytes, nullptr);
    }
    png_read_end(png_, nullptr);
    return true;
  }

  absl::Status Failed() const { return InvalidArgument("damaged or cut off: ", problem_); }

  absl::string_view left_;  // of the file
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char problem_[128] = "no memory for the PNG decoder";
  bool ok_ = false;
};

absl::Status NoPicture() { return InvalidArgument("no picture: expected a JPEG or PNG file"); }

absl::StatusOr<Bytes> DecodePng(absl::string_view file, size_t max_bytes) {
  Png png(file);
  INTERP_ASSIGN_OR_RETURN(const PictureSize size, png.size());
  INTERP_RETURN_IF_ERROR(CheckSize(size, Bytes::kChannels, max_bytes));
  return png.Decode(size);
}

}  // namespace

absl::StatusOr<PictureSize> SizeOfPicture(absl::string_view file) {
  if (absl::StartsWith(file, kPngMagic)) return Png(file).size();
  if (!absl::StartsWith(file, kJpegMagic)) return NoPicture();
  INTERP_ASSIGN_OR_RETURN(const Jpeg jpeg, Jpeg::Open(file));
  return jpeg.size();
}

absl::StatusOr<Bytes> DecodePicture(absl::string_view file, size_t max_bytes, int shrink) {
  if (absl::StartsWith(file, kPngMagic)) return DecodePng(file, max_bytes);
  if (!absl::StartsWith(file, kJpegMagic)) return NoPicture();
  INTERP_ASSIGN_OR_RETURN(Jpeg jpeg, Jpeg::Open(file));
  INTERP_RETURN_IF_ERROR(CheckSize(jpeg.size(), jpeg.pixel_bytes(), max_bytes));
  return jpeg.Decode(shrink);
}

absl::StatusOr<std::string> ReadPictureFile(const std::string& path, size_t max_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_other(path, ignored)) {
    return InvalidArgument("'", path, "' is not a regular file");
  }
  return ReadFile(path, max_bytes);
}

absl::StatusOr<Bytes> ReadPicture(const std::string& path, size_t max_bytes) {
  INTERP_ASSIGN_OR_RETURN(const std::string file, ReadPictureFile(path, max_bytes));
  return Annotate(DecodePicture(file, max_bytes), path);
}

}  // namespace interp
