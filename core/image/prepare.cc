#include "core/image/prepare.h"

#include <algorithm>
#include <cmath>

namespace interp {
namespace {

// What each word of a sample's stream decides.
enum Word : uint64_t { kLeftWord, kTopWord, kMirrorWord, kFirstTryWord };
constexpr int kTries = 10;  // of a part of random area and shape, which may not fit

// From 0 to 1, without 1.
double Uniform(const RandomStream& random, uint64_t word) {
  return random.Word(word) / 4294967296.0;
}

double Within(const Interval& interval, double uniform) {
  return interval.low + (interval.high - interval.low) * uniform;
}

// A part of the picture that has the size of the sample once the picture is resized.
PictureWindow CutOut(const PictureSize& picture, const ImagePreparation& preparation,
                     const std::optional<RandomStream>& random) {
  const double least = std::max(static_cast<double>(preparation.width) / picture.width,
                                static_cast<double>(preparation.height) / picture.height);
  double ratio = least;
  if (preparation.shorter_side.has_value()) {
    const int side = *preparation.shorter_side;
    ratio = side == 0 ? 1 : static_cast<double>(side) / std::min(picture.width, picture.height);
    ratio = std::max(ratio, least);
  }
  // The place is a whole number of pixels of the resized picture.
  const auto place = [&](int size, int wanted, Word word) {
    const double room = std::max(0.0, std::round(size * ratio) - wanted);
    const double pixels =
        random.has_value() ? std::floor(Uniform(*random, word) * (room + 1)) : std::floor(room / 2);
    return std::clamp(pixels / ratio, 0.0, std::max(0.0, size - wanted / ratio));
  };
  return {.left = place(picture.width, preparation.width, kLeftWord),
          .top = place(picture.height, preparation.height, kTopWord),
          .width = std::min<double>(picture.width, preparation.width / ratio),
          .height = std::min<double>(picture.height, preparation.height / ratio)};
}

// nullopt when no try fits into the picture.
std::optional<PictureWindow> RandomPart(const PictureSize& picture,
                                        const ImagePreparation& preparation,
                                        const RandomStream& random) {
  const Interval logarithms = {.low = std::log(preparation.aspect.low),
                               .high = std::log(preparation.aspect.high)};
  for (int i = 0; i < kTries; ++i) {
    const uint64_t word = kFirstTryWord + 2 * i;
    const double area = picture.width * static_cast<double>(picture.height) *
                        Within(*preparation.area, Uniform(random, word));
    const double aspect = std::exp(Within(logarithms, Uniform(random, word + 1)));
    const double width = std::round(std::sqrt(area * aspect));
    const double height = std::round(std::sqrt(area / aspect));
    if (width < 1 || height < 1 || width > picture.width || height > picture.height) continue;
    return PictureWindow{
        .left = std::floor(Uniform(random, kLeftWord) * (picture.width - width + 1)),
        .top = std::floor(Uniform(random, kTopWord) * (picture.height - height + 1)),
        .width = width,
        .height = height};
  }
  return std::nullopt;
}

// How much smaller the decoder may make a picture whose window is resampled to width x height.
int ShrinkFor(const PictureWindow& window, int width, int height) {
  for (const int shrink : {8, 4, 2}) {
    if (window.width / shrink >= width && window.height / shrink >= height) return shrink;
  }
  return 1;
}

}  // namespace

PictureWindow ChooseWindow(const PictureSize& picture, const ImagePreparation& preparation,
                           const std::optional<RandomStream>& random) {
  if (preparation.width == 0 || preparation.fit == Fit::kStretch) {
    return {.width = static_cast<double>(picture.width),
            .height = static_cast<double>(picture.height)};
  }
  if (preparation.fit == Fit::kCrop || !random.has_value()) {
    return CutOut(picture, preparation, std::nullopt);
  }
  if (preparation.area.has_value()) {
    if (const std::optional<PictureWindow> part = RandomPart(picture, preparation, *random))
      return *part;
    return CutOut(picture, preparation, std::nullopt);
  }
  return CutOut(picture, preparation, random);
}

absl::Status PrepareSample(absl::string_view file, const ImagePreparation& preparation,
                           size_t max_bytes, const std::optional<RandomStream>& random,
                           int64_t index, Tensor& batch) {
  INTERP_ASSIGN_OR_RETURN(const PictureSize size, SizeOfPicture(file));
  const int width = preparation.width == 0 ? size.width : preparation.width;
  const int height = preparation.height == 0 ? size.height : preparation.height;
  const Shape shape = ShapeOf(width, height, preparation.pixels);
  if (shape.numel() * batch.shape[0] != batch.numel()) {
    return InvalidArgument("a picture of ", ToString(shape), ", expected one of ",
                           ToString(batch.shape), "; give the samples a size");
  }
  PictureWindow window = ChooseWindow(size, preparation, random);
  const int shrink = ShrinkFor(window, width, height);
  INTERP_ASSIGN_OR_RETURN(const Picture<uint8_t> picture, DecodePicture(file, max_bytes, shrink));
  if (picture.width != size.width || picture.height != size.height) {
    window = {.left = window.left / shrink,
              .top = window.top / shrink,
              .width = window.width / shrink,
              .height = window.height / shrink};
  }
  const bool mirror = preparation.mirror == Mirror::kAlways ||
                      (preparation.mirror == Mirror::kRandom && random.has_value() &&
                       Uniform(*random, kMirrorWord) < 0.5);
  return WritePixels(Resample(ViewOf(picture), window, width, height), preparation.pixels, mirror,
                     index, batch);
}

}  // namespace interp
