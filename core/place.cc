#include "core/place.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace interp {

absl::string_view Name(PlaceKind kind) {
  constexpr absl::string_view kNames[] = {"cpu", "sim", "cuda"};
  return kNames[static_cast<int>(kind)];
}

std::string Name(Place place) {
  if (place.on_host()) return "cpu";
  return absl::StrCat(Name(place.kind), ":", static_cast<int>(place.index));
}

absl::StatusOr<Place> PlaceFromName(absl::string_view name) {
  if (name == "cpu") return Place{};
  for (const PlaceKind kind : {PlaceKind::kSim, PlaceKind::kCuda}) {
    absl::string_view rest = name;
    int index = 0;
    if (!absl::ConsumePrefix(&rest, Name(kind))) continue;
    if (rest.empty() || (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &index) &&
                         index >= 0 && index < kMaxDevices)) {
      return Place{kind, static_cast<int8_t>(index)};
    }
  }
  return InvalidArgument("no place is named '", name,
                         "'; there are: cpu, sim:0 to sim:", kMaxDevices - 1,
                         " and cuda:0 to cuda:", kMaxDevices - 1);
}

}  // namespace interp
