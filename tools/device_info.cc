#include "tools/device_info.h"

#include "absl/strings/str_cat.h"
#include "core/base/json_writer.h"
#include "core/device/device_maker.h"
#include "core/machine/usable_cpus.h"
#include "interpreter/load_cuda.h"
#include "tools/table.h"

namespace interp {
namespace {

absl::StatusOr<std::vector<std::string>> DescribeGpus() {
  INTERP_RETURN_IF_ERROR(LoadCuda());
  return FindDeviceMaker(PlaceKind::kCuda)->describe();
}

}  // namespace

std::vector<DeviceInfo> FindDevicesHere() {
  std::vector<DeviceInfo> devices = {
      {.place = "cpu", .description = absl::StrCat(UsableCpus(), " CPUs"), .usable = true}};
  const absl::StatusOr<std::vector<std::string>> gpus = DescribeGpus();
  if (!gpus.ok()) {
    devices.push_back({.place = "cuda", .description = std::string(gpus.status().message())});
    return devices;
  }
  if (gpus->empty()) devices.push_back({.place = "cuda", .description = "the driver has no GPU"});
  for (size_t i = 0; i < gpus->size(); ++i) {
    devices.push_back(
        {.place = absl::StrCat("cuda:", i), .description = (*gpus)[i], .usable = true});
  }
  return devices;
}

std::string ToText(const std::vector<DeviceInfo>& devices) {
  std::vector<std::vector<std::string>> rows = {{"place", "", ""}};
  for (const DeviceInfo& device : devices) {
    rows.push_back({device.place, device.usable ? "" : "none", device.description});
  }
  return FormatTable(rows);
}

std::string ToJson(const std::vector<DeviceInfo>& devices) {
  JsonWriter json;
  json.BeginObject();
  json.Objects("devices", devices, [&](const DeviceInfo& device) {
    json.Field("place", device.place);
    json.Field("usable", device.usable);
    json.Field("description", device.description);
  });
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace interp
