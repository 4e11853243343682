// MakersByKind: what libraries for kinds of devices register when they are loaded.
#pragma once

#include <map>
#include <mutex>

#include "core/place.h"

namespace interp {

// Thread-safety: all methods from any thread. Makers stay where they are.
template <typename Maker>
class MakersByKind {
 public:
  // The first of a kind stays.
  void Register(PlaceKind kind, const Maker& maker) {
    const std::scoped_lock lock(mutex_);
    by_kind_.emplace(kind, maker);
  }
  // Null where nobody has registered one.
  const Maker* Find(PlaceKind kind) {
    const std::scoped_lock lock(mutex_);
    const auto it = by_kind_.find(kind);
    return it == by_kind_.end() ? nullptr : &it->second;
  }

 private:
  std::mutex mutex_;
  std::map<PlaceKind, Maker> by_kind_;
};

}  // namespace interp
