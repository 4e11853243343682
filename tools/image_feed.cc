#include "tools/image_feed.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/image/decode.h"
#include "core/image/pixels.h"
#include "core/image/resample.h"
#include "tools/image_options.h"
#include "tools/option_list.h"

namespace interp {
namespace {

DType DTypeOfFeed(const FeedTarget& target) {
  const bool declared = target.var != nullptr && target.var->dtype != DType::kUndefined;
  return declared ? target.var->dtype : DType::kFloat32;
}

// Whether all of it is the path of a file, whose name has commas.
bool IsWholePath(absl::string_view description) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::string(description), ignored);
}

// The path and the options behind it.
absl::StatusOr<std::pair<std::string, ImagePreparation>> Parse(const FeedTarget& target,
                                                               absl::string_view description) {
  ImagePreparation preparation = PreparationFor(
      DTypeOfFeed(target), target.var != nullptr ? target.var->dims : std::vector<int64_t>());
  if (IsWholePath(description)) return std::pair(std::string(description), preparation);
  INTERP_ASSIGN_OR_RETURN(const OptionList list, SplitOptions(description, "size=224"));
  for (const auto& [name, value] : list.options) {
    INTERP_RETURN_IF_ERROR(SetImageOption(name, value, preparation));
  }
  INTERP_RETURN_IF_ERROR(CheckImageOptions(preparation));
  return std::pair(std::string(list.head), preparation);
}

// What `fit` takes of the picture.
PictureRegion RegionFed(int width, int height, const ImagePreparation& preparation) {
  PictureRegion region{.width = width, .height = height, .fed_width = width, .fed_height = height};
  if (preparation.width > 0) {
    region.fed_width = preparation.width;
    region.fed_height = preparation.height;
  }
  if (preparation.fit == Fit::kStretch) return region;
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

absl::StatusOr<Picture<float>> Take(const Picture<uint8_t>& picture, const PictureRegion& region,
                                    size_t max_bytes) {
  const size_t pixel_bytes = sizeof(float) * Picture<float>::kChannels;
  if (pixel_bytes * region.fed_width > max_bytes / region.fed_height) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "resizing ", picture.height, " x ", picture.width, " pixels to ", region.fed_height, " x ",
        region.fed_width, " takes more than ", max_bytes, " bytes (--max-file-memory)"));
  }
  const PictureView part =
      Cut(ViewOf(picture), region.left, region.top, region.width, region.height);
  return Resize(part, region.fed_width, region.fed_height);
}

}  // namespace

absl::StatusOr<Tensor> ReadImageFeed(const FeedTarget& target, absl::string_view description,
                                     size_t max_bytes, std::vector<FedPicture>* pictures) {
  INTERP_ASSIGN_OR_RETURN(const auto parsed, Parse(target, description));
  const auto& [path, preparation] = parsed;
  absl::StatusOr<Picture<uint8_t>> decoded = ReadPicture(path, max_bytes);
  if (absl::IsResourceExhausted(decoded.status())) {
    return ResourceExhausted(decoded.status().message(), " (--max-file-memory)");
  }
  INTERP_ASSIGN_OR_RETURN(Picture<uint8_t> read, std::move(decoded));
  const PictureRegion region = RegionFed(read.width, read.height, preparation);
  INTERP_ASSIGN_OR_RETURN(const Picture<float> picture, Take(read, region, max_bytes));
  std::vector<int64_t> dims = {1};
  for (const int64_t dim : ShapeOf(picture.width, picture.height, preparation.pixels)) {
    dims.push_back(dim);
  }
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, MakeFeed(DTypeOfFeed(target), dims));
  INTERP_RETURN_IF_ERROR(
      WritePixels(picture, preparation.pixels, /*mirror=*/false, /*index=*/0, tensor));
  if (pictures != nullptr) pictures->push_back({target.name, std::move(read), region});
  return tensor;
}

std::string FileOfImageFeed(absl::string_view description) {
  if (IsWholePath(description)) return std::string(description);
  return std::string(description.substr(0, description.find(',')));
}

}  // namespace interp
