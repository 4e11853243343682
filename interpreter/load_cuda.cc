#include "interpreter/load_cuda.h"

#include <dlfcn.h>

#include <filesystem>
#include <mutex>

#include "core/device/device_maker.h"
#include "core/machine/beside_library.h"

namespace interp {

absl::Status LoadCuda(const std::string& path) {
  // Devices are there before the last row of an op is.
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (FindDeviceMaker(PlaceKind::kCuda) != nullptr) return absl::OkStatus();
  const std::string file = path.empty() ? BesideLibrary("libinterp_cuda.so") : path;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return NotFound("there is no '", file,
                    "': this interp was built without CUDA; build it with -DINTERP_CUDA=ON where "
                    "the CUDA Toolkit is installed");
  }
  if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot load '", file, "': ", dlerror()));
  }
  if (FindDeviceMaker(PlaceKind::kCuda) != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("'", file, "' is no library of devices of this interp"));
}

absl::Status LoadForPlace(Place place) {
  return place.kind == PlaceKind::kCuda ? LoadCuda() : absl::OkStatus();
}

absl::StatusOr<Place> LoadPlace(absl::string_view name) {
  INTERP_ASSIGN_OR_RETURN(const Place place, PlaceFromName(name));
  INTERP_RETURN_IF_ERROR(LoadForPlace(place));
  return place;
}

}  // namespace interp
