#include "tools/boxes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "core/image/encode.h"
#include "tools/detections.h"
#include "tools/names.h"
#include "tools/option_list.h"
#include "tools/sizes.h"

namespace interp {
namespace {

// The options behind the file. `feed`: that of the option, left alone without it.
absl::Status SetOption(absl::string_view name, absl::string_view value, BoxesRequest& request,
                       std::string& feed) {
  if (name == "threshold") {
    if (!absl::SimpleAtod(value, &request.threshold) || !std::isfinite(request.threshold)) {
      return InvalidArgument("'", value, "' is no number");
    }
  } else if (name == "coordinates") {
    INTERP_ASSIGN_OR_RETURN(const size_t choice,
                            ParseChoice(value, {"picture", "fed", "relative"}));
    request.coordinates = static_cast<BoxCoordinates>(choice);
  } else if (name == "feed") {
    feed = std::string(value);
  } else {
    return NoOption(name, {"threshold", "coordinates", "feed"});
  }
  return absl::OkStatus();
}

std::string NamesOf(const std::vector<FedPicture>& pictures) {
  return absl::StrJoin(pictures, ", ", [](std::string* text, const FedPicture& picture) {
    absl::StrAppend(text, "'", picture.feed, "'");
  });
}

// `feed`: its name; empty for the only one there is.
absl::StatusOr<FedPicture> Choose(const std::string& feed, std::vector<FedPicture> pictures) {
  if (pictures.empty()) {
    return InvalidArgument(
        "boxes are drawn over a picture that is fed, and none is; feed one with "
        "--feed NAME=image:FILE");
  }
  if (feed.empty() && pictures.size() > 1) {
    return InvalidArgument("several pictures are fed, ", NamesOf(pictures),
                           "; choose one with feed=NAME");
  }
  for (FedPicture& picture : pictures) {
    if (feed.empty() || picture.feed == feed) return std::move(picture);
  }
  return InvalidArgument("feed: no picture is fed to '", feed, "', but to ", NamesOf(pictures));
}

Point InPicture(const Point& point, BoxCoordinates coordinates, const PictureRegion& region) {
  if (coordinates == BoxCoordinates::kPicture) return point;
  const bool relative = coordinates == BoxCoordinates::kRelative;
  return {region.left + point.x * region.width / (relative ? 1 : region.fed_width),
          region.top + point.y * region.height / (relative ? 1 : region.fed_height)};
}

// True when the points of all detections lie about where those of relative coordinates do.
bool LookRelative(absl::Span<const Detection> detections) {
  const auto relative = [](double at) { return at > -0.5 && at < 1.5; };
  return !detections.empty() &&
         std::all_of(detections.begin(), detections.end(), [&](const Detection& detection) {
           return std::all_of(
               detection.points.begin(), detection.points.end(),
               [&](const Point& point) { return relative(point.x) && relative(point.y); });
         });
}

}  // namespace

absl::StatusOr<BoxesRequest> ReadBoxesRequest(const Program& program, const std::string& argument,
                                              std::vector<FedPicture> pictures) {
  const auto assignment = SplitAssignment(program, argument);
  if (!assignment.has_value()) {
    return InvalidArgument("expected VARIABLE=FILE.png, as in boxes=found.png,threshold=0.3");
  }
  BoxesRequest request{.variable = assignment->first, .path = {}};
  INTERP_RETURN_IF_ERROR(CheckName(program, request.variable));
  INTERP_ASSIGN_OR_RETURN(const OptionList list, SplitOptions(assignment->second, "threshold=0.3"));
  request.path = std::string(list.head);
  if (!absl::EndsWith(request.path, ".png")) {
    return InvalidArgument("'", request.path, "' does not end in .png");
  }
  std::string feed;
  for (const auto& [name, value] : list.options) {
    INTERP_RETURN_IF_ERROR(Annotate(SetOption(name, value, request, feed), name));
  }
  INTERP_ASSIGN_OR_RETURN(request.fed, Choose(feed, std::move(pictures)));
  return request;
}

absl::StatusOr<DrawnBoxes> DrawBoxes(const BoxesRequest& request,
                                     const std::vector<NamedTensor>& fetched,
                                     absl::Span<const std::string> labels) {
  const auto found = std::find_if(fetched.begin(), fetched.end(), [&](const NamedTensor& tensor) {
    return tensor.first == request.variable;
  });
  INTERP_ASSIGN_OR_RETURN(std::vector<Detection> detections, ReadDetections(*found));
  DrawnBoxes drawn{.name = request.variable,
                   .path = request.path,
                   .threshold = request.threshold,
                   .num_found = std::ssize(detections)};
  // NaN is no score that is drawn.
  std::erase_if(detections, [&](const Detection& detection) {
    return !(detection.score >= request.threshold);
  });
  if (request.coordinates != BoxCoordinates::kRelative && LookRelative(detections)) {
    drawn.problem = "all lie within 0 to 1: coordinates=relative?";
  }
  for (Detection& detection : detections) {
    for (Point& point : detection.points) {
      point = InPicture(point, request.coordinates, request.fed.region);
    }
  }
  Picture<uint8_t> picture = request.fed.picture;
  drawn.num_drawn = DrawDetections(detections, labels, picture);
  drawn.num_outside = std::ssize(detections) - drawn.num_drawn;
  INTERP_RETURN_IF_ERROR(WritePng(request.path, picture));
  return drawn;
}

std::string FormatBoxes(const DrawnBoxes& boxes) {
  std::string text =
      absl::StrCat(boxes.path, ": ", boxes.num_drawn, " of ", Counted(boxes.num_found, "box"),
                   " of ", boxes.name, ", those with a score from ", boxes.threshold, " on");
  if (boxes.num_outside > 0) {
    absl::StrAppend(&text, "; ", boxes.num_outside, " more lie outside of the picture");
  }
  if (!boxes.problem.empty()) absl::StrAppend(&text, "; ", boxes.problem);
  return text;
}

void WriteJson(const DrawnBoxes& boxes, JsonWriter& json) {
  json.BeginObject();
  json.Field("name", boxes.name);
  json.Field("file", boxes.path);
  json.Field("threshold", boxes.threshold);
  json.Field("found", boxes.num_found);
  json.Field("drawn", boxes.num_drawn);
  json.Field("outside", boxes.num_outside);
  if (!boxes.problem.empty()) json.Field("problem", boxes.problem);
  json.EndObject();
}

}  // namespace interp
