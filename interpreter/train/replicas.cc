#include "interpreter/train/replicas.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "core/base/catching.h"
#include "core/machine/usable_cpus.h"
#include "interpreter/compile/random_ops.h"
#include "passes/train/split_update.h"

namespace interp {
namespace {

using Clock = std::chrono::steady_clock;

// What a time-out of the whole step leaves for its next part.
class Deadline {
 public:
  explicit Deadline(const std::optional<std::chrono::nanoseconds>& timeout) : timeout_(timeout) {}
  std::optional<std::chrono::nanoseconds> left() const {
    if (!timeout_.has_value()) return std::nullopt;
    return std::max(std::chrono::nanoseconds(0), *timeout_ - (Clock::now() - start_));
  }

 private:
  const std::optional<std::chrono::nanoseconds> timeout_;
  const Clock::time_point start_ = Clock::now();
};

// So that replicas together never take more threads than there are CPUs for this process.
int ThreadsPerReplica(const CoreOptions& options, int count) {
  if (options.num_threads > 0 || count == 1) return options.num_threads;
  return std::max(1, UsableCpus() / (std::max(1, options.num_workers) * count));
}

// The first replica's error that is not a consequence of another's. `several`: it is to say whose.
absl::Status ErrorOf(const std::vector<absl::Status>& statuses, bool several) {
  const absl::Status* error = nullptr;
  size_t replica = 0;
  for (size_t r = 0; r < statuses.size(); ++r) {
    if (statuses[r].ok()) continue;
    if (error != nullptr && (!absl::IsCancelled(*error) || absl::IsCancelled(statuses[r])))
      continue;
    error = &statuses[r];
    replica = r;
  }
  if (error == nullptr) return absl::OkStatus();
  if (!several) return *error;
  return Annotate(*error, absl::StrCat("replica ", replica));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replicas>> Replicas::Create(
    Program main, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
    std::shared_ptr<Scope> scope, ShareCounts counts, const CoreOptions& options) {
  if (!options.plan.place.on_host()) {
    return Unimplemented("replicas run on the host, and the place is ", Name(options.plan.place));
  }
  const OpRegistry& ops = options.ops != nullptr ? *options.ops : OpRegistry::Global();
  NumberRandomOps(main, ops);  // while all of them are there
  INTERP_ASSIGN_OR_RETURN(SplitProgram split, SplitUpdate(main));
  INTERP_RETURN_IF_ERROR(CheckSharesUpdate(split, "replicas"));
  std::unique_ptr<Replicas> replicas(new Replicas());
  replicas->counts_ = counts;
  replicas->scope_ = std::move(scope);
  replicas->states_read_ = split.states_read;
  replicas->states_written_ = split.states_written;
  replicas->PlanFetches(main, split, fetches);
  std::vector<std::string> all_feeds = feeds;
  all_feeds.insert(all_feeds.end(), split.states_read.begin(), split.states_read.end());
  INTERP_RETURN_IF_ERROR(
      replicas->MakeCores(std::move(split), all_feeds, counts.replicas, options));
  const std::vector<FeedSpec>& specs = replicas->first().plan().feeds;
  replicas->feeds_.assign(specs.begin(), specs.begin() + std::ssize(feeds));
  INTERP_ASSIGN_OR_RETURN(replicas->team_, ThreadTeam::Create(counts.replicas));
  return replicas;
}

size_t Replicas::MergedColumn(const std::string& name, Merge merge) {
  const auto it = std::ranges::find(merged_, name, &Merged::name);
  if (it != merged_.end()) return static_cast<size_t>(it - merged_.begin());
  merged_.push_back({.name = name, .merge = merge, .value = {}});
  return merged_.size() - 1;
}

void Replicas::PlanFetches(const Program& main, const SplitProgram& split,
                           const std::vector<std::string>& fetches) {
  for (const PassedValue& value : split.passed) {
    passed_.push_back(MergedColumn(value.name, value.merge));
  }
  for (const std::string& name : fetches) {
    if (split.fetched_from_update.contains(name)) {
      fetches_.push_back({.from_update = true, .column = update_fetches_.size()});
      update_fetches_.push_back(name);
    } else {
      fetches_.push_back({.from_update = false, .column = MergedColumn(name, MergeOf(main, name))});
    }
  }
}

absl::Status Replicas::MakeCores(SplitProgram split, const std::vector<std::string>& feeds,
                                 int count, const CoreOptions& options) {
  std::vector<std::string> fetches;
  for (const Merged& merged : merged_) fetches.push_back(merged.name);
  fetches.insert(fetches.end(), states_written_.begin(), states_written_.end());
  CoreOptions of_replica = options;
  of_replica.num_threads = ThreadsPerReplica(options, count);
  INTERP_ASSIGN_OR_RETURN(
      std::unique_ptr<InterpreterCore> first,
      InterpreterCore::Create(std::move(split.compute), feeds, fetches, scope_, of_replica));
  cores_.push_back(std::move(first));
  for (int r = 1; r < count; ++r) cores_.push_back(cores_[0]->Clone());
  // Updates of parameters run side by side, each on one thread: threads inside their ops would go
  // on spinning for a while on the processors that the replicas need next.
  CoreOptions of_update = options;
  if (count > 1) {
    if (of_update.scheduler == SchedulerKind::kAuto) of_update.scheduler = SchedulerKind::kAsync;
    of_update.num_workers = std::max(options.num_workers, count);
    of_update.num_threads = 1;
  }
  std::vector<std::string> passed;
  for (const size_t column : passed_) passed.push_back(merged_[column].name);
  INTERP_ASSIGN_OR_RETURN(update_, InterpreterCore::Create(std::move(split.update), passed,
                                                           update_fetches_, scope_, of_update));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Replicas::Step(absl::Span<const Tensor> feeds,
                                                   const RunOptions& options) {
  INTERP_ASSIGN_OR_RETURN(std::vector<BatchShare> shares, SplitBatch(feeds, feeds_, num_shares()));
  const Deadline deadline(options.timeout);
  RunOptions run = options;
  run.random = options.random.value_or(first().random_state());
  {
    INTERP_ASSIGN_OR_RETURN(std::vector<Computed> computed, Compute(std::move(shares), run));
    INTERP_RETURN_IF_ERROR(MergeComputed(computed));
    KeepStates(computed[0].fetched);
  }  // the update is to find parameters that nobody else holds
  std::vector<Tensor> passed;
  for (const size_t column : passed_) passed.push_back(merged_[column].value.result());
  run.observer = nullptr;
  run.timeout = deadline.left();
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> updated, update_->Run(passed, run));
  if (!options.random.has_value()) {
    first().SetRandomState({run.random->seed, run.random->stream, run.random->step + 1});
  }
  std::vector<Tensor> results;
  for (const Fetch& fetch : fetches_) {
    results.push_back(fetch.from_update ? updated[fetch.column]
                                        : merged_[fetch.column].value.result());
  }
  for (Merged& merged : merged_) merged.value.Drop();  // before replicas need memory again
  return results;
}

// Values of parameters and states, which are fed behind the feeds of the caller.
absl::StatusOr<std::vector<Tensor>> Replicas::States() const {
  std::vector<Tensor> states;
  for (const std::string& name : states_read_) {
    const Variable* variable = scope_->root().FindLocal(name);
    if (variable == nullptr || !variable->tensor.has_memory()) {
      return NotFound("parameter '", name,
                      "' has no value; run the startup program or load the parameters first");
    }
    states.push_back(variable->tensor);
  }
  return states;
}

// The first replicas have a share more where the shares do not divide.
absl::StatusOr<std::vector<Replicas::Computed>> Replicas::Compute(std::vector<BatchShare> shares,
                                                                  const RunOptions& options) {
  const int64_t busy = std::min<int64_t>(counts_.replicas, std::ssize(shares));
  const auto begin_of = [&, count = std::ssize(shares)](int64_t replica) {
    return count / busy * replica + std::min(replica, count % busy);
  };
  std::vector<Computed> computed(busy);
  std::vector<absl::Status> statuses(busy);
  team_->Run([&](int r) {
    if (r >= busy) return;
    const int64_t first = begin_of(r);
    const auto own = absl::MakeSpan(shares).subspan(first, begin_of(r + 1) - first);
    absl::StatusOr<Computed> result =
        Catching([&] { return ComputeTurns(r, own, first, options); });
    if (result.ok()) {
      computed[r] = *std::move(result);
      return;
    }
    statuses[r] = result.status();
    // What the others compute is not needed any more.
    for (const auto& core : cores_) core->Cancel();
  });
  // Who was done by then is not to end the next step.
  for (const auto& core : cores_) core->ForgetCancel();
  INTERP_RETURN_IF_ERROR(ErrorOf(statuses, counts_.replicas > 1));
  return computed;
}

// Shares of one replica, the first of which has the number `first`.
absl::StatusOr<Replicas::Computed> Replicas::ComputeTurns(int replica,
                                                          absl::Span<BatchShare> shares,
                                                          int64_t first,
                                                          const RunOptions& options) {
  const Deadline deadline(options.timeout);
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> states, States());
  int64_t samples = 0;
  for (const BatchShare& share : shares) samples += share.num_samples;
  std::vector<Parts> parts(merged_.size());
  std::vector<Tensor> written(states_written_.size());
  for (size_t turn = 0; turn < shares.size(); ++turn) {
    RunOptions run = options;
    run.observer = first + static_cast<int64_t>(turn) == 0 ? options.observer : nullptr;
    run.random->stream += static_cast<uint64_t>(first) + turn;
    run.timeout = deadline.left();
    std::vector<Tensor> feeds = std::move(shares[turn].feeds);
    feeds.insert(feeds.end(), states.begin(), states.end());
    absl::StatusOr<std::vector<Tensor>> fetched = cores_[replica]->Run(feeds, run);
    absl::Status added = fetched.status();
    if (added.ok()) {
      PassStates(*fetched, written, states);
      const int64_t own = shares[turn].num_samples;
      added = AddTurn(*std::move(fetched), static_cast<double>(own) / static_cast<double>(samples),
                      parts);
    }
    if (added.ok()) continue;
    if (counts_.turns == 1) return added;
    return Annotate(added, absl::StrCat("micro-batch ", turn));
  }
  Computed computed;
  computed.num_samples = samples;
  for (size_t column = 0; column < merged_.size(); ++column) {
    const absl::Status merged = MergeParts(merged_[column].merge, parts[column]);
    if (!merged.ok()) return Annotate(merged, absl::StrCat("'", merged_[column].name, "'"));
    computed.fetched.push_back(std::move(parts[column].values[0]));
  }
  computed.fetched.insert(computed.fetched.end(), written.begin(), written.end());
  return computed;
}

// Leaves one value, of weight 1.
absl::Status Replicas::MergeParts(Merge merge, Parts& parts) {
  if (parts.values.size() == 1) return absl::OkStatus();
  MergedValue merged;
  INTERP_RETURN_IF_ERROR(merged.Begin(std::move(parts.values), merge, parts.weights));
  merged.MergeSlice(0, 1);
  merged.Finish();
  parts = {.values = {merged.result()}, .weights = {1}};
  return absl::OkStatus();
}

// Adds what a share gave. Rows are joined once, at the end, and so are means of 16-bit floats,
// which are to be rounded once.
absl::Status Replicas::AddTurn(std::vector<Tensor> fetched, double weight,
                               std::vector<Parts>& parts) const {
  for (size_t column = 0; column < merged_.size(); ++column) {
    Parts& own = parts[column];
    const DType dtype = fetched[column].dtype;
    own.values.push_back(std::move(fetched[column]));
    own.weights.push_back(weight);
    const bool waits = merged_[column].merge != Merge::kMean || dtype == DType::kBFloat16 ||
                       dtype == DType::kFloat16;
    if (waits) continue;
    const absl::Status merged = MergeParts(merged_[column].merge, own);
    if (!merged.ok()) return Annotate(merged, absl::StrCat("'", merged_[column].name, "'"));
  }
  return absl::OkStatus();
}

// Takes what a share made of the states, which the next share of its replica starts with.
void Replicas::PassStates(std::vector<Tensor>& fetched, std::vector<Tensor>& written,
                          std::vector<Tensor>& states) const {
  for (size_t i = 0; i < states_written_.size(); ++i) {
    Tensor& value = fetched[merged_.size() + i];
    if (!value.has_memory()) continue;
    const auto read = std::ranges::find(states_read_, states_written_[i]);
    if (read != states_read_.end()) states[read - states_read_.begin()] = value;
    written[i] = std::move(value);
  }
}

absl::Status Replicas::MergeComputed(std::vector<Computed>& computed) {
  int64_t samples = 0;
  for (const Computed& of_replica : computed) samples += of_replica.num_samples;
  std::vector<double> weights;
  for (const Computed& of_replica : computed) {
    weights.push_back(static_cast<double>(of_replica.num_samples) / static_cast<double>(samples));
  }
  for (size_t column = 0; column < merged_.size(); ++column) {
    Merged& merged = merged_[column];
    std::vector<Tensor> parts;
    for (Computed& of_replica : computed) parts.push_back(std::move(of_replica.fetched[column]));
    const absl::Status begun = merged.value.Begin(std::move(parts), merged.merge, weights);
    if (!begun.ok()) return Annotate(begun, absl::StrCat("'", merged.name, "'"));
  }
  team_->Run([&](int slice) {
    for (Merged& merged : merged_) merged.value.MergeSlice(slice, team_->size());
  });
  for (Merged& merged : merged_) merged.value.Finish();
  return absl::OkStatus();
}

void Replicas::KeepStates(std::vector<Tensor>& fetched) {
  for (size_t i = 0; i < states_written_.size(); ++i) {
    Tensor& value = fetched[merged_.size() + i];
    if (!value.has_memory()) continue;  // no op has written it
    Variable& variable = *scope_->root().FindOrCreate(states_written_[i]);
    variable.tensor = std::move(value);
    ++variable.version;
  }
}

size_t Replicas::peak_bytes() const {
  size_t bytes = update_->memory().peak_bytes;
  for (const auto& core : cores_) bytes += core->memory().peak_bytes;
  return bytes;
}

}  // namespace interp
