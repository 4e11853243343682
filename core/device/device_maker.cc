#include "core/device/device_maker.h"

#include <map>
#include <mutex>

namespace interp {
namespace {

struct Makers {
  std::mutex mutex;  // guards by_kind; entries stay where they are
  std::map<PlaceKind, DeviceMaker> by_kind;
};

Makers& AllMakers() {
  static auto& makers = *new Makers;
  return makers;
}

}  // namespace

void RegisterDeviceMaker(PlaceKind kind, const DeviceMaker& maker) {
  Makers& makers = AllMakers();
  std::lock_guard<std::mutex> lock(makers.mutex);
  makers.by_kind.emplace(kind, maker);
}

const DeviceMaker* FindDeviceMaker(PlaceKind kind) {
  Makers& makers = AllMakers();
  std::lock_guard<std::mutex> lock(makers.mutex);
  const auto it = makers.by_kind.find(kind);
  return it == makers.by_kind.end() ? nullptr : &it->second;
}

}  // namespace interp
