#include "core/device/device_maker.h"

#include "core/device/makers_by_kind.h"

namespace interp {
namespace {

MakersByKind<DeviceMaker>& DeviceMakers() {
  static auto& makers = *new MakersByKind<DeviceMaker>;
  return makers;
}

}  // namespace

void RegisterDeviceMaker(PlaceKind kind, const DeviceMaker& maker) {
  DeviceMakers().Register(kind, maker);
}

const DeviceMaker* FindDeviceMaker(PlaceKind kind) { return DeviceMakers().Find(kind); }

}  // namespace interp
