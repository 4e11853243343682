#include "core/resource/place_resources.h"

namespace interp {

absl::StatusOr<void*> PlaceResources::Find(
    Key key, const std::function<absl::StatusOr<std::shared_ptr<void>>()>& make) {
  Entry* entry;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Entry>& slot = entries_[std::move(key)];
    if (slot == nullptr) slot = std::make_unique<Entry>();
    entry = slot.get();
  }
  std::lock_guard<std::mutex> lock(entry->mutex);
  if (entry->resource == nullptr) {
    INTERP_ASSIGN_OR_RETURN(entry->resource, make());
  }
  return entry->resource.get();
}

}  // namespace interp
