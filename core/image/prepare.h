// How a picture becomes a sample: a part of it, resampled, perhaps mirrored, normalised.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/image/decode.h"
#include "core/image/pixels.h"
#include "core/image/resample.h"
#include "core/resource/random_stream.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// What is taken of a picture of another shape than the sample's: all of it, stretched; the middle;
// a part at random.
enum class Fit { kStretch, kCrop, kRandom };
enum class Mirror { kNever, kRandom, kAlways };

// Both ends included.
struct Interval {
  double low = 1;
  double high = 1;
};

struct ImagePreparation {
  int width = 0;  // of the sample; 0: of the picture
  int height = 0;
  Fit fit = Fit::kStretch;
  // Before a part is cut out, the picture is resized until its shorter side has so many pixels, or
  // more where the sample needs them. nullopt: as small as the sample allows; 0: not at all.
  std::optional<int> shorter_side = std::nullopt;
  // With kRandom instead: the part has a share of the picture's area and a ratio of width to height
  // within these (Szegedy et al., 2014).
  std::optional<Interval> area = std::nullopt;
  Interval aspect = {.low = 3.0 / 4, .high = 4.0 / 3};
  Mirror mirror = Mirror::kNever;
  PixelFormat pixels = {};
};

// Which part of a picture becomes the sample. Without `random` it is the middle where it would be
// chosen at random.
PictureWindow ChooseWindow(const PictureSize& picture, const ImagePreparation& preparation,
                           const std::optional<RandomStream>& random);

// Decodes a JPEG or PNG file and writes sample `index` of `batch`; see WritePixels. Without
// `random` nothing is left to chance: see ChooseWindow, and what is mirrored at random stays as it
// is. The same stream gives the same bits on any thread. Errors: those of DecodePicture, and
// InvalidArgument for a picture of another size than the sample's where the preparation has none.
absl::Status PrepareSample(absl::string_view file, const ImagePreparation& preparation,
                           size_t max_bytes, const std::optional<RandomStream>& random,
                           int64_t index, Tensor& batch);

}  // namespace interp
