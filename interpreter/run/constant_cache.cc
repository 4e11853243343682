#include "interpreter/run/constant_cache.h"

#include <algorithm>

#include "core/packed_arrays.h"

namespace interp {
namespace {

// The value that an entry stands for.
absl::StatusOr<std::shared_ptr<const void>> ValueOf(const PackedEntry& entry) {
  for (size_t i = 0; i < entry.tensors.size(); ++i) {
    if (ChecksumOf(entry.tensors[i]) == entry.checksums[i]) continue;
    return DataLoss("the packed constants of the plan file are damaged: the checksum of ",
                    DescribeType(entry.tensors[i]), " differs; compile it again");
  }
  if (entry.instruction >= 0)
    return std::make_shared<const PackedArrays>(PackedArrays{entry.tensors});
  if (entry.key != kFoldedKey) return std::make_shared<const Tensor>(entry.tensors[0]);
  auto values = std::make_shared<FoldedValues>();
  for (size_t i = 0; i < entry.tensors.size(); ++i) {
    values->emplace_back(entry.vars[i], entry.tensors[i]);
  }
  return std::shared_ptr<const void>(std::move(values));
}

// The entry of a value; without tensors for one that no file can keep.
PackedEntry EntryOf(int instruction, uint64_t key, const void* value) {
  PackedEntry entry{.instruction = instruction, .key = key};
  if (instruction >= 0) {
    if ((key & kPackedArraysKey) == 0) return entry;
    entry.tensors = static_cast<const PackedArrays*>(value)->arrays;
  } else if (key != kFoldedKey) {
    entry.tensors = {*static_cast<const Tensor*>(value)};
  } else {
    for (const auto& [id, tensor] : *static_cast<const FoldedValues*>(value)) {
      entry.vars.push_back(id);
      entry.tensors.push_back(tensor);
    }
  }
  const auto fits = [](const Tensor& tensor) {
    return tensor.place().on_host() && tensor.lod.empty() && tensor.dtype != DType::kUndefined &&
           (tensor.has_memory() || tensor.numel() == 0);
  };
  if (!std::all_of(entry.tensors.begin(), entry.tensors.end(), fits)) entry.tensors.clear();
  return entry;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const void>> ConstantCache::GetOrMake(
    int instruction, uint64_t key,
    const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) {
  const Key at(instruction, key);
  std::shared_ptr<const PackedConstants> packed;  // holds what `offered` points to
  const PackedEntry* offered = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto it = values_.find(at); it != values_.end()) return it->second;
    if (const auto it = offered_.find(at); it != offered_.end()) {
      packed = packed_;
      offered = it->second;
    }
  }
  // Made without the lock: packing one layer must not hold up another thread's.
  INTERP_ASSIGN_OR_RETURN(std::shared_ptr<const void> value,
                          offered != nullptr ? ValueOf(*offered) : make());
  const std::lock_guard<std::mutex> lock(mutex_);
  return values_.try_emplace(at, std::move(value)).first->second;
}

bool ConstantCache::Forgets(const std::vector<ConstantValue>& constants) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !made_from_.empty() && made_from_ != constants;
}

void ConstantCache::UseConstants(const std::vector<ConstantValue>& constants) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (made_from_ == constants) return;
  made_from_ = constants;
  values_.clear();
  offered_.clear();
  packed_.reset();
}

void ConstantCache::Offer(std::shared_ptr<const PackedConstants> packed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (packed_ == packed) return;
  packed_ = std::move(packed);
  offered_.clear();
  for (const PackedEntry& entry : packed_->entries) {
    offered_.try_emplace(Key(entry.instruction, entry.key), &entry);
  }
}

std::vector<PackedEntry> ConstantCache::Entries() const {
  std::vector<PackedEntry> entries;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [at, value] : values_) {
    PackedEntry entry = EntryOf(at.first, at.second, value.get());
    if (entry.tensors.empty()) continue;
    for (const Tensor& tensor : entry.tensors) entry.checksums.push_back(ChecksumOf(tensor));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const PackedEntry& a, const PackedEntry& b) {
    return std::pair(a.instruction, a.key) < std::pair(b.instruction, b.key);
  });
  return entries;
}

}  // namespace interp
