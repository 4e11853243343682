#include "interpreter/train/replicas.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "core/catching.h"
#include "interpreter/compile/random_ops.h"
#include "passes/split_update.h"

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

// So that replicas together never take more threads than there are cores.
int ThreadsPerReplica(const CoreOptions& options, int count) {
  if (options.num_threads > 0) return options.num_threads;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::max(1, cores / (std::max(1, options.num_workers) * count));
}

// The first replica's error that is not a consequence of another's.
absl::Status ErrorOf(const std::vector<absl::Status>& statuses) {
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
  return Annotate(*error, absl::StrCat("replica ", replica));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replicas>> Replicas::Create(Program main,
                                                           const std::vector<std::string>& feeds,
                                                           const std::vector<std::string>& fetches,
                                                           std::shared_ptr<Scope> scope, int count,
                                                           const CoreOptions& options) {
  if (!options.plan.place.on_host()) {
    return Unimplemented("replicas run on the host, and the place is ", Name(options.plan.place));
  }
  const OpRegistry& ops = options.ops != nullptr ? *options.ops : OpRegistry::Global();
  NumberRandomOps(main, ops);  // while all of them are there
  INTERP_ASSIGN_OR_RETURN(SplitProgram split, SplitUpdate(main));
  std::unique_ptr<Replicas> replicas(new Replicas());
  replicas->scope_ = std::move(scope);
  replicas->states_read_ = split.states_read;
  replicas->states_written_ = split.states_written;
  replicas->PlanFetches(main, split, fetches);
  std::vector<std::string> all_feeds = feeds;
  all_feeds.insert(all_feeds.end(), split.states_read.begin(), split.states_read.end());
  INTERP_RETURN_IF_ERROR(replicas->MakeCores(std::move(split), all_feeds, count, options));
  const std::vector<FeedSpec>& specs = replicas->first().plan().feeds;
  replicas->feeds_.assign(specs.begin(), specs.begin() + std::ssize(feeds));
  INTERP_ASSIGN_OR_RETURN(replicas->team_, ThreadTeam::Create(count));
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
  if (of_update.scheduler == SchedulerKind::kAuto) of_update.scheduler = SchedulerKind::kAsync;
  of_update.num_workers = std::max(options.num_workers, count);
  of_update.num_threads = 1;
  std::vector<std::string> passed;
  for (const size_t column : passed_) passed.push_back(merged_[column].name);
  INTERP_ASSIGN_OR_RETURN(update_, InterpreterCore::Create(std::move(split.update), passed,
                                                           update_fetches_, scope_, of_update));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Replicas::Step(absl::Span<const Tensor> feeds,
                                                   const RunOptions& options) {
  INTERP_ASSIGN_OR_RETURN(std::vector<BatchShare> shares,
                          SplitBatch(feeds, feeds_, static_cast<int>(cores_.size())));
  const Deadline deadline(options.timeout);
  RunOptions run = options;
  run.random = options.random.value_or(first().random_state());
  INTERP_RETURN_IF_ERROR(AddStates(shares));
  INTERP_ASSIGN_OR_RETURN(Fetched fetched, Compute(shares, run));
  INTERP_RETURN_IF_ERROR(MergeFetched(shares, fetched));
  KeepStates(fetched[0]);
  shares.clear();  // the update is to find parameters that nobody else holds
  fetched.clear();
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

// Parameters and states as feeds behind those of the caller.
absl::Status Replicas::AddStates(std::vector<BatchShare>& shares) const {
  for (const std::string& name : states_read_) {
    const Variable* variable = scope_->root().FindLocal(name);
    if (variable == nullptr || !variable->tensor.has_memory()) {
      return NotFound("parameter '", name,
                      "' has no value; run the startup program or load the parameters first");
    }
    for (BatchShare& share : shares) share.feeds.push_back(variable->tensor);
  }
  return absl::OkStatus();
}

absl::StatusOr<Replicas::Fetched> Replicas::Compute(const std::vector<BatchShare>& shares,
                                                    const RunOptions& options) {
  Fetched fetched(shares.size());
  std::vector<absl::Status> statuses(shares.size());
  team_->Run([&](int r) {
    if (r >= std::ssize(shares)) return;
    RunOptions run = options;
    run.observer = r == 0 ? options.observer : nullptr;
    run.random->stream += static_cast<uint64_t>(r);
    absl::StatusOr<std::vector<Tensor>> result =
        Catching([&] { return cores_[r]->Run(shares[r].feeds, run); });
    if (result.ok()) {
      fetched[r] = *std::move(result);
      return;
    }
    statuses[r] = result.status();
    // What the others compute is not needed any more.
    for (const auto& core : cores_) core->Cancel();
  });
  // Who was done by then is not to end the next step.
  for (const auto& core : cores_) core->ForgetCancel();
  INTERP_RETURN_IF_ERROR(ErrorOf(statuses));
  return fetched;
}

absl::Status Replicas::MergeFetched(const std::vector<BatchShare>& shares, Fetched& fetched) {
  int64_t samples = 0;
  for (const BatchShare& share : shares) samples += share.num_samples;
  std::vector<double> weights;
  for (const BatchShare& share : shares) {
    weights.push_back(static_cast<double>(share.num_samples) / static_cast<double>(samples));
  }
  for (size_t column = 0; column < merged_.size(); ++column) {
    Merged& merged = merged_[column];
    std::vector<Tensor> parts;
    for (std::vector<Tensor>& of_replica : fetched) {
      parts.push_back(std::move(of_replica[column]));
    }
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
