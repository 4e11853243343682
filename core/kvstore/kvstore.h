// KVStore: values by key that several devices push gradients to and pull weights from.
//
//   std::unique_ptr<KVStore> store = *KVStore::Create(runtime, "device");
//   store->Init("w", w);
//   store->SetOptimizer({.type = "sgd", .learning_rate = 0.1});
//   store->Push("w", {gradient_on_sim0, gradient_on_sim1}, priority);
//   store->Pull("w", {w_on_sim0, w_on_sim1}, priority);
//
// Everything is pushed to the engine and returns at once: what one key does overlaps with what
// others do and with all else that runs.
//
// Consistency (kind dist_async promises less; see docs/kvstore.md). All pushes and pulls of one key
// happen one after the other, in an order in which a call that has returned comes before one that
// has not begun, from whatever threads; so a pull sees all that was pushed before. Keys are
// independent of each other. Determinism. What is pushed at once is added up in the order of its
// list as a tree of a form that depends on the number alone, so the bits do not depend on places,
// kinds, threads or time (but for floats of 16 bits, where a sum that crosses places is rounded
// once more for each crossing).
//
// A pushed array may be written to as soon as Push has returned: the store keeps what it was then.
// The model is MXNet's KVStore (include/mxnet/kvstore.h); docs/kvstore.md tells where it differs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/array/array.h"
#include "core/comm/rings.h"
#include "core/kvstore/across_ranks.h"
#include "core/kvstore/store_optimizer.h"

namespace interp {

class StoreClient;

// Adds what was pushed to what is stored, by pushing operations that read the one and write the
// other. Called by Push, on its thread; of dist_async where the key is kept, with arrays of another
// runtime (Array::runtime). May call nothing of the store. What it throws is its error.
using Updater =
    std::function<absl::Status(absl::string_view key, const Array& pushed, const Array& stored)>;

struct CompressionOptions {
  // Of 2 bits: a value is sent as +threshold, -threshold or nothing, and what that leaves is added
  // to the next.
  float threshold = 0.5F;
};

// One key's part of PushPullAll.
struct KeyedPush {
  std::string key;
  std::vector<Array> values;
  std::vector<Array> outs = {};  // none: nothing is pulled
};

// Thread-safety: all methods. The runtime is borrowed. Init, pushes and pulls are
// FailedPrecondition within an operation of its engine, which could wait for itself. Between ranks
// destruction waits for what was pushed to them, for which it starts an engine that was stopped
// before that; it comes within no operation either.
class KVStore {
 public:
  // `local` adds and keeps values on the host, `device` on the devices, each key on that which has
  // the least so far. `dist_sync` is `local` of all ranks of `rings` together, `dist_device_sync`
  // is `device`: a push adds up what all of them push, and each updates and keeps the same values.
  // Ranks call Init, Push, PushPull and Barrier in the same order, from one thread; priorities are
  // each rank's own affair. A call that is refused ends the ranks' communication (Rings::Fail).
  // `dist_async` adds nothing up over ranks: each key is kept by one rank, which updates it at each
  // push of any (store_client.h); Init, SetUpdater, SetOptimizer and Barrier are called by all
  // ranks, which end their stores together. InvalidArgument lists the kinds.
  static absl::StatusOr<std::unique_ptr<KVStore>> Create(ArrayRuntime& runtime,
                                                         absl::string_view kind,
                                                         std::shared_ptr<Rings> rings = nullptr);
  ~KVStore();
  KVStore(const KVStore&) = delete;
  KVStore& operator=(const KVStore&) = delete;

  absl::string_view kind() const { return kind_; }

  // Keeps a copy of the value, of rank 0 where there are several. AlreadyExists for a key that was
  // there. NotFound in the calls below for one that was not.
  absl::Status Init(absl::string_view key, const Array& value);
  // Adds the values up and gives the sum to the updater; without one it replaces what is stored. Of
  // operations that are ready those of higher priority go first. Values are all dense or all rows;
  // rows need an updater that takes them, and a key on the host.
  absl::Status Push(absl::string_view key, absl::Span<const Array> values, int32_t priority = 0);
  // Copies what is stored into each array.
  absl::Status Pull(absl::string_view key, absl::Span<const Array> outs, int32_t priority = 0);
  // Push, then Pull, with no other call on the key between; of dist_async none of this rank.
  absl::Status PushPull(absl::string_view key, absl::Span<const Array> values,
                        absl::Span<const Array> outs, int32_t priority = 0);
  // PushPull of each, in their order and to the same bits, but nothing is pushed where one does not
  // fit its key. An error of one, as of its updater, ends none of the others, which other ranks go
  // on with, too; the first is returned. Between ranks (dist_sync, dist_device_sync, without
  // compression) dense keys of one dtype that follow each other are added up as one message of up
  // to 4 MiB and 48 keys, which starts when all of them are there. Ranks push rows to the same
  // keys.
  absl::Status PushPullAll(absl::Span<const KeyedPush> pushes, int32_t priority = 0);
  // Gives an array of rows some rows of what is stored: `rows`, each once, ascending.
  absl::Status PullRows(absl::string_view key, std::vector<int64_t> rows, const Array& out,
                        int32_t priority = 0);

