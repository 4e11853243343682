// --boxes of `interp run`: what a detector found, drawn over the picture that it was fed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/json_writer.h"
#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"
#include "tools/image_feed.h"

namespace interp {

// What the numbers of a box are.
enum class BoxCoordinates {
  kPicture,   // pixels of the picture as it is in its file
  kFed,       // pixels of the picture as it was fed: cropped and resized
  kRelative,  // from 0 to 1, parts of what was fed
};

struct BoxesRequest {
  std::string variable;
  std::string path;  // of the PNG file to write
  double threshold = 0.5;
  BoxCoordinates coordinates = BoxCoordinates::kPicture;
  FedPicture fed = {};  // what is drawn over
};

// "VARIABLE=FILE.png[,threshold=0.5][,coordinates=picture|fed|relative][,feed=NAME]". `feed`
// chooses one of `pictures` where several are fed. Errors: NotFound for the variable,
// InvalidArgument.
absl::StatusOr<BoxesRequest> ReadBoxesRequest(const Program& program, const std::string& argument,
                                              std::vector<FedPicture> pictures);

struct DrawnBoxes {
  std::string name;  // of the variable
  std::string path;
  double threshold = 0;
  int64_t num_found = 0;
  int64_t num_drawn = 0;
  int64_t num_outside = 0;   // of the picture, though of a score that is drawn
  std::string problem = {};  // the boxes look as if their coordinates were others
};

// Draws the detections of the variable (detections.h) with scores from the threshold on, and writes
// the picture. REQUIRES: the variable is one of `fetched`.
absl::StatusOr<DrawnBoxes> DrawBoxes(const BoxesRequest& request,
                                     const std::vector<NamedTensor>& fetched,
                                     absl::Span<const std::string> labels);

// One line.
std::string FormatBoxes(const DrawnBoxes& boxes);
void WriteJson(const DrawnBoxes& boxes, JsonWriter& json);

}  // namespace interp
