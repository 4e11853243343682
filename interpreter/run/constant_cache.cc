#include "interpreter/run/constant_cache.h"

namespace interp {

absl::StatusOr<std::shared_ptr<const void>> ConstantCache::GetOrMake(
    int instruction, uint64_t key,
    const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) {
  const auto at = std::make_pair(instruction, key);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (const auto it = values_.find(at); it != values_.end()) return it->second;
  }
  // Made without the lock: packing one layer must not hold up another thread's.
  INTERP_ASSIGN_OR_RETURN(std::shared_ptr<const void> value, make());
  std::lock_guard<std::mutex> lock(mutex_);
  return values_.try_emplace(at, std::move(value)).first->second;
}

void ConstantCache::UseConstants(const std::vector<ConstantValue>& constants) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (made_from_ == constants) return;
  made_from_ = constants;
  values_.clear();
}

}  // namespace interp
