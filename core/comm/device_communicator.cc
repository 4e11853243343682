#include "core/comm/device_communicator.h"

#include "core/device/makers_by_kind.h"

namespace interp {
namespace {

MakersByKind<DeviceCommunicatorMaker>& CommunicatorMakers() {
  static auto& makers = *new MakersByKind<DeviceCommunicatorMaker>;
  return makers;
}

}  // namespace

void RegisterDeviceCommunicatorMaker(PlaceKind kind, const DeviceCommunicatorMaker& maker) {
  CommunicatorMakers().Register(kind, maker);
}

const DeviceCommunicatorMaker* FindDeviceCommunicatorMaker(PlaceKind kind) {
  return CommunicatorMakers().Find(kind);
}

absl::Status DeviceCommunication(PlaceKind kind) {
  const DeviceCommunicatorMaker* const maker = FindDeviceCommunicatorMaker(kind);
  if (maker != nullptr) return maker->usable();
  return Unimplemented("devices of kind ", Name(kind), " do not speak with each other");
}

}  // namespace interp
