// Place: where memory lies and instructions run.
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"

namespace interp {

enum class PlaceKind : int8_t {
  kCpu,
  kSim,  // the simulated accelerator, see core/device/sim_device.h
};

// "cpu", "sim:0". The host has index 0.
struct Place {
  PlaceKind kind = PlaceKind::kCpu;
  int8_t index = 0;

  bool on_host() const { return kind == PlaceKind::kCpu; }
  bool operator==(const Place&) const = default;
};

// "cpu" or "sim".
absl::string_view Name(PlaceKind kind);
// "cpu" or "sim:1".
std::string Name(Place place);

// The place of a name: "cpu", "sim" (number 0) or "sim:N" with N < kMaxDevices. InvalidArgument
// otherwise.
inline constexpr int kMaxDevices = 16;
absl::StatusOr<Place> PlaceFromName(absl::string_view name);

}  // namespace interp
