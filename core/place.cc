#include "core/place.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace interp {

absl::string_view Name(PlaceKind kind) { return kind == PlaceKind::kCpu ? "cpu" : "sim"; }

std::string Name(Place place) {
  if (place.on_host()) return "cpu";
  return absl::StrCat(Name(place.kind), ":", static_cast<int>(place.index));
}

absl::StatusOr<Place> PlaceFromName(absl::string_view name) {
  absl::string_view rest = name;
  if (name == "cpu") return Place{};
  if (absl::ConsumePrefix(&rest, "sim")) {
    int index = 0;
    if (rest.empty() || (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &index) &&
                         index >= 0 && index < kMaxDevices)) {
      return Place{PlaceKind::kSim, static_cast<int8_t>(index)};
    }
  }
  return InvalidArgument("no place is named '", name,
                         "'; there are: cpu, sim and sim:0 to sim:", kMaxDevices - 1);
}

}  // namespace interp
