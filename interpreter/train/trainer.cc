#include "interpreter/train/trainer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/device/device_heap.h"
#include "core/op_role.h"
#include "core/storage/aligned_memory.h"
#include "core/sub_blocks.h"
#include "interpreter/compile/random_ops.h"
#include "interpreter/train/data_parallel.h"
#include "interpreter/train/micro_batches.h"
#include "interpreter/train/replicas.h"
#include "interpreter/train/sequence_rows.h"
#include "passes/feed_fetch.h"
#include "passes/import/retired_slots.h"
#include "passes/import/step_gradients.h"
#include "passes/prune.h"
#include "passes/readers.h"
#include "passes/train/addto.h"
#include "passes/train/merged_update.h"
#include "passes/train/micro_batch_analysis.h"
#include "passes/verify.h"

namespace interp {
namespace {

// No clone of a core gets so far.
constexpr uint64_t kStartupStream = std::numeric_limits<uint64_t>::max();

const OpRegistry& OpsOf(const TrainerOptions& options) {
  return options.core.ops == nullptr ? OpRegistry::Global() : *options.core.ops;
}

// As the program says, where the options do not.
absl::Status NameFeedsAndFetches(const Program& main, TrainerOptions& options) {
  if (options.feeds.empty()) {
    INTERP_RETURN_IF_ERROR(CheckReaders(main));
    INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> data, DataVars(main));
    for (const VarId id : data) options.feeds.push_back(main.NameOf(id));
  }
  if (options.fetches.empty()) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> own, FetchVars(main));
    for (const VarId id : own) options.fetches.push_back(main.NameOf(id));
  }
  return absl::OkStatus();
}

// Null where steps take batches whole.
absl::StatusOr<std::unique_ptr<SequenceRows>> SequencesOf(const Program& main,
                                                          const TrainerOptions& options) {
  if (options.replicas <= 1 && !options.micro_batches.has_value() &&
      !options.data_parallel.has_value()) {
    return nullptr;
  }
  INTERP_RETURN_IF_ERROR(VerifyProgram(main, OpsOf(options)));
  return std::make_unique<SequenceRows>(main, options.feeds, options.fetches);
}

// Whether micro-batches are shares that replicas, or one of them, compute in turns: programs of
// jobs have no blocks, and are one each. A pipeline is such a program, and so is what ranks run.
bool TakesTurns(const Program& main, const TrainerOptions& options) {
  if (!options.micro_batches.has_value() || options.micro_batches->stages != 1 ||
      options.data_parallel.has_value() || !options.core.plan.place.on_host()) {
    return false;
  }
  return options.replicas > 1 ||
         std::any_of(main.blocks[0].ops.begin(), main.blocks[0].ops.end(),
                     [](const Op& op) { return HasSubBlock(op) && !IsUpdate(op); });
}

absl::StatusOr<std::optional<JobSchedule>> TurnsOf(const Program& main,
                                                   const TrainerOptions& options) {
  if (!TakesTurns(main, options)) return std::nullopt;
  const JobSchedule turns = {.kind = options.micro_batches->schedule,
                             .stages = 1,
                             .chunks = options.micro_batches->chunks,
                             .micro_batches = options.micro_batches->micro_batches};
  INTERP_RETURN_IF_ERROR(CheckSchedule(turns));
  INTERP_RETURN_IF_ERROR(CheckTurns(main, options.feeds, OpsOf(options)));
  return turns;
}

// Before the program is cut into parts, which would each have the readers.
void DropFedReaders(const std::vector<std::string>& feeds, Program& main) {
  std::vector<VarId> fed;
  for (const std::string& name : feeds) {
    if (const VarId id = main.Find(name); id >= 0) fed.push_back(id);
  }
  DropReaders(main, fed);
}

