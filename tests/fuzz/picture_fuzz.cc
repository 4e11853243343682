// Any bytes as a picture: an error, or a sample whose size is what the header says, decoded whole
// and shrunk.
#include <cstdint>
#include <cstdlib>

#include "core/image/prepare.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  constexpr size_t kMaxBytes = size_t{1} << 22;
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<PictureSize> header = SizeOfPicture(file);
  const absl::StatusOr<Picture<uint8_t>> picture = DecodePicture(file, kMaxBytes);
  if (!picture.ok()) return 0;
  if (!header.ok() || picture->width != header->width || picture->height != header->height) {
    std::abort();
  }
  const RandomStream random({.seed = size}, 0);
  for (const Fit fit : {Fit::kStretch, Fit::kCrop, Fit::kRandom}) {
    const ImagePreparation preparation = {.width = 5, .height = 3, .fit = fit};
    Tensor batch;
    batch.dtype = DType::kUInt8;
    batch.shape = {1, 3, 3, 5};
    if (!batch.Allocate(SystemAllocator()).ok()) return 0;
    // Damage that decoding all of a picture finds, decoding an eighth of it may not, nor the
    // other way round.
    PrepareSample(file, preparation, kMaxBytes, random, 0, batch).IgnoreError();
  }
  return 0;
}
