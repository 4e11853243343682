#include "core/image/decode.h"

#include <png.h>
#include <turbojpeg.h>

#include <memory>

#include "absl/strings/match.h"
#include "core/io/file.h"

namespace interp {
namespace {

using Bytes = Picture<uint8_t>;

constexpr absl::string_view kJpegMagic = "\xff\xd8\xff";
constexpr absl::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

absl::Status CheckSize(uint64_t width, uint64_t height, size_t max_bytes) {
  if (width == 0 || height == 0) return InvalidArgument("the picture has no pixels");
  if (width > max_bytes / Bytes::kChannels / height) {
    return absl::ResourceExhaustedError(absl::StrCat("a picture of ", width, " x ", height,
                                                     " pixels takes more than ", max_bytes,
                                                     " bytes (--max-file-memory)"));
  }
  return absl::OkStatus();
}

Bytes Sized(int width, int height) {
  Bytes picture{width, height};
  picture.pixels.resize(static_cast<size_t>(width) * height * Bytes::kChannels);
  return picture;
}

// A JPEG file whose header has been read.
class Jpeg {
 public:
  static absl::StatusOr<Jpeg> Open(absl::string_view file) {
    Jpeg jpeg(file);
    if (jpeg.decoder_ == nullptr) return ResourceExhausted("no memory for the JPEG decoder");
    int sampling = 0;
    int colours = 0;
    if (tjDecompressHeader3(jpeg.decoder_.get(), jpeg.data(), file.size(), &jpeg.size_.width,
                            &jpeg.size_.height, &sampling, &colours) != 0) {
      return jpeg.Failed();
    }
    return jpeg;
  }
  PictureSize size() const { return size_; }

  absl::StatusOr<Bytes> Decode(int shrink) {
    const tjscalingfactor factor = {1, shrink};
    const int width = TJSCALED(size_.width, factor);
    const int height = TJSCALED(size_.height, factor);
    Bytes picture = Sized(width, height);
    if (tjDecompress2(decoder_.get(), data(), file_.size(), picture.pixels.data(), width,
                      /*pitch=*/0, height, TJPF_RGB,
                      TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0) {
      return Failed();
    }
    return picture;
  }

 private:
  struct Destroy {
    void operator()(void* handle) const { tjDestroy(handle); }
  };

  explicit Jpeg(absl::string_view file) : file_(file), decoder_(tjInitDecompress()) {}
  const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(file_.data()); }
  absl::Status Failed() const {
    return InvalidArgument("damaged or cut off: ", tjGetErrorStr2(decoder_.get()));
  }

  absl::string_view file_;
  std::unique_ptr<void, Destroy> decoder_;
  PictureSize size_;
};

// libpng's simple interface; what it holds is freed with the object.
class Png {
 public:
  explicit Png(absl::string_view file) {
    image_.version = PNG_IMAGE_VERSION;
    ok_ = png_image_begin_read_from_memory(&image_, file.data(), file.size()) != 0;
  }
  ~Png() { png_image_free(&image_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  absl::StatusOr<PictureSize> size() const {
    if (!ok_) return Failed();
    return PictureSize{.width = static_cast<int>(image_.width),
                       .height = static_cast<int>(image_.height)};
  }
  absl::StatusOr<Bytes> Decode() {
    Bytes picture = Sized(static_cast<int>(image_.width), static_cast<int>(image_.height));
    image_.format = PNG_FORMAT_RGB;
    const png_color black = {0, 0, 0};
    if (png_image_finish_read(&image_, &black, picture.pixels.data(), /*row_stride=*/0, nullptr) ==
        0) {
      return Failed();
    }
    return picture;
  }

 private:
  absl::Status Failed() const { return InvalidArgument("damaged or cut off: ", image_.message); }

  png_image image_ = {};
  bool ok_ = false;
};

absl::Status NoPicture() { return InvalidArgument("no picture: expected a JPEG or PNG file"); }

absl::StatusOr<Bytes> DecodePng(absl::string_view file, size_t max_bytes) {
  Png png(file);
  INTERP_ASSIGN_OR_RETURN(const PictureSize size, png.size());
  INTERP_RETURN_IF_ERROR(CheckSize(size.width, size.height, max_bytes));
  return png.Decode();
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
  INTERP_RETURN_IF_ERROR(CheckSize(jpeg.size().width, jpeg.size().height, max_bytes));
  return jpeg.Decode(shrink);
}

absl::StatusOr<Bytes> ReadPicture(const std::string& path, size_t max_bytes) {
  INTERP_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, max_bytes));
  absl::StatusOr<Bytes> picture = DecodePicture(file, max_bytes);
  if (!picture.ok()) return Annotate(picture.status(), path);
  return picture;
}

}  // namespace interp
