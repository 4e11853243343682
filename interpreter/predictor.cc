#include "interpreter/predictor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "core/base/catching.h"
#include "core/base/steady_clock.h"
#include "interpreter/load_model.h"

namespace interp {
namespace {

PredictorVar DescribeFetch(const Program& program, const std::string& name) {
  PredictorVar described{.name = name};
  const VarId id = program.Find(name);
  for (const Var& var : program.blocks[0].vars) {
    if (var.id != id) continue;
    described.dtype = var.dtype;
    described.dims = var.dims;
  }
  return described;
}

}  // namespace

Predictor::Predictor(std::unique_ptr<InterpreterCore> core, int num_streams)
    : first_(std::move(core)), num_streams_(num_streams) {
  for (const FeedSpec& feed : first_->plan().feeds) {
    inputs_.push_back({feed.name, feed.dtype, {feed.shape.begin(), feed.shape.end()}});
  }
  for (const std::string& name : first_->plan().fetches) {
    outputs_.push_back(DescribeFetch(first_->program(), name));
  }
}

Predictor::~Predictor() = default;

template <typename Make>
absl::StatusOr<std::unique_ptr<Predictor>> Predictor::MakeFrom(const Make& make,
                                                               const PredictorOptions& options) {
  if (options.num_streams < 1 || options.num_streams > kMaxThreads) {
    return InvalidArgument("num_streams is ", options.num_streams, ", expected 1 to ", kMaxThreads);
  }
  CoreOptions core_options = options.core;
  core_options.num_streams = options.num_streams;
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<InterpreterCore> core, make(core_options));
  const int num_streams = core->writes_persistables() ? 1 : options.num_streams;
  return std::unique_ptr<Predictor>(new Predictor(std::move(core), num_streams));
}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(Program program,
                                                             std::shared_ptr<Scope> scope,
                                                             const PredictorOptions& options) {
  const auto make = [&](CoreOptions core) {
    KeepNoState(core.passes);
    return InterpreterCore::Create(std::move(program), options.feeds, options.fetches,
                                   std::move(scope), core);
  };
  return MakeFrom(make, options);
}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Load(const std::string& path,
                                                           const std::optional<std::string>& params,
                                                           const PredictorOptions& options) {
  INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(path, params, RefuseUnloaded, ParamMemory::kFile));
  using Core = std::unique_ptr<InterpreterCore>;
  const auto make = [&](const CoreOptions& core) -> absl::StatusOr<Core> {
    INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, TakeCompiled(model));
    return InterpreterCore::Create(std::move(compiled), model.scope, core);
  };
  return Annotate(model.compiled.has_value()
                      ? MakeFrom(make, options)
                      : Create(std::move(model.program), model.scope, options),
                  model.path);
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> Predictor::TakeCore(const Call& call) {
  std::unique_lock lock(mutex_);
  const auto can_go = [this] { return !idle_.empty() || num_made_ < num_streams_; };
  // The sums of wait_until may overflow for the last point of the clock.
  const bool bounded = call.deadline.has_value() && *call.deadline != Clock::time_point::max();
  const bool goes = bounded ? freed_.wait_until(lock, call.stop, *call.deadline, can_go)
                            : freed_.wait(lock, call.stop, can_go);
  if (call.stop.stop_requested()) {
    // This call may have been woken for a stream that another could have.
    if (goes) freed_.notify_one();
    return absl::CancelledError("the call was cancelled");
  }
  if (!goes) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the call was not done in time: all ", num_streams_, " streams were busy with others"));
  }
  if (idle_.empty()) {
    using Core = std::unique_ptr<InterpreterCore>;
    absl::StatusOr<Core> clone =
        Catching([this]() -> absl::StatusOr<Core> { return first_->Clone(); });
    if (clone.ok()) {
      ++num_made_;
    } else {
      freed_.notify_one();
    }
    return clone;
  }
  std::unique_ptr<InterpreterCore> core = std::move(idle_.back());
  idle_.pop_back();
  return core;
}

void Predictor::GiveBack(std::unique_ptr<InterpreterCore> core) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(core));
  }
  freed_.notify_one();
}

absl::StatusOr<std::vector<Tensor>> Predictor::Run(absl::Span<const Tensor> feeds,
                                                   const PredictOptions& options) {
  Call call{.stop = options.stop, .deadline = std::nullopt};
  if (options.timeout.has_value()) call.deadline = DeadlineAfter(*options.timeout);
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<InterpreterCore> core, TakeCore(call));
  RunOptions run;
  if (call.deadline.has_value()) run.timeout = *call.deadline - Clock::now();
  absl::StatusOr<std::vector<Tensor>> fetched;
  {
    const std::stop_callback on_stop(call.stop, [&core] { core->Cancel(); });
    fetched = core->Run(feeds, run);
  }
  core->ForgetCancel();  // a stop may have come too late for this run
  GiveBack(std::move(core));
  return fetched;
}

absl::StatusOr<std::vector<NamedTensor>> Predictor::Run(absl::Span<const NamedTensor> feeds,
                                                        const PredictOptions& options) {
  std::vector<Tensor> ordered(inputs_.size());
  std::vector<bool> given(inputs_.size());
  for (const NamedTensor& feed : feeds) {
    const auto input = std::find_if(inputs_.begin(), inputs_.end(), [&](const PredictorVar& var) {
      return var.name == feed.first;
    });
    const size_t at = static_cast<size_t>(input - inputs_.begin());
    if (input == inputs_.end() || given[at]) {
      return InvalidArgument(
          "feed '", feed.first, "' is ", input == inputs_.end() ? "unknown" : "there twice",
          "; inputs are ",
          absl::StrJoin(inputs_, ", ", [](std::string* out, const PredictorVar& var) {
            absl::StrAppend(out, var.name);
          }));
    }
    given[at] = true;
    ordered[at] = feed.second;
  }
  const auto missing = std::find(given.begin(), given.end(), false);
  if (missing != given.end()) {
    return InvalidArgument("input '", inputs_[missing - given.begin()].name, "' is not fed");
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> results, Run(ordered, options));
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < results.size(); ++i) {
    named.emplace_back(outputs_[i].name, std::move(results[i]));
  }
  return named;
}

absl::StatusOr<std::vector<Tensor>> Predictor::RunInto(absl::Span<const Tensor> feeds,
                                                       absl::Span<const OutputMemory> outputs,
                                                       const PredictOptions& options) {
  if (outputs.size() != outputs_.size()) {
    return InvalidArgument("there is memory for ", outputs.size(), " outputs, expected ",
                           outputs_.size());
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> results, Run(feeds, options));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].size_bytes() <= outputs[i].size_bytes) continue;
    return InvalidArgument("output '", outputs_[i].name, "' is ", DescribeType(results[i]), ", ",
                           results[i].size_bytes(), " bytes, but the memory for it has ",
                           outputs[i].size_bytes);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const size_t size_bytes = results[i].size_bytes();
    if (size_bytes > 0) std::memcpy(outputs[i].data, results[i].raw_data(), size_bytes);
    results[i].SetMemory(BorrowBuffer(outputs[i].data, outputs[i].size_bytes, /*writable=*/false),
                         outputs[i].data);
  }
  return results;
}

}  // namespace interp
