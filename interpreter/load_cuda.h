// The part of interp that runs programs on GPUs of NVIDIA: a library of its own, libinterp_cuda.so,
// so that machines without one need nothing of CUDA.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/place.h"
#include "core/status.h"

namespace interp {

// Loads libinterp_cuda.so, for good: places "cuda:N" become devices, and ops get their rows for
// them. `path`: where it is; empty: beside the library of interp. Does nothing where it is there
// already, as a program may have been linked with it.
//
// Errors: NotFound when there is no such file (interp was built without -DINTERP_CUDA=ON),
// FailedPrecondition when the system cannot load it (the message is the system's). Whether a GPU
// and its driver are there is told where a device is made: FindDeviceMaker(PlaceKind::kCuda).
//
// Thread-safety: before programs are read; not beside anything that uses ops, other calls of this
// function apart.
absl::Status LoadCuda(const std::string& path = "");

// LoadCuda for a GPU, nothing for other places.
absl::Status LoadForPlace(Place place);

// The place of a name (PlaceFromName), after LoadForPlace. Errors: those of both.
absl::StatusOr<Place> LoadPlace(absl::string_view name);

}  // namespace interp
