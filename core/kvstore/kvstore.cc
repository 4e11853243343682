#include "core/kvstore/kvstore.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/array/array_runtime.h"
#include "core/array/tape.h"
#include "core/base/catching.h"
#include "core/kvstore/add_up.h"
#include "core/kvstore/store_client.h"

namespace interp {
namespace {

// Some rows of a dense array of the host, into one of rows.
absl::Status GatherRows(const Array& stored, const std::vector<int64_t>& rows, const Array& out) {
  INTERP_ASSIGN_OR_RETURN(const Tensor from, ArrayAccess::Readable(stored));
  Tensor gathered;
  gathered.dtype = out.dtype();
  gathered.shape = out.shape();
  gathered.shape[0] = std::ssize(rows);
  INTERP_RETURN_IF_ERROR(gathered.Allocate(out.runtime().host_pool()));
  const size_t row_bytes =
      static_cast<size_t>(from.shape.numel(1, from.shape.rank())) * SizeOf(from.dtype);
  auto* to = static_cast<char*>(gathered.mutable_raw_data());
  for (const int64_t row : rows) {
    std::memcpy(to, static_cast<const char*>(from.raw_data()) + row * row_bytes, row_bytes);
    to += row_bytes;
  }
  Variable& value = ArrayAccess::chunk(out)->value;
  value.tensor = std::move(gathered);
  value.selected_rows = RowIndex{.rows = rows, .height = out.shape()[0]};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<KVStore>> KVStore::Create(ArrayRuntime& runtime,
                                                         absl::string_view kind,
                                                         std::shared_ptr<Rings> rings) {
  const bool async = kind == "dist_async";
  const bool several = async || kind == "dist_sync" || kind == "dist_device_sync";
  const bool on_devices = kind == "device" || kind == "dist_device_sync";
  if (!several && kind != "local" && kind != "device") {
    return InvalidArgument("no kind of store is named '", kind,
                           "'; there are: local device dist_sync dist_device_sync dist_async");
  }
  if (several == (rings == nullptr)) {
    return InvalidArgument("a store of kind '", kind, "' ",
                           several ? "needs rings of ranks" : "is one process's, and has no rings");
  }
  std::unique_ptr<KVStore> store(new KVStore(runtime, kind));
  if (several) {
    INTERP_ASSIGN_OR_RETURN(store->ranks_, AcrossRanks::Make(runtime, rings));
  }
  if (async) {
    INTERP_ASSIGN_OR_RETURN(store->client_, StoreClient::Make(runtime, std::move(rings)));
  }
  for (const Place place : runtime.engine().policy().places) {
    if (on_devices && !place.on_host()) store->load_.emplace_back(place, 0);
  }
  return store;
}

KVStore::KVStore(ArrayRuntime& runtime, absl::string_view kind) : runtime_(runtime), kind_(kind) {}

KVStore::~KVStore() = default;

Place KVStore::NextHome(size_t bytes) {
  if (load_.empty()) return {};
  const auto least = std::min_element(
      load_.begin(), load_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  least->second += bytes;
  return least->first;
}

// A push waits for room where too much is in flight, and who is behind the lock with it.
absl::Status KVStore::CheckCaller() const {
  if (!runtime_.engine().InOperation()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a store is called within an operation, which may have to end first; call it between");
}

absl::Status KVStore::Init(absl::string_view key, const Array& value) {
  const absl::Status status = AddKey(key, value);
  return status.ok() ? status : Missed(status);
}

absl::Status KVStore::AddKey(absl::string_view key, const Array& value) {
  INTERP_RETURN_IF_ERROR(CheckCaller());
  if (!value || &value.runtime() != &runtime_ || value.is_rows()) {
    return InvalidArgument("key '", key, "' is to begin as ",
                           value ? DescribeArray(value) : "no array",
                           ", expected a dense array of the store's runtime");
  }
  const Tape::Pause pause;
  std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.contains(key)) {
    return absl::AlreadyExistsError(absl::StrCat("key '", key, "' is in the store already"));
  }
  auto entry = std::make_unique<Entry>();
  entry->key = std::string(key);
  if (client_ != nullptr) {
    INTERP_RETURN_IF_ERROR(InitOnServer(*entry, value));
    entries_.emplace(key, std::move(entry));
    return absl::OkStatus();
  }
  const Place home = NextHome(value.size_bytes());
  Array first = value;
  if (ranks_ != nullptr) {
    INTERP_ASSIGN_OR_RETURN(const Array own, value.CopyTo(Place{}));
    INTERP_ASSIGN_OR_RETURN(first, ranks_->FromFirst(own, entry->key, /*priority=*/0));
  }
  INTERP_ASSIGN_OR_RETURN(entry->stored, first.CopyTo(home));
  entries_.emplace(key, std::move(entry));
  return absl::OkStatus();
}

// Waits until all ranks have come here: nobody asks for a key that is not there.
absl::Status KVStore::InitOnServer(Entry& entry, const Array& value) {
  INTERP_ASSIGN_OR_RETURN(const Array own, value.CopyTo(Place{}));
  INTERP_ASSIGN_OR_RETURN(const Array first, ranks_->FromFirst(own, entry.key, /*priority=*/0));
  INTERP_ASSIGN_OR_RETURN(const Tensor tensor, first.Read());
  INTERP_ASSIGN_OR_RETURN(entry.number, client_->Init(entry.key, tensor));
  INTERP_ASSIGN_OR_RETURN(entry.stored, runtime_.New(value.shape(), value.dtype()));
  return ranks_->Barrier();
}

absl::StatusOr<KVStore::Entry*> KVStore::Find(absl::string_view key) {
  INTERP_RETURN_IF_ERROR(CheckCaller());
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    return NotFound("the store has no key '", key, "': Init comes first");
  }
  return found->second.get();
}

absl::StatusOr<KVStore::Entry*> KVStore::EntryOfPush(absl::string_view key,
                                                     absl::Span<const Array> values,
                                                     absl::Span<const Array> outs) {
  INTERP_ASSIGN_OR_RETURN(Entry* const entry, Find(key));
  INTERP_RETURN_IF_ERROR(CheckValues(*entry, values));
  INTERP_RETURN_IF_ERROR(CheckOuts(*entry, outs));
  return entry;
}

// What this rank calls next would meet what the others wait for.
absl::Status KVStore::Missed(const absl::Status& error) const {
  if (ranks_ != nullptr) ranks_->Fail(error);
  return error;
}

KVStore::Settings KVStore::settings() {
  std::lock_guard<std::mutex> lock(mutex_);
  return settings_;
}

absl::Status KVStore::CheckValues(const Entry& entry, absl::Span<const Array> values) const {
  if (values.empty()) return InvalidArgument("nothing is pushed to key '", entry.key, "'");
  for (const Array& value : values) {
    if (!value || &value.runtime() != &runtime_ || value.shape() != entry.stored.shape() ||
        value.dtype() != entry.stored.dtype() || value.is_rows() != values[0].is_rows()) {
      return InvalidArgument("key '", entry.key, "' is pushed ",
                             value ? DescribeArray(value) : "no array", ", expected one like ",
                             DescribeArray(entry.stored));
    }
  }
  return absl::OkStatus();
}

absl::Status KVStore::CheckOuts(const Entry& entry, absl::Span<const Array> outs) const {
  for (const Array& out : outs) {
    if (!out || &out.runtime() != &runtime_ || out.is_rows() ||
        out.shape() != entry.stored.shape() || out.dtype() != entry.stored.dtype()) {
      return InvalidArgument("key '", entry.key, "' is pulled into ",
                             out ? DescribeArray(out) : "no array", ", expected one like ",
                             DescribeArray(entry.stored));
    }
  }
  return absl::OkStatus();
}

// Its server keeps the key, and updates it by itself.
absl::Status KVStore::PushToServer(Entry& entry, absl::Span<const Array> values,
                                   const Settings& settings, int32_t priority) {
  if (values[0].is_rows()) {
    INTERP_ASSIGN_OR_RETURN(const Array joined, JoinRows(values, priority));
    return client_->Push(entry.number, joined, /*threshold=*/0, priority);
  }
  INTERP_ASSIGN_OR_RETURN(Array sum, AddUp(values, Place{}, priority));
  if (settings.threshold > 0) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<Array> codes,
                            Compress(entry, {&sum, 1}, settings.threshold, priority));
    sum = codes[0];
  }
  return client_->Push(entry.number, sum, settings.threshold, priority);
}

absl::Status KVStore::PushLocked(Entry& entry, absl::Span<const Array> values, int32_t priority) {
  const Settings settings = this->settings();
  if (client_ != nullptr) {
    INTERP_RETURN_IF_ERROR(CheckTreatment(entry, values, settings));
    return PushToServer(entry, values, settings, priority);
  }
  const absl::StatusOr<Array> sum = Sum(entry, values, settings, priority);
  if (!sum.ok()) return Missed(sum.status());
  return Keep(entry, *sum, settings.updater, priority);
}

absl::Status KVStore::Keep(const Entry& entry, const Array& sum, const Updater& updater,
                           int32_t priority) {
  if (updater == nullptr) return entry.stored.CopyFrom(sum, priority);
  return Catching([&] { return updater(entry.key, sum, entry.stored); });
}

absl::Status KVStore::PullLocked(const Entry& entry, absl::Span<const Array> outs,
                                 int32_t priority) const {
  if (outs.empty()) return absl::OkStatus();
  Array from = entry.stored;
  if (client_ != nullptr) {
    INTERP_ASSIGN_OR_RETURN(from, runtime_.New(entry.stored.shape(), entry.stored.dtype()));
    INTERP_RETURN_IF_ERROR(client_->Pull(entry.number, from, priority));
  }
  for (const Array& out : outs) INTERP_RETURN_IF_ERROR(out.CopyFrom(from, priority));
  return absl::OkStatus();
}

absl::Status KVStore::Push(absl::string_view key, absl::Span<const Array> values,
                           int32_t priority) {
  return PushPull(key, values, {}, priority);
}

absl::Status KVStore::Pull(absl::string_view key, absl::Span<const Array> outs, int32_t priority) {
  INTERP_ASSIGN_OR_RETURN(Entry* const entry, Find(key));
  INTERP_RETURN_IF_ERROR(CheckOuts(*entry, outs));
  const Tape::Pause pause;
  std::lock_guard<std::mutex> lock(entry->mutex);
  return PullLocked(*entry, outs, priority);
}

absl::Status KVStore::PushPull(absl::string_view key, absl::Span<const Array> values,
                               absl::Span<const Array> outs, int32_t priority) {
  const absl::StatusOr<Entry*> found = EntryOfPush(key, values, outs);
  if (!found.ok()) return client_ != nullptr ? found.status() : Missed(found.status());
  Entry& entry = **found;
  const Tape::Pause pause;
  std::lock_guard<std::mutex> lock(entry.mutex);
  INTERP_RETURN_IF_ERROR(PushLocked(entry, values, priority));
  return PullLocked(entry, outs, priority);
}

absl::Status KVStore::PullRows(absl::string_view key, std::vector<int64_t> rows, const Array& out,
                               int32_t priority) {
  INTERP_ASSIGN_OR_RETURN(Entry* const entry, Find(key));
  if (!out || &out.runtime() != &runtime_ || !out.is_rows() ||
      out.shape() != entry->stored.shape() || out.dtype() != entry->stored.dtype()) {
    return InvalidArgument("rows of key '", key, "' are pulled into ",
                           out ? DescribeArray(out) : "no array", ", expected rows of ",
                           DescribeArray(entry->stored));
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  if (!rows.empty() && (rows.front() < 0 || rows.back() >= out.shape()[0])) {
    return InvalidArgument("row ", rows.front() < 0 ? rows.front() : rows.back(),
                           " is not among the ", out.shape()[0], " of key '", key, "'");
  }
  const Tape::Pause pause;
  std::lock_guard<std::mutex> lock(entry->mutex);
  if (client_ != nullptr) return client_->PullRows(entry->number, rows, out, priority);
  Array stored = entry->stored;
  if (!stored.place().on_host()) {
    INTERP_ASSIGN_OR_RETURN(stored, stored.CopyTo(Place{}, priority));
  }
  const engine::Variable read = stored.variable();
  const engine::Variable written = out.variable();
  ArrayAccess::CountWrite(out);
  return runtime_.engine().Push(
      [stored, rows = std::move(rows), out] { return GatherRows(stored, rows, out); },
      {.reads = {&read, 1}, .writes = {&written, 1}}, {.name = "pull rows", .priority = priority});
}

void KVStore::SetUpdater(Updater updater) {
  if (client_ != nullptr) {
    // What was pushed before goes to the old one, and nobody pushes to a server that has none. What
    // fails is told by the calls that follow.
    Barrier().IgnoreError();
    client_->kept().SetUpdater(updater);
    ranks_->Barrier().IgnoreError();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  settings_.updater = std::move(updater);
}

absl::Status KVStore::SetOptimizer(const StoreOptimizerOptions& options) {
  INTERP_ASSIGN_OR_RETURN(
      const std::shared_ptr<StoreOptimizer> optimizer,
      StoreOptimizer::Make(client_ == nullptr ? runtime_ : client_->runtime_of_kept(), options));
  SetUpdater([optimizer](absl::string_view key, const Array& pushed, const Array& stored) {
    return optimizer->Update(key, pushed, stored);
  });
  return absl::OkStatus();
}

absl::Status KVStore::SetCompression(const CompressionOptions& options) {
  if (!(options.threshold > 0)) {
    return InvalidArgument("a threshold of ", options.threshold, ", expected one above zero");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  settings_.threshold = options.threshold;
  return absl::OkStatus();
}

absl::Status KVStore::Barrier() {
  absl::Status status;
  if (client_ != nullptr) status = client_->Flush();
  if (ranks_ != nullptr) status.Update(ranks_->Barrier());  // where others wait for this rank
  return status;
}

absl::StatusOr<Array> KVStore::Stored(absl::string_view key) {
  INTERP_ASSIGN_OR_RETURN(const Entry* const entry, Find(key));
  if (client_ != nullptr) {
    return Unimplemented("key '", key, "' of a store of kind ", kind_,
                         " may be kept by another rank; Pull it");
  }
  return entry->stored;
}

}  // namespace interp