absl::StatusOr<Program> MakeReadyToBeFed(Program main, TrainerOptions& options) {
  PassContext as_loaded{.ops = OpsOf(options)};
  if (!options.fetches.empty()) as_loaded.fetches = options.fetches;
  INTERP_ASSIGN_OR_RETURN(main, DropRetiredSlots(std::move(main), as_loaded));
  INTERP_ASSIGN_OR_RETURN(main, DeclareStepGradients(std::move(main)));
  MarkMergedUpdates(main);
  INTERP_RETURN_IF_ERROR(NameFeedsAndFetches(main, options));
  DropFedReaders(options.feeds, main);
  return main;
}

// Changes what is fed and fetched to what the program of micro-batches takes and gives.
absl::StatusOr<std::unique_ptr<MicroBatches>> CutIntoJobs(Program& main, TrainerOptions& options,
                                                          std::vector<std::string>& feeds,
                                                          std::vector<std::string>& fetches) {
  options.micro_batches->place = options.core.plan.place;
  options.core.passes.enable.emplace_back(kAddToPass);
  INTERP_ASSIGN_OR_RETURN(auto made, MicroBatches::Create(main, feeds, fetches,
                                                          *options.micro_batches, OpsOf(options)));
  feeds = made->feeds();
  fetches = made->fetches();
  return made;
}

absl::StatusOr<std::unique_ptr<DataParallel>> ShareOutOverRanks(Program& main,
                                                                const TrainerOptions& options) {
  INTERP_RETURN_IF_ERROR(VerifyProgram(main, OpsOf(options)));
  NumberRandomOps(main, OpsOf(options));  // as without ranks
  return DataParallel::Create(main, options.fetches, options.core.rings, *options.data_parallel);
}

}  // namespace

Trainer::Trainer(std::shared_ptr<Scope> scope, std::vector<ParamDecl> persistables,
                 TrainerOptions options)
    : scope_(std::move(scope)),
      persistables_(std::move(persistables)),
      fetches_(std::move(options.fetches)),
      options_(std::move(options.core)) {}

Trainer::~Trainer() = default;

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(Program main, std::shared_ptr<Scope> scope,
                                                         TrainerOptions options) {
  if (scope == nullptr) scope = std::make_shared<Scope>();
  INTERP_ASSIGN_OR_RETURN(main, MakeReadyToBeFed(std::move(main), options));
  Program states;  // makes the first scale and its counts
  if (options.loss_scaling.has_value()) {
    INTERP_RETURN_IF_ERROR(AddLossScaling(main, states, *options.loss_scaling, OpsOf(options)));
  }
  options.core.passes.disable.emplace_back(kPrunePass);
  INTERP_RETURN_IF_ERROR(CheckCombination(options));
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<SequenceRows> sequences, SequencesOf(main, options));
  INTERP_ASSIGN_OR_RETURN(const std::optional<JobSchedule> turns, TurnsOf(main, options));
  std::vector<std::string> feeds = options.feeds;
  std::vector<std::string> fetches = options.fetches;
  const std::vector<ParamDecl> persistables = ParamsOf(main);
  std::unique_ptr<MicroBatches> micro_batches;
  if (options.micro_batches.has_value() && !turns.has_value()) {
    INTERP_ASSIGN_OR_RETURN(micro_batches, CutIntoJobs(main, options, feeds, fetches));
  }
  std::unique_ptr<DataParallel> ranks;
  if (options.data_parallel.has_value()) {
    INTERP_ASSIGN_OR_RETURN(ranks, ShareOutOverRanks(main, options));
    feeds.push_back(ranks->weight());
  }
  const ShareCounts counts{.replicas = options.replicas,
                           .turns = turns.has_value() ? turns->micro_batches : 1};
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(scope), persistables, std::move(options)));
  trainer->micro_batches_ = std::move(micro_batches);
  trainer->turns_ = turns;
  trainer->ranks_ = std::move(ranks);
  trainer->sequences_ = std::move(sequences);
  INTERP_RETURN_IF_ERROR(trainer->MakeCore(std::move(main), feeds, fetches, counts));
  if (!states.blocks.empty()) INTERP_RETURN_IF_ERROR(trainer->Initialize(states));
  return trainer;
}

