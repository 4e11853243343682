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
  if (options.num_threads > 0 || count == 1) return options.num_threads;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::max(1, cores / (std::max(1, options.num_workers) * count));
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
  const auto weight = [&](size_t turn) {
    return static_cast<double>(shares[turn].num_samples) / static_cast<double>(samples);
  };
  Computed computed;
  computed.num_samples = samples;
  for (size_t turn = 0; turn < shares.size(); ++turn) {
    RunOptions run = options;
    run.observer = first + static_cast<int64_t>(turn) == 0 ? options.observer : nullptr;
    run.random->stream += static_cast<uint64_t>(first) + turn;
    run.timeout = deadline.left();
    std::vector<Tensor> feeds = std::move(shares[turn].feeds);
    feeds.insert(feeds.end(), states.begin(), states.end());
    absl::StatusOr<std::vector<Tensor>> fetched = cores_[replica]->Run(feeds, run);
    if (fetched.ok() && turn > 0) {
      for (size_t i = 0; i < states_written_.size(); ++i) {
        Tensor& value = (*fetched)[merged_.size() + i];
        if (value.has_memory()) computed.fetched[merged_.size() + i] = std::move(value);
      }
      const double before = turn == 1 ? weight(0) : 1;
      const absl::Status added =
          AddTurn(*std::move(fetched), before, weight(turn), computed.fetched);
      if (!added.ok()) fetched = added;
    } else if (fetched.ok()) {
      computed.fetched = *std::move(fetched);
    }
    if (!fetched.ok()) {
      if (counts_.turns == 1) return fetched.status();
      return Annotate(fetched.status(), absl::StrCat("micro-batch ", turn));
    }
    PassStates(computed.fetched, states);
  }
  return computed;
}

// Adds what a share gave, times `added`, to the sums of those before, times `before`.
absl::Status Replicas::AddTurn(std::vector<Tensor> fetched, double before, double added,
                               std::vector<Tensor>& sums) const {
  for (size_t column = 0; column < merged_.size(); ++column) {
    MergedValue sum;
    std::vector<Tensor> parts;
    parts.push_back(std::move(sums[column]));
    parts.push_back(std::move(fetched[column]));
    const absl::Status begun = sum.Begin(std::move(parts), merged_[column].merge, {before, added});
    if (!begun.ok()) return Annotate(begun, absl::StrCat("'", merged_[column].name, "'"));
    sum.MergeSlice(0, 1);
    sum.Finish();
    sums[column] = sum.result();
  }
  return absl::OkStatus();
}

// Gives the next share of a replica what the last one made of the states.
void Replicas::PassStates(const std::vector<Tensor>& fetched, std::vector<Tensor>& states) const {
  for (size_t i = 0; i < states_written_.size(); ++i) {
    const Tensor& value = fetched[merged_.size() + i];
    const auto read = std::ranges::find(states_read_, states_written_[i]);
    if (read != states_read_.end() && value.has_memory()) {
      states[read - states_read_.begin()] = value;
    }
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
