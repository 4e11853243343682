#include "core/comm/device_communicator.h"

#include <map>
#include <mutex>

namespace interp {
namespace {

struct Makers {
  std::mutex mutex;  // guards by_kind; entries stay where they are
  std::map<PlaceKind, DeviceCommunicatorMaker> by_kind;
};

Makers& AllMakers() {
  static auto& makers = *new Makers;
  return makers;
}

}  // namespace

void RegisterDeviceCommunicatorMaker(PlaceKind kind, const DeviceCommunicatorMaker& maker) {
  Makers& makers = AllMakers();
  const std::scoped_lock lock(makers.mutex);
  makers.by_kind.emplace(kind, maker);
}

const DeviceCommunicatorMaker* FindDeviceCommunicatorMaker(PlaceKind kind) {
  Makers& makers = AllMakers();
  const std::scoped_lock lock(makers.mutex);
  const auto it = makers.by_kind.find(kind);
  return it == makers.by_kind.end() ? nullptr : &it->second;
}

absl::Status DeviceCommunication(PlaceKind kind) {
  const DeviceCommunicatorMaker* const maker = FindDeviceCommunicatorMaker(kind);
  if (maker != nullptr) return maker->usable();
  return Unimplemented("devices of kind ", Name(kind), " do not speak with each other");
}

}  // namespace interp