absl::Status Trainer::MakeCore(Program main, const std::vector<std::string>& feeds,
                               const std::vector<std::string>& fetches, const ShareCounts& counts) {
  if (counts.replicas > 1 || counts.turns > 1) {
    INTERP_ASSIGN_OR_RETURN(
        replicas_, Replicas::Create(std::move(main), feeds, fetches_, scope_, counts, options_));
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(
      core_, InterpreterCore::Create(std::move(main), feeds, fetches, scope_, options_));
  const std::vector<FeedSpec>& specs = core_->plan().feeds;
  if (micro_batches_ != nullptr) {
    feeds_of_batch_ = micro_batches_->FeedsOfBatch(specs);
  } else if (ranks_ != nullptr) {
    feeds_of_batch_.assign(specs.begin(), specs.end() - 1);
  }
  return absl::OkStatus();
}

absl::Status Trainer::CheckCombination(const TrainerOptions& options) {
  if (options.data_parallel.has_value() && options.replicas > 1) {
    return Unimplemented("replicas within ranks: expected one of the two");
  }
  if (options.micro_batches.has_value() && options.micro_batches->stages != 1 &&
      options.replicas > 1) {
    return Unimplemented("a pipeline within replicas: expected one of the two");
  }
  return absl::OkStatus();
}

absl::Status Trainer::Initialize(const Program& startup,
                                 std::optional<std::chrono::nanoseconds> timeout) {
  CoreOptions options = options_;
  options.devices = devices();  // where the program will look for the values
  options.cuda_graphs = false;  // it runs once
  // No one stage has to hold all parameters.
  if (micro_batches_ != nullptr && micro_batches_->schedule().stages > 1) options.plan.place = {};
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<InterpreterCore> startup_core,
                          InterpreterCore::Create(startup, {}, {}, scope_, options));
  const RunOptions run{
      .timeout = timeout,
      .random = RandomState{.seed = options.random_seed, .stream = kStartupStream}};
  INTERP_RETURN_IF_ERROR(startup_core->Run({}, run).status());
  return RoundToDeclared(startup);
}

