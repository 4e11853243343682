#include "tools/image_feed.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tools/option_list.h"
#include "tools/picture.h"
#include "tools/sizes.h"

namespace interp {
namespace {

constexpr int kMaxSide = 1 << 15;

enum class Colour { kRgb, kBgr, kGray };

struct Options {
  std::optional<std::pair<int, int>> size;  // height, width
  bool crop = false;
  Colour colour = Colour::kRgb;
  double scale = 1;
  std::vector<double> mean = {0};  // one for all channels, or one for each
  std::vector<double> deviation = {1};
  bool channels_last = false;

  int channels() const { return colour == Colour::kGray ? 1 : 3; }
};

DType DTypeOfFeed(const FeedTarget& target) {
  const bool declared = target.var != nullptr && target.var->dtype != DType::kUndefined;
  return declared ? target.var->dtype : DType::kFloat32;
}

bool IsInteger(DType dtype) { return dtype == DType::kUInt8 || dtype == DType::kInt32; }

// What follows from the declaration: dims may lack the batch.
Options DefaultsOf(const FeedTarget& target) {
  Options options;
  if (!IsInteger(DTypeOfFeed(target))) options.scale = 1.0 / 255;
  if (target.var == nullptr) return options;
  std::vector<int64_t> dims = target.var->dims;
  if (dims.size() == 4) dims.erase(dims.begin());
  if (dims.size() != 3) return options;
  const auto are_channels = [](int64_t dim) { return dim == 1 || dim == 3; };
  options.channels_last = !are_channels(dims[0]) && are_channels(dims[2]);
  const int64_t channels = dims[options.channels_last ? 2 : 0];
  const int64_t height = dims[options.channels_last ? 0 : 1];
  const int64_t width = dims[options.channels_last ? 1 : 2];
  if (channels == 1) options.colour = Colour::kGray;
  const auto fits = [](int64_t side) { return side > 0 && side <= kMaxSide; };
  if (fits(height) && fits(width)) options.size.emplace(height, width);
  return options;
}

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

absl::Status SetOption(absl::string_view name, absl::string_view value, Options& options) {
  if (name == "size") {
    INTERP_ASSIGN_OR_RETURN(options.size, ParseSize(value));
  } else if (name == "fit") {
    INTERP_ASSIGN_OR_RETURN(const size_t fit, ParseChoice(value, {"stretch", "crop"}));
    options.crop = fit == 1;
  } else if (name == "color") {
    INTERP_ASSIGN_OR_RETURN(const size_t colour, ParseChoice(value, {"rgb", "bgr", "gray"}));
    options.colour = static_cast<Colour>(colour);
  } else if (name == "scale") {
    INTERP_ASSIGN_OR_RETURN(options.scale, ParseFraction(value));
  } else if (name == "mean") {
    INTERP_ASSIGN_OR_RETURN(options.mean, ParseChannels(value));
  } else if (name == "std") {
    INTERP_ASSIGN_OR_RETURN(options.deviation, ParseChannels(value));
    if (std::count(options.deviation.begin(), options.deviation.end(), 0) > 0) {
      return InvalidArgument("a deviation of 0 cannot be divided by");
    }
  } else if (name == "layout") {
    INTERP_ASSIGN_OR_RETURN(const size_t layout, ParseChoice(value, {"nchw", "nhwc"}));
    options.channels_last = layout == 1;
  } else {
    return NoOption(name, {"size", "fit", "color", "scale", "mean", "std", "layout"});
  }
  return absl::OkStatus();
}

// The path and the options behind it.
absl::StatusOr<std::pair<std::string, Options>> Parse(const FeedTarget& target,
                                                      absl::string_view description) {
  Options options = DefaultsOf(target);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(std::string(description), ignored)) {
    return std::pair(std::string(description), options);
  }
  INTERP_ASSIGN_OR_RETURN(const OptionList list, SplitOptions(description, "size=224"));
  for (const auto& [name, value] : list.options) {
    const absl::Status set = SetOption(name, value, options);
    if (!set.ok()) return Annotate(set, name);
  }
  return std::pair(std::string(list.head), options);
}

// What `fit` takes of the picture.
PictureRegion RegionFed(int width, int height, const Options& options) {
  PictureRegion region{.width = width, .height = height, .fed_width = width, .fed_height = height};
  if (options.size.has_value()) std::tie(region.fed_height, region.fed_width) = *options.size;
  if (!options.crop) return region;
  const double ratio = std::max(static_cast<double>(region.fed_width) / width,
                                static_cast<double>(region.fed_height) / height);
  const auto side = [&](int wanted, int most) {
    return std::clamp(static_cast<int>(std::lround(wanted / ratio)), 1, most);
  };
  region.width = side(region.fed_width, width);
  region.height = side(region.fed_height, height);
  region.left = (width - region.width) / 2;
  region.top = (height - region.height) / 2;
  return region;
}

Picture<float> Crop(const Picture<uint8_t>& picture, const PictureRegion& region) {
  constexpr int kChannels = Picture<float>::kChannels;
  Picture<float> out{region.width, region.height};
  out.pixels.reserve(static_cast<size_t>(region.width) * region.height * kChannels);
  for (int y = 0; y < region.height; ++y) {
    const int64_t first = static_cast<int64_t>(region.top + y) * picture.width + region.left;
    const auto from = picture.pixels.begin() + first * kChannels;
    out.pixels.insert(out.pixels.end(), from, from + int64_t{region.width} * kChannels);
  }
  return out;
}

// Cropping comes first: what is cut off needs no memory.
absl::StatusOr<Picture<float>> Fit(const Picture<uint8_t>& picture, const PictureRegion& region,
                                   size_t max_bytes) {
  const int width = region.fed_width;
  const int height = region.fed_height;
  // The rows are resized before the columns.
  const size_t row_bytes = sizeof(float) * Picture<float>::kChannels * width;
  if (row_bytes > max_bytes / std::max(height, picture.height)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("resizing ", picture.height, " x ", picture.width, " pixels to ", height,
                     " x ", width, " takes more than ", max_bytes, " bytes (--max-file-memory)"));
  }
  return Resize(Crop(picture, region), width, height);
}

