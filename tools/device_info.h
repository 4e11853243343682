// interp info --devices: the places that programs can run on here.
#pragma once

#include <string>
#include <vector>

namespace interp {

struct DeviceInfo {
  std::string place;        // "cpu", "cuda:0"; "cuda" where there is none
  std::string description;  // of a device that is there, else why there is none
  bool usable = false;
};

// The host, then GPUs, or one entry that says why there is none; simulated devices, which are
// always there, are left out. Loads libinterp_cuda.so.
std::vector<DeviceInfo> FindDevicesHere();

std::string ToText(const std::vector<DeviceInfo>& devices);
// See docs/schemas/info-devices.json.
std::string ToJson(const std::vector<DeviceInfo>& devices);

}  // namespace interp