// Start-up programs of mixed precision make float32 of what is declared as float16.
absl::Status Trainer::RoundToDeclared(const Program& startup) {
  for (const ParamDecl& declared : persistables_) {
    if (declared.unused || startup.Find(declared.name) < 0) continue;
    Variable* const variable = scope_->root().FindLocal(declared.name);
    if (variable == nullptr || !variable->tensor.has_memory()) continue;
    Tensor& tensor = variable->tensor;
    if (!Rounds(tensor.dtype, declared.dtype)) continue;
    INTERP_RETURN_IF_ERROR(MoveToHost(tensor));
    absl::StatusOr<Tensor> rounded = Converted(tensor, declared.dtype);
    if (!rounded.ok()) return Annotate(rounded.status(), absl::StrCat("'", declared.name, "'"));
    tensor = *std::move(rounded);
    ++variable->version;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Trainer::Step(absl::Span<const Tensor> feeds,
                                                  const RunOptions& options) {
  absl::StatusOr<std::vector<Tensor>> fetched =
      ranks_ != nullptr           ? StepOfRank(feeds, options)
      : micro_batches_ != nullptr ? StepOfMicroBatches(feeds, options)
      : replicas_ != nullptr      ? StepOfReplicas(feeds, options)
                                  : core_->Run(feeds, options);
  if (fetched.ok()) ++num_steps_;
  return fetched;
}

absl::StatusOr<std::vector<Tensor>> Trainer::StepOfRank(absl::Span<const Tensor> feeds,
                                                        const RunOptions& options) {
  absl::StatusOr<std::vector<Tensor>> share = ranks_->MyShare(feeds, feeds_of_batch_);
  if (!share.ok()) return FailOfRank(share.status());
  // All ranks find the same, and none of them waits for another.
  INTERP_RETURN_IF_ERROR(sequences_->Check(feeds, feeds_of_batch_, ranks_->size()));
  if (micro_batches_ != nullptr) {
    INTERP_RETURN_IF_ERROR(micro_batches_->CheckSamples(ranks_->num_samples(), ranks_->size()));
  }
  absl::StatusOr<std::vector<Tensor>> fetched = StepOfShare(*std::move(share), options);
  return fetched.ok() ? std::move(fetched) : FailOfRank(fetched.status());
}

absl::Status Trainer::FailOfRank(const absl::Status& error) const {
  if (options_.rings != nullptr) options_.rings->Fail(error);
  return error;
}

// Random numbers are those of a replica: rank r draws from stream r after that of the training.
absl::StatusOr<std::vector<Tensor>> Trainer::StepOfShare(std::vector<Tensor> share,
                                                         const RunOptions& options) {
  if (micro_batches_ != nullptr) {
    Tensor weight = std::move(share.back());
    share.pop_back();
    INTERP_RETURN_IF_ERROR(
        sequences_->Check(share, feeds_of_batch_, micro_batches_->schedule().micro_batches));
    INTERP_ASSIGN_OR_RETURN(share, micro_batches_->Split(share, feeds_of_batch_));
    share.push_back(std::move(weight));
  }
  RunOptions run = options;
  const RandomState random = options.random.value_or(core_->random_state());
  run.random = {random.seed, random.stream + static_cast<uint64_t>(ranks_->rank()), random.step};
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, core_->Run(share, run));
  if (micro_batches_ != nullptr) {
    INTERP_ASSIGN_OR_RETURN(fetched, micro_batches_->Join(std::move(fetched)));
  }
  INTERP_RETURN_IF_ERROR(ranks_->MergeFetches(fetched));
  if (!options.random.has_value()) {
    core_->SetRandomState({random.seed, random.stream, random.step + 1});
  }
  return fetched;
}

absl::StatusOr<std::vector<Tensor>> Trainer::StepOfMicroBatches(absl::Span<const Tensor> feeds,
                                                                const RunOptions& options) {
  INTERP_RETURN_IF_ERROR(
      sequences_->Check(feeds, feeds_of_batch_, micro_batches_->schedule().micro_batches));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> parts,
                          micro_batches_->Split(feeds, feeds_of_batch_));
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, core_->Run(parts, options));
  return micro_batches_->Join(std::move(fetched));
}

absl::StatusOr<std::vector<Tensor>> Trainer::StepOfReplicas(absl::Span<const Tensor> feeds,
                                                            const RunOptions& options) {
  INTERP_RETURN_IF_ERROR(sequences_->Check(feeds, replicas_->feeds(), replicas_->num_shares()));
  return replicas_->Step(feeds, options);
}

absl::Status Trainer::ShareState() {
  if (ranks_ == nullptr) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(ranks_->BroadcastTensors(persistables_, scope_->root()));
  RandomState random = core_->random_state();
  INTERP_RETURN_IF_ERROR(ranks_->BroadcastPosition(num_steps_, random));
  core_->SetRandomState(random);
  return absl::OkStatus();
}

std::optional<JobSchedule> Trainer::schedule() const {
  if (micro_batches_ != nullptr) return micro_batches_->schedule();
  return turns_;
}

const std::vector<FeedSpec>& Trainer::feeds() const {
  if (ranks_ != nullptr || micro_batches_ != nullptr) return feeds_of_batch_;
  return replicas_ != nullptr ? replicas_->feeds() : core_->plan().feeds;
}
InterpreterCore& Trainer::core() { return replicas_ != nullptr ? replicas_->first() : *core_; }
const std::vector<std::shared_ptr<Device>>& Trainer::devices() const {
  return replicas_ != nullptr ? replicas_->first().devices() : core_->devices();
}
size_t Trainer::peak_bytes() const {
  return replicas_ != nullptr ? replicas_->peak_bytes() : core_->memory().peak_bytes;
}

}  // namespace interp
