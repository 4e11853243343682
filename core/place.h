// Place: where memory lies and instructions run.
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"

namespace interp {

enum class PlaceKind : int8_t {
  kCpu,
  kSim,   // the simulated accelerator, see core/device/sim_device.h
  kCuda,  // a GPU of NVIDIA, see core/device/cuda/cuda_device.h
};

// "cpu", "sim:0", "cuda:1". The host has index 0.
struct Place {
  PlaceKind kind = PlaceKind::kCpu;
  int8_t index = 0;

  bool on_host() const { return kind == PlaceKind::kCpu; }
  bool operator==(const Place&) const = default;
};

// "cpu", "sim" or "cuda".
absl::string_view Name(PlaceKind kind);
// "cpu", "sim:1" or "cuda:0".
std::string Name(Place place);

// The place of a name: "cpu", "sim" (number 0), "sim:N" with N < kMaxDevices, and "cuda" or
// "cuda:N" likewise. InvalidArgument otherwise.
inline constexpr int kMaxDevices = 16;
absl::StatusOr<Place> PlaceFromName(absl::string_view name);

}  // namespace interp