// Channel `c` of a pixel, from 0 to 255. Grey as in Recommendation ITU-R BT.601.
float ChannelOf(const float* pixel, int c, Colour colour) {
  if (colour == Colour::kRgb) return pixel[c];
  if (colour == Colour::kBgr) return pixel[2 - c];
  return 0.299F * pixel[0] + 0.587F * pixel[1] + 0.114F * pixel[2];
}

template <typename T>
T ToElement(double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
    return static_cast<T>(std::clamp(std::round(value), kLow, kHigh));
  } else {
    return T(static_cast<float>(value));
  }
}

template <typename T>
void Fill(const Picture<float>& picture, const Options& options, T* to) {
  const int64_t pixels = static_cast<int64_t>(picture.width) * picture.height;
  const int channels = options.channels();
  for (int64_t i = 0; i < pixels; ++i) {
    for (int c = 0; c < channels; ++c) {
      const double mean = options.mean[options.mean.size() == 1 ? 0 : c];
      const double deviation = options.deviation[options.deviation.size() == 1 ? 0 : c];
      const float pixel =
          ChannelOf(picture.pixels.data() + i * Picture<float>::kChannels, c, options.colour);
      to[options.channels_last ? i * channels + c : c * pixels + i] =
          ToElement<T>((pixel * options.scale - mean) / deviation);
    }
  }
}

absl::Status FillTensor(const Picture<float>& picture, const Options& options, Tensor& tensor) {
  switch (tensor.dtype) {
    case DType::kFloat32:
      Fill(picture, options, tensor.mutable_data<float>());
      return absl::OkStatus();
    case DType::kFloat16:
      Fill(picture, options, tensor.mutable_data<float16>());
      return absl::OkStatus();
    case DType::kBFloat16:
      Fill(picture, options, tensor.mutable_data<bfloat16>());
      return absl::OkStatus();
    case DType::kUInt8:
      Fill(picture, options, tensor.mutable_data<uint8_t>());
      return absl::OkStatus();
    case DType::kInt32:
      Fill(picture, options, tensor.mutable_data<int32_t>());
      return absl::OkStatus();
    default:
      return InvalidArgument("no picture can be fed as ", Name(tensor.dtype));
  }
}

}  // namespace

absl::StatusOr<Tensor> ReadImageFeed(const FeedTarget& target, absl::string_view description,
                                     size_t max_bytes, std::vector<FedPicture>* pictures) {
  INTERP_ASSIGN_OR_RETURN(const auto parsed, Parse(target, description));
  const auto& [path, options] = parsed;
  INTERP_ASSIGN_OR_RETURN(Picture<uint8_t> read, ReadPicture(path, max_bytes));
  const PictureRegion region = RegionFed(read.width, read.height, options);
  INTERP_ASSIGN_OR_RETURN(const Picture<float> picture, Fit(read, region, max_bytes));
  std::vector<int64_t> dims = {1, options.channels(), picture.height, picture.width};
  if (options.channels_last) dims = {1, picture.height, picture.width, options.channels()};
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, MakeFeed(DTypeOfFeed(target), dims));
  INTERP_RETURN_IF_ERROR(FillTensor(picture, options, tensor));
  if (pictures != nullptr) pictures->push_back({target.name, std::move(read), region});
  return tensor;
}

}  // namespace interp
