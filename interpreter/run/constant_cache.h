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
#include "interpreter/plan/packed_constants.h"

namespace interp {

// The values of a block's folded variables.
using FoldedValues = std::vector<std::pair<VarId, Tensor>>;

// A constant, and which of its values was seen.
struct ConstantValue {
  Variable* variable = nullptr;
  uint64_t version = 0;
  const Buffer* buffer = nullptr;
  uint64_t serial = 0;
  bool operator==(const ConstantValue&) const = default;
};

// Values under the number of an instruction with kPackedArraysKey are PackedArrays; under -1 -
// block FoldedValues (kFoldedKey) and Tensors (a VarId): those a file can keep.
//
// Thread-safety: all methods from any thread.
class ConstantCache final : public SharedConstants {
 public:
  absl::StatusOr<std::shared_ptr<const void>> GetOrMake(
      int instruction, uint64_t key,
      const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) override;

  // Whether UseConstants would forget values that were made of other constants.
  bool Forgets(const std::vector<ConstantValue>& constants) const;
  // From now on values are made of these constants; those made of others are forgotten.
  void UseConstants(const std::vector<ConstantValue>& constants);

  // Until constants change, values are those of `packed`, which was computed of the same ones,
  // where it has them. GetOrMake then fails with DataLoss for one whose checksum differs.
  void Offer(std::shared_ptr<const PackedConstants> packed);

  // What was made or taken so far and can be kept, in the order of PackedConstants::entries. The
  // tensors share memory with the values.
  std::vector<PackedEntry> Entries() const;

 private:
  using Key = std::pair<int, uint64_t>;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<ConstantValue> made_from_;
  absl::flat_hash_map<Key, std::shared_ptr<const void>> values_;
  std::shared_ptr<const PackedConstants> packed_;
  absl::flat_hash_map<Key, const PackedEntry*> offered_;  // entries of packed_
};

}  // namespace interp
