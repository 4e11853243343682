// What makes devices of a kind of place, for kinds that a library of their own brings along.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/place.h"
#include "core/status.h"

namespace interp {

// Functions of such a library. Thread-safety: all of them.
struct DeviceMaker {
  // One line for each device that there is, by index, for people: "NVIDIA H100, 80 GiB, ...".
  // FailedPrecondition where the driver does not answer.
  absl::StatusOr<std::vector<std::string>> (*describe)() = nullptr;
  // Device `index`; the same one as long as somebody holds it. NotFound where there is none.
  absl::StatusOr<std::shared_ptr<Device>> (*make)(int index) = nullptr;
};

// Called when the library is loaded (interpreter/load_cuda.h), before programs are read.
void RegisterDeviceMaker(PlaceKind kind, const DeviceMaker& maker);
// The maker of that kind, or null.
const DeviceMaker* FindDeviceMaker(PlaceKind kind);

}  // namespace interp