  // From here on. With dist_async all ranks call these, and wait for each other.
  void SetUpdater(Updater updater);
  absl::Status SetOptimizer(const StoreOptimizerOptions& options);
  // Of dense float32 values, for each key and position in the list of values by itself; between
  // ranks, for each key and rank: codes of the rank's sum.
  // InvalidArgument for a threshold that is not above zero.
  absl::Status SetCompression(const CompressionOptions& options);

  // What is stored, to be looked at: an array that nobody is to write to. Unimplemented for
  // dist_async.
  absl::StatusOr<Array> Stored(absl::string_view key);
  // Processes that share the store, and which of them this is.
  int size() const { return ranks_ == nullptr ? 1 : ranks_->size(); }
  int rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }
  // Waits until all ranks have come here and what they have pushed is added up. Errors: those of
  // the ranks' communication; of dist_async what has failed in updates, too.
  absl::Status Barrier();

 private:
  struct Entry {
    std::mutex mutex;  // held while a call pushes its operations
    std::string key;
    Array stored;    // where a server keeps the key: no values, but its shape and dtype
    int number = 0;  // of the key, for servers
    std::vector<Array> residuals;  // by position of the pushed value; of compression
  };
  // How pushes are treated.
  struct Settings {
    Updater updater;
    float threshold = 0;  // 0: no compression
  };

  KVStore(ArrayRuntime& runtime, absl::string_view kind);
  Place NextHome(size_t bytes);
  absl::Status AddKey(absl::string_view key, const Array& value);
  absl::StatusOr<Entry*> Find(absl::string_view key);
  absl::StatusOr<Entry*> EntryOfPush(absl::string_view key, absl::Span<const Array> values,
                                     absl::Span<const Array> outs);
  absl::StatusOr<std::vector<Entry*>> EntriesOf(absl::Span<const KeyedPush> pushes,
                                                const Settings& settings);
  // `error`, with which this rank takes no part in what all of them do.
  absl::Status Missed(const absl::Status& error) const;
  absl::Status CheckCaller() const;
  absl::Status CheckValues(const Entry& entry, absl::Span<const Array> values) const;
  absl::Status CheckOuts(const Entry& entry, absl::Span<const Array> outs) const;
  // Whether pushes are treated so that these values can be. REQUIRES: CheckValues.
  absl::Status CheckTreatment(const Entry& entry, absl::Span<const Array> values,
                              const Settings& settings) const;
  Settings settings();
  // REQUIRES: entry.mutex is held.
  absl::Status PushLocked(Entry& entry, absl::Span<const Array> values, int32_t priority);
  absl::Status PullLocked(const Entry& entry, absl::Span<const Array> outs, int32_t priority) const;
  // Gives the sum of a push to the updater, or keeps it. REQUIRES: the same.
  static absl::Status Keep(const Entry& entry, const Array& sum, const Updater& updater,
                           int32_t priority);
  // Of pushes that are left, how many are added up over the ranks together; and does so.
  size_t EndOfBucket(absl::Span<const KeyedPush> pushes, absl::Span<Entry* const> entries) const;
  absl::Status PushBucket(absl::Span<const KeyedPush> pushes, absl::Span<Entry* const> entries,
                          const Updater& updater, int32_t priority);
  absl::StatusOr<Array> SumOfBucket(absl::Span<const KeyedPush> pushes,
                                    absl::Span<Entry* const> entries, int32_t priority) const;
  // The sum of what all ranks push, where the key is kept; of rows all of them.
  absl::StatusOr<Array> Sum(Entry& entry, absl::Span<const Array> values, const Settings& settings,
                            int32_t priority);
  absl::StatusOr<Array> SumOverRanks(const Entry& entry, const Array& sum, int32_t priority) const;
  absl::StatusOr<Array> SumOfAllCodes(Entry& entry, const Array& sum, float threshold,
                                      int32_t priority);
  // The codes of each value, where it lies; what they mean, where the key is kept.
  absl::StatusOr<std::vector<Array>> Compress(Entry& entry, absl::Span<const Array> values,
                                              float threshold, int32_t priority);
  static absl::StatusOr<Array> SumOfCodes(const Entry& entry, absl::Span<const Array> codes,
                                          float threshold, int32_t priority);
  absl::Status InitOnServer(Entry& entry, const Array& value);
  absl::Status PushToServer(Entry& entry, absl::Span<const Array> values, const Settings& settings,
                            int32_t priority);

  ArrayRuntime& runtime_;
  const std::string kind_;
  std::unique_ptr<AcrossRanks> ranks_;   // null: one process
  std::unique_ptr<StoreClient> client_;  // of dist_async
  std::mutex mutex_;                     // guards what follows
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_;
  std::vector<std::pair<Place, size_t>> load_;  // bytes by device
  Settings settings_;
};

}  // namespace interp
