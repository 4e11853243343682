// Pushes of many keys at once: what small keys send to the other ranks travels together.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "core/array/array_runtime.h"
#include "core/array/tape.h"
#include "core/kvstore/add_up.h"
#include "core/kvstore/kvstore.h"
#include "core/kvstore/store_client.h"

namespace interp {
namespace {

// Larger ones gain nothing: a message of this size takes much longer than it waits for its start.
constexpr size_t kBucketBytes = size_t{4} << 20;
// The locks of all keys of a message are held at once, and ThreadSanitizer follows 64 of a thread.
constexpr size_t kBucketKeys = 48;

// The elements of all arrays, which are dense, on the host and of one dtype, one after the other.
absl::StatusOr<Array> JoinElements(const std::vector<Array>& arrays, int32_t priority) {
  int64_t count = 0;
  std::vector<engine::Variable> reads;
  for (const Array& array : arrays) {
    count += array.numel();
    reads.push_back(array.variable());
  }
  ArrayRuntime& runtime = arrays[0].runtime();
  INTERP_ASSIGN_OR_RETURN(const Array joined, runtime.New({count}, arrays[0].dtype()));
  const engine::Variable written = joined.variable();
  ArrayAccess::CountWrite(joined);
  const auto join = [arrays, joined](const engine::RunContext& context) -> absl::Status {
    INTERP_ASSIGN_OR_RETURN(Tensor out,
                            ArrayAccess::Writable(joined, /*overwrites=*/true, context));
    auto* to = static_cast<char*>(out.mutable_raw_data());
    for (const Array& array : arrays) {
      INTERP_ASSIGN_OR_RETURN(const Tensor from, ArrayAccess::Readable(array));
      std::memcpy(to, from.raw_data(), from.size_bytes());
      to += from.size_bytes();
    }
    return absl::OkStatus();
  };
  INTERP_RETURN_IF_ERROR(runtime.engine().Push(join, {.reads = reads, .writes = {&written, 1}},
                                               {.name = "join bucket", .priority = priority}));
  return joined;
}

// Held in one order by all threads.
template <typename Entry>
std::vector<std::unique_lock<std::mutex>> LockAll(std::vector<Entry*> entries) {
  std::sort(entries.begin(), entries.end());
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.reserve(entries.size());
  for (Entry* const entry : entries) locks.emplace_back(entry->mutex);
  return locks;
}

}  // namespace

// All ranks find the same: it depends on keys, their shapes and dtypes, and on which of them are
// pushed rows, in which ranks do not differ.
size_t KVStore::EndOfBucket(absl::Span<const KeyedPush> pushes,
                            absl::Span<Entry* const> entries) const {
  absl::flat_hash_set<const Entry*> together;
  size_t bytes = 0;
  size_t end = 0;
  for (; end < std::min(entries.size(), kBucketKeys); ++end) {
    const Array& stored = entries[end]->stored;
    bytes += stored.size_bytes();
    const bool fits = stored.size_bytes() > 0 && bytes <= kBucketBytes &&
                      stored.dtype() == entries[0]->stored.dtype() &&
                      !pushes[end].values[0].is_rows();
    if (!fits || !together.insert(entries[end]).second) break;
  }
  return std::max<size_t>(end, 1);
}

absl::StatusOr<Array> KVStore::SumOfBucket(absl::Span<const KeyedPush> pushes,
                                           absl::Span<Entry* const> entries,
                                           int32_t priority) const {
  std::vector<Array> own;
  std::vector<absl::string_view> keys;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Place home = entries[i]->stored.place();
    INTERP_ASSIGN_OR_RETURN(const Array sum, AddUp(pushes[i].values, home, priority));
    INTERP_ASSIGN_OR_RETURN(own.emplace_back(), MoveTo(sum, Place{}, priority));
    keys.push_back(entries[i]->key);
  }
  INTERP_ASSIGN_OR_RETURN(const Array joined, JoinElements(own, priority));
  return ranks_->Sum(joined, absl::StrJoin(keys, ", "), priority);
}

absl::Status KVStore::PushBucket(absl::Span<const KeyedPush> pushes,
                                 absl::Span<Entry* const> entries, const Updater& updater,
                                 int32_t priority) {
  const Tape::Pause pause;
  const auto locks = LockAll(std::vector<Entry*>(entries.begin(), entries.end()));
  const absl::StatusOr<Array> all = SumOfBucket(pushes, entries, priority);
  if (!all.ok()) return Missed(all.status());
  const auto keep = [&](size_t i, int64_t at) -> absl::Status {
    const Entry& entry = *entries[i];
    INTERP_ASSIGN_OR_RETURN(const Array part, all->Slice(at, at + entry.stored.numel()));
    INTERP_ASSIGN_OR_RETURN(const Array shaped, part.Reshape(entry.stored.shape()));
    INTERP_ASSIGN_OR_RETURN(const Array sum, MoveTo(shaped, entry.stored.place(), priority));
    INTERP_RETURN_IF_ERROR(Keep(entry, sum, updater, priority));
    return PullLocked(entry, pushes[i].outs, priority);
  };
  absl::Status status;
  int64_t at = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    status.Update(keep(i, at));
    at += entries[i]->stored.numel();
  }
  return status;
}

absl::Status KVStore::CheckTreatment(const Entry& entry, absl::Span<const Array> values,
                                     const Settings& settings) const {
  const bool on_host = entry.stored.place().on_host();
  if (client_ != nullptr && settings.updater == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("key '", entry.key, "' of a store of kind ", kind_,
                     " is pushed to, and there is no updater: SetOptimizer or SetUpdater comes "
                     "first, on all ranks"));
  }
  if (values[0].is_rows()) {
    if (client_ != nullptr || (settings.updater != nullptr && on_host)) return absl::OkStatus();
    return InvalidArgument("rows are pushed to key '", entry.key, "' on ",
                           Name(entry.stored.place()),
                           "; they need an updater, and a store of kind local or dist_sync");
  }
  if (settings.threshold > 0 && values[0].dtype() != DType::kFloat32) {
    return Unimplemented("compression takes float32, not ", Name(values[0].dtype()), " as of key '",
                         entry.key, "'");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<KVStore::Entry*>> KVStore::EntriesOf(absl::Span<const KeyedPush> pushes,
                                                                const Settings& settings) {
  std::vector<Entry*> entries;
  for (const KeyedPush& push : pushes) {
    INTERP_ASSIGN_OR_RETURN(Entry* const entry, EntryOfPush(push.key, push.values, push.outs));
    INTERP_RETURN_IF_ERROR(CheckTreatment(*entry, push.values, settings));
    entries.push_back(entry);
  }
  return entries;
}

absl::Status KVStore::PushPullAll(absl::Span<const KeyedPush> pushes, int32_t priority) {
  const Settings settings = this->settings();
  const absl::StatusOr<std::vector<Entry*>> entries = EntriesOf(pushes, settings);
  if (!entries.ok()) return client_ != nullptr ? entries.status() : Missed(entries.status());
  const bool joins = ranks_ != nullptr && client_ == nullptr && settings.threshold == 0;
  absl::Status status;
  for (size_t i = 0; i < pushes.size();) {
    const absl::Span<Entry* const> left = absl::MakeConstSpan(*entries).subspan(i);
    const size_t count = joins ? EndOfBucket(pushes.subspan(i), left) : 1;
    const KeyedPush& first = pushes[i];
    status.Update(count == 1 ? PushPull(first.key, first.values, first.outs, priority)
                             : PushBucket(pushes.subspan(i, count), left.first(count),
                                          settings.updater, priority));
    i += count;
  }
  return status;
}

}  // namespace interp
