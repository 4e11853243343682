// ConstantCache: what kernels compute of constants, packed weights above all, shared by all clones
// of a core.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/op_context.h"
#include "core/variable.h"

namespace interp {

// A constant, and which of its values was seen.
struct ConstantValue {
  Variable* variable = nullptr;
  uint64_t version = 0;
  const Buffer* buffer = nullptr;
  uint64_t serial = 0;
  bool operator==(const ConstantValue&) const = default;
};

// Thread-safety: all methods from any thread.
class ConstantCache final : public SharedConstants {
 public:
  absl::StatusOr<std::shared_ptr<const void>> GetOrMake(
      int instruction, uint64_t key,
      const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) override;

  // From now on values are made of these constants; those made of others are forgotten.
  void UseConstants(const std::vector<ConstantValue>& constants);

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<ConstantValue> made_from_;
  absl::flat_hash_map<std::pair<int, uint64_t>, std::shared_ptr<const void>> values_;
};

}  // namespace interp
