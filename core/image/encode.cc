#include "core/image/encode.h"

#include <png.h>
#include <turbojpeg.h>

#include <memory>

#include "core/base/annotate.h"
#include "core/io/file.h"

namespace interp {

absl::StatusOr<std::string> EncodeJpeg(const Picture<uint8_t>& picture, int quality) {
  struct Destroy {
    void operator()(void* handle) const { tjDestroy(handle); }
    void operator()(unsigned char* bytes) const { tjFree(bytes); }
  };
  const std::unique_ptr<void, Destroy> encoder(tjInitCompress());
  if (encoder == nullptr) return ResourceExhausted("no memory for the JPEG encoder");
  unsigned char* bytes = nullptr;
  unsigned long size_bytes = 0;  // NOLINT(google-runtime-int): libjpeg-turbo's type
  const int failed =
      tjCompress2(encoder.get(), picture.pixels.data(), picture.width, /*pitch=*/0, picture.height,
                  TJPF_RGB, &bytes, &size_bytes, TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, Destroy> owner(bytes);
  if (failed != 0) return InvalidArgument("cannot be a JPEG: ", tjGetErrorStr2(encoder.get()));
  return std::string(reinterpret_cast<const char*>(bytes), size_bytes);
}

absl::StatusOr<std::string> EncodePng(const Picture<uint8_t>& picture) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size_bytes = file.size();
  if (png_image_write_to_memory(&image, file.data(), &size_bytes, /*convert_to_8_bit=*/0,
                                picture.pixels.data(), /*row_stride=*/0, nullptr) == 0) {
    return absl::InternalError(image.message);
  }
  file.resize(size_bytes);
  return file;
}

absl::Status WritePng(const std::string& path, const Picture<uint8_t>& picture) {
  INTERP_ASSIGN_OR_RETURN(const std::string file,
                          Annotate(EncodePng(picture), absl::StrCat("'", path, "'")));
  INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(writer.Append(file));
  return writer.Commit();
}

}  // namespace interp
