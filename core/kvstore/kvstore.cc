#include "core/kvstore/kvstore.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "core/array/array_runtime.h"
#include "core/array/filled.h"
#include "core/array/tape.h"
#include "core/kvstore/add_up.h"
#include "core/kvstore/two_bit.h"

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
  const bool several = kind == "dist_sync";
  if (!several && absl::StartsWith(kind, "dist")) {
    return Unimplemented("a store of kind '", kind,
                         "' is for several machines, of which interp has 'dist_sync' so far");
  }
  if (!several && kind != "local" && kind != "device") {
    return InvalidArgument("no kind of store is named '", kind,
                           "'; there are: local device dist_sync");
  }
  if (several == (rings == nullptr)) {
    return InvalidArgument("a store of kind '", kind, "' ",
                           several ? "needs rings of ranks" : "is one process's, and has no rings");
  }
  std::unique_ptr<KVStore> store(new KVStore(runtime, kind));
  if (several) {
    INTERP_ASSIGN_OR_RETURN(store->ranks_, AcrossRanks::Make(runtime, std::move(rings)));
  }
  for (const Place place : runtime.engine().policy().places) {
    if (kind == "device" && !place.on_host()) store->load_.emplace_back(place, 0);
  }
  return store;
}

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
  INTERP_ASSIGN_OR_RETURN(entry->stored, value.CopyTo(NextHome(value.size_bytes())));
  if (ranks_ != nullptr) {
    INTERP_ASSIGN_OR_RETURN(entry->stored,
                            ranks_->FromFirst(entry->stored, entry->key, /*priority=*/0));
  }
  entries_.emplace(key, std::move(entry));
  return absl::OkStatus();
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

absl::StatusOr<std::vector<Array>> KVStore::Compress(Entry& entry, absl::Span<const Array> values,
                                                     float threshold, int32_t priority) {
  std::vector<Array> received;
  for (size_t i = 0; i < values.size(); ++i) {
    const Array& value = values[i];
    if (value.dtype() != DType::kFloat32) {
      return Unimplemented("compression takes float32, not ", Name(value.dtype()));
    }
    if (i == entry.residuals.size()) entry.residuals.emplace_back();
    Array& residual = entry.residuals[i];
    // What a gradient that failed has spoilt is begun anew.
    if (!residual || runtime_.engine().ErrorOf(residual.variable())) {
      INTERP_ASSIGN_OR_RETURN(residual,
                              Filled(runtime_, value.shape(), DType::kFloat32, 0, value.place()));
    }
    if (residual.place() != value.place()) {
      INTERP_ASSIGN_OR_RETURN(residual, residual.CopyTo(value.place(), priority));
    }
    const Attr attr{.name = "threshold", .value = threshold};
    INTERP_ASSIGN_OR_RETURN(
        const Array codes,
        First(Invoke(runtime_, CompressDef(), {{"Grad", {value}}, {"Residual", {residual}}}, {attr},
                     {.priority = priority,
                      .outputs = {{"Codes", 1}},
                      .into = {{"ResidualOut", {residual}}}})));
    Array there = codes;
    if (codes.place() != entry.stored.place()) {
      INTERP_ASSIGN_OR_RETURN(there, codes.CopyTo(entry.stored.place(), priority));
    }
    const absl::Span<const int64_t> dims = value.shape().dims();
    const std::vector<int64_t> shape(dims.begin(), dims.end());
    INTERP_ASSIGN_OR_RETURN(
        received.emplace_back(),
        First(Invoke(runtime_, DecompressDef(), {{"Codes", {there}}},
                     {attr, {.name = "shape", .value = shape}}, {.priority = priority})));
  }
  return received;
}

absl::Status KVStore::PushLocked(Entry& entry, absl::Span<const Array> values, int32_t priority) {
  const Settings settings = this->settings();
  if (ranks_ != nullptr && (values[0].is_rows() || settings.threshold > 0)) {
    return Unimplemented("key '", entry.key, "' is pushed ",
                         values[0].is_rows() ? "rows" : "with compression", ", which kind ", kind_,
                         " does not take");
  }
  if (values[0].is_rows()) {
    if (settings.updater == nullptr || !entry.stored.place().on_host()) {
      return InvalidArgument("rows are pushed to key '", entry.key, "' on ",
                             Name(entry.stored.place()),
                             "; they need an updater, and a store of kind local");
    }
    INTERP_ASSIGN_OR_RETURN(const Array joined, JoinRows(values, priority));
    return settings.updater(entry.key, joined, entry.stored);
  }
  std::vector<Array> received;
  if (settings.threshold > 0) {
    INTERP_ASSIGN_OR_RETURN(received, Compress(entry, values, settings.threshold, priority));
    values = received;
  }
  INTERP_ASSIGN_OR_RETURN(Array sum, AddUp(values, entry.stored.place(), priority));
  if (ranks_ != nullptr) {
    INTERP_ASSIGN_OR_RETURN(sum, ranks_->Sum(sum, entry.key, priority));
  }
  if (settings.updater != nullptr) return settings.updater(entry.key, sum, entry.stored);
  return entry.stored.CopyFrom(sum, priority);
}

absl::Status KVStore::PullLocked(const Entry& entry, absl::Span<const Array> outs,
                                 int32_t priority) {
  for (const Array& out : outs) INTERP_RETURN_IF_ERROR(out.CopyFrom(entry.stored, priority));
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
  INTERP_ASSIGN_OR_RETURN(Entry* const entry, Find(key));
  INTERP_RETURN_IF_ERROR(CheckValues(*entry, values));
  INTERP_RETURN_IF_ERROR(CheckOuts(*entry, outs));
  const Tape::Pause pause;
  std::lock_guard<std::mutex> lock(entry->mutex);
  INTERP_RETURN_IF_ERROR(PushLocked(*entry, values, priority));
  return PullLocked(*entry, outs, priority);
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
  std::lock_guard<std::mutex> lock(mutex_);
  settings_.updater = std::move(updater);
}

absl::Status KVStore::SetOptimizer(const StoreOptimizerOptions& options) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<StoreOptimizer> optimizer,
                          StoreOptimizer::Make(runtime_, options));
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

absl::Status KVStore::Barrier() { return ranks_ == nullptr ? absl::OkStatus() : ranks_->Barrier(); }

absl::StatusOr<Array> KVStore::Stored(absl::string_view key) {
  INTERP_ASSIGN_OR_RETURN(const Entry* const entry, Find(key));
  return entry->stored;
}

}  // namespace interp
