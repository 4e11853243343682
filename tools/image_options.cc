#include "tools/image_options.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tools/option_list.h"
#include "tools/sizes.h"

namespace interp {
namespace {

constexpr int kMaxSide = 1 << 15;

bool IsInteger(DType dtype) { return dtype == DType::kUInt8 || dtype == DType::kInt32; }

// "0.5" or "1/255".
absl::StatusOr<double> ParseFraction(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  double value = 0;
  double divisor = 1;
  const bool ok = parts.size() <= 2 && absl::SimpleAtod(parts[0], &value) &&
                  (parts.size() < 2 || absl::SimpleAtod(parts[1], &divisor)) &&
                  std::isfinite(value / divisor);
  if (!ok) return InvalidArgument("'", text, "' is no number, expected 0.5 or 1/255, for example");
  return value / divisor;
}

absl::StatusOr<std::vector<double>> ParseChannels(absl::string_view text) {
  std::vector<double> values;
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    double value = 0;
    if (!absl::SimpleAtod(part, &value) || !std::isfinite(value)) {
      return InvalidArgument("'", part, "' is no number");
    }
    values.push_back(value);
  }
  if (values.size() != 1 && values.size() != 3) {
    return InvalidArgument("expected one number or three, as in 0.485/0.456/0.406, got '", text,
                           "'");
  }
  return values;
}

absl::StatusOr<std::pair<int, int>> ParseSize(absl::string_view text) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> sides, ParseDims(text));
  const bool fits = (sides.size() == 1 || sides.size() == 2) &&
                    std::all_of(sides.begin(), sides.end(),
                                [](int64_t side) { return side > 0 && side <= kMaxSide; });
  if (!fits) {
    return InvalidArgument("expected size=224 or size=HEIGHTxWIDTH, each up to ", kMaxSide,
                           ", got '", text, "'");
  }
  return std::pair(static_cast<int>(sides.front()), static_cast<int>(sides.back()));
}

// "LOW/HIGH", both above 0.
absl::StatusOr<Interval> ParseInterval(absl::string_view text, double most) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '/');
  Interval interval;
  const bool ok = ends.size() == 2 && absl::SimpleAtod(ends[0], &interval.low) &&
                  absl::SimpleAtod(ends[1], &interval.high) && interval.low > 0 &&
                  interval.low <= interval.high && interval.high <= most;
  if (!ok) {
    return InvalidArgument("expected LOW/HIGH, numbers above 0 and up to ", most, ", got '", text,
                           "'");
  }
  return interval;
}

absl::StatusOr<int> ParseShorterSide(absl::string_view text) {
  int side = 0;
  if (text == "no" || (absl::SimpleAtoi(text, &side) && side > 0 && side <= kMaxSide)) return side;
  return InvalidArgument("expected 'no' or pixels up to ", kMaxSide, ", got '", text, "'");
}

absl::StatusOr<std::vector<double>> ParseDeviation(absl::string_view text) {
  INTERP_ASSIGN_OR_RETURN(std::vector<double> deviation, ParseChannels(text));
  if (std::count(deviation.begin(), deviation.end(), 0) > 0) {
    return InvalidArgument("a deviation of 0 cannot be divided by");
  }
  return deviation;
}

absl::Status SetPixels(absl::string_view name, absl::string_view value, PixelFormat& pixels) {
  if (name == "color") {
    INTERP_ASSIGN_OR_RETURN(const size_t colour, ParseChoice(value, {"rgb", "bgr", "gray"}));
    pixels.colour = static_cast<Colour>(colour);
  } else if (name == "scale") {
    INTERP_ASSIGN_OR_RETURN(pixels.scale, ParseFraction(value));
  } else if (name == "mean") {
    INTERP_ASSIGN_OR_RETURN(pixels.mean, ParseChannels(value));
  } else if (name == "std") {
    INTERP_ASSIGN_OR_RETURN(pixels.deviation, ParseDeviation(value));
  } else {
    INTERP_ASSIGN_OR_RETURN(const size_t layout, ParseChoice(value, {"nchw", "nhwc"}));
    pixels.channels_last = layout == 1;
  }
  return absl::OkStatus();
}

absl::Status SetShape(absl::string_view name, absl::string_view value,
                      std::initializer_list<absl::string_view> fits,
                      ImagePreparation& preparation) {
  if (name == "size") {
    INTERP_ASSIGN_OR_RETURN(const auto size, ParseSize(value));
    std::tie(preparation.height, preparation.width) = size;
  } else {
    INTERP_ASSIGN_OR_RETURN(const size_t fit, ParseChoice(value, fits));
    preparation.fit = static_cast<Fit>(fit);
  }
  return absl::OkStatus();
}

absl::Status SetChance(absl::string_view name, absl::string_view value,
                       ImagePreparation& preparation) {
  constexpr double kMostAspect = 100;
  if (name == "resize") {
    INTERP_ASSIGN_OR_RETURN(preparation.shorter_side, ParseShorterSide(value));
  } else if (name == "area") {
    INTERP_ASSIGN_OR_RETURN(preparation.area, ParseInterval(value, 1));
  } else if (name == "aspect") {
    INTERP_ASSIGN_OR_RETURN(preparation.aspect, ParseInterval(value, kMostAspect));
  } else {
    INTERP_ASSIGN_OR_RETURN(const size_t mirror, ParseChoice(value, {"no", "random", "yes"}));
    preparation.mirror = static_cast<Mirror>(mirror);
  }
  return absl::OkStatus();
}

bool IsOneOf(absl::string_view name, std::initializer_list<absl::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool IsOneValue(const std::vector<double>& values) { return values.size() == 1; }

}  // namespace

ImagePreparation PreparationFor(DType dtype, absl::Span<const int64_t> dims) {
  ImagePreparation preparation;
  if (!IsInteger(dtype)) preparation.pixels.scale = 1.0 / 255;
  if (dims.size() == 4) dims.remove_prefix(1);
  if (dims.size() != 3) return preparation;
  const auto are_channels = [](int64_t dim) { return dim == 1 || dim == 3; };
  const bool last = !are_channels(dims[0]) && are_channels(dims[2]);
  const int64_t channels = dims[last ? 2 : 0];
  const int64_t height = dims[last ? 0 : 1];
  const int64_t width = dims[last ? 1 : 2];
  preparation.pixels.channels_last = last;
  if (channels == 1) preparation.pixels.colour = Colour::kGray;
  const auto fits = [](int64_t side) { return side > 0 && side <= kMaxSide; };
  if (fits(height) && fits(width)) {
    preparation.height = static_cast<int>(height);
    preparation.width = static_cast<int>(width);
  }
  return preparation;
}

absl::Status SetImageOption(absl::string_view name, absl::string_view value,
                            ImagePreparation& preparation) {
  if (IsOneOf(name, {"size", "fit"})) {
    return Annotate(SetShape(name, value, {"stretch", "crop"}, preparation), name);
  }
  if (IsOneOf(name, {"color", "scale", "mean", "std", "layout"})) {
    return Annotate(SetPixels(name, value, preparation.pixels), name);
  }
  return Annotate(NoOption(name, {"size", "fit", "color", "scale", "mean", "std", "layout"}), name);
}

absl::Status SetAugmentOption(absl::string_view name, absl::string_view value,
                              ImagePreparation& preparation) {
  if (name == "fit") {
    return Annotate(SetShape(name, value, {"stretch", "crop", "random"}, preparation), name);
  }
  if (IsOneOf(name, {"resize", "area", "aspect", "mirror"})) {
    return Annotate(SetChance(name, value, preparation), name);
  }
  if (IsOneOf(name, {"size", "color", "scale", "mean", "std", "layout"})) {
    return SetImageOption(name, value, preparation);
  }
  return Annotate(NoOption(name, {"size", "fit", "resize", "area", "aspect", "mirror", "color",
                                  "scale", "mean", "std", "layout"}),
                  name);
}

absl::Status CheckImageOptions(const ImagePreparation& preparation) {
  const PixelFormat& pixels = preparation.pixels;
  if (pixels.colour != Colour::kGray) return absl::OkStatus();
  if (IsOneValue(pixels.mean) && IsOneValue(pixels.deviation)) return absl::OkStatus();
  return InvalidArgument("mean and std: expected one number for color=gray, got three");
}

}  // namespace interp
