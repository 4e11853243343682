// Long because mistakes are looked for in one order, flags and program before the data.
#include "tools/train_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "core/any_op.h"
#include "core/base/annotate.h"
#include "core/each_argument.h"
#include "interpreter/train/data_parallel.h"
#include "passes/feed_fetch.h"
#include "passes/readers.h"
#include "tools/sizes.h"
#include "tools/slot_data.h"
#include "tools/training_data.h"
#include "tools/training_fetches.h"

namespace interp {
namespace {

// What a program takes of --data or --eval-data.
struct DataUse {
  std::vector<FeedSpec> feeds;
  std::vector<std::string> sparse;  // see SparseVars
  bool random = true;               // as training does; an evaluation leaves nothing to chance
};

// Of FEED=FILE, which these files do not take.
absl::Status CheckNamesNoFeed(const std::string& file, const std::vector<FeedSpec>& feeds) {
  const size_t end = file.find('=');
  if (end == std::string::npos || (!IsRecordFile(file) && !IsSlotFile(file)))
    return absl::OkStatus();
  const std::string name = file.substr(0, end);
  if (std::ranges::find(feeds, name, &FeedSpec::name) == feeds.end()) return absl::OkStatus();
  return InvalidArgument(file, ": .rec and .slot files give all feeds: expected the file without '",
                         name, "='");
}

absl::StatusOr<std::shared_ptr<SampleSource>> ReadData(const std::vector<std::string>& files,
                                                       const DataUse& use, const TrainFlags& flags,
                                                       std::vector<std::string>& warnings) {
  INTERP_ASSIGN_OR_RETURN(const size_t max_bytes, MaxFileBytes(flags.limits));
  for (const std::string& file : files) {
    INTERP_RETURN_IF_ERROR(CheckNamesNoFeed(file, use.feeds));
  }
  if (std::ranges::all_of(files, IsRecordFile)) {
    const RecordUse records{
        .random = use.random, .seed = flags.limits.seed, .max_bytes = max_bytes};
    return OpenRecords(files, use.feeds, flags.records, records, warnings);
  }
  if (std::ranges::all_of(files, IsSlotFile)) {
    return OpenSlots(files, use.feeds, use.sparse, flags.slots, max_bytes);
  }
  for (const std::string& file : files) {
    if (!IsRecordFile(file) && !IsSlotFile(file)) continue;
    return InvalidArgument(file, ": .rec and .slot files cannot be mixed with other data");
  }
  INTERP_ASSIGN_OR_RETURN(Dataset data, ReadTrainingData(files, use.feeds, max_bytes));
  return SourceOf(std::make_shared<const Dataset>(std::move(data)));
}

// An evaluation leaves alone what is trained; state of its own, as metrics have, it may keep.
absl::Status CheckOnlyReads(const Plan& plan, const std::vector<ParamDecl>& trained) {
  for (const Instruction& instruction : plan.instructions) {
    for (const VarId id : instruction.outputs) {
      if (id < 0 || !plan.vars[id].persistable) continue;
      const std::string& name = plan.vars[id].name;
      if (!std::ranges::binary_search(trained, name, {}, &ParamDecl::name)) continue;
      return InvalidArgument("op '", instruction.def->type, "' writes '", name,
                             "', which is being trained: expected a program in test mode");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Evaluation> MakeEvaluation(const TrainFlags& flags, const CoreOptions& options,
                                          const Trainer& trainer) {
  INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(flags.eval));
  INTERP_RETURN_IF_ERROR(Annotate(CheckReaders(model.program), flags.eval.model));
  INTERP_ASSIGN_OR_RETURN(std::vector<VarId> feeds, DataVars(model.program));
  std::vector<std::string> names;
  for (const VarId id : feeds) names.push_back(model.program.NameOf(id));
  std::vector<std::string> known;
  for (const std::string& name : flags.fetches) {
    if (model.program.Find(name) >= 0) known.push_back(name);
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<std::string> fetches,
                          TrainingFetches(model.program, known));
  if (fetches.empty()) {
    return InvalidArgument(flags.eval.model, ": fetches nothing itself, and has none of --fetch");
  }
  Evaluation evaluation;
  evaluation.sparse_vars = SparseVars(model.program);
  CoreOptions on_same_devices = options;
  on_same_devices.devices = trainer.devices();
  INTERP_ASSIGN_OR_RETURN(evaluation.core,
                          Annotate(InterpreterCore::Create(std::move(model.program), names, fetches,
                                                           trainer.scope(), on_same_devices),
                                   flags.eval.model));
  INTERP_RETURN_IF_ERROR(
      Annotate(CheckOnlyReads(evaluation.core->plan(), trainer.persistables()), flags.eval.model));
  return evaluation;
}

bool WritesPersistables(const Program& program) {
  absl::flat_hash_set<VarId> persistable;
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (var.persistable) persistable.insert(var.id);
    }
  }
  return AnyOp(program, [&](const Op& op) {
    return absl::c_any_of(EachArgument(op.outputs),
                          [&](VarId id) { return persistable.contains(id); });
  });
}

absl::Status CheckFlags(const TrainFlags& flags) {
  if (flags.startup.empty() && flags.params.empty() && !flags.resume) {
    return InvalidArgument(
        "nothing gives the parameters their first values: expected --startup or --params");
  }
  if (flags.epochs > 0 && flags.steps > 0) {
    return InvalidArgument("--epochs and --steps: expected one of the two");
  }
  if (flags.eval.model.empty() != flags.eval_data.empty()) {
    return InvalidArgument("--eval and --eval-data: expected both or none");
  }
  if (flags.checkpoint.empty() && (flags.checkpoint_every > 0 || flags.resume)) {
    return InvalidArgument("--checkpoint-every and --resume: expected --checkpoint DIR");
  }
  const BatchOptions& batches = flags.batches;
  if (!batches.shuffle && (batches.shuffle_block > 0 || batches.shuffle_buffer > 0)) {
    return InvalidArgument("--shuffle-block and --shuffle-buffer have no effect with --no-shuffle");
  }
  if (batches.part_index >= batches.num_parts) {
    return InvalidArgument("--part-index ", batches.part_index, " of --num-parts ",
                           batches.num_parts, ": expected one from 0 to ", batches.num_parts - 1);
  }
  if (!flags.checkpoint.empty() && !flags.data_parallel && flags.rings != nullptr) {
    return Unimplemented("--checkpoint of several ranks: expected --data-parallel");
  }
  if (flags.data_parallel && flags.records.skip_damaged) {
    return InvalidArgument(
        "--data-parallel and --skip-damaged: ranks could leave out different "
        "samples; expected whole records");
  }
  if (flags.data_parallel && flags.replicas > 1) {
    return InvalidArgument("--data-parallel and --replicas: expected one of the two");
  }
  if (flags.pipeline.has_stages() && flags.replicas > 1) {
    return InvalidArgument("--replicas and a pipeline: expected one of the two");
  }
  return absl::OkStatus();
}

// What the file of --params is to hold: the persistable variables that the startup program leaves
// open; all, where it leaves none or there is none.
std::vector<ParamDecl> ParametersInFile(const std::vector<ParamDecl>& declared,
                                        const Program& startup) {
  absl::flat_hash_set<absl::string_view> made;
  for (const Op& op : startup.blocks[0].ops) {
    for (const VarId id : EachArgument(op.outputs)) made.insert(startup.NameOf(id));
  }
  std::vector<ParamDecl> open;
  for (const ParamDecl& param : declared) {
    if (!made.contains(param.name)) open.push_back(param);
  }
  return open.empty() ? declared : open;
}

absl::Status NoFirstValues(const TrainFlags& flags) {
  return NotFound("there is no checkpoint in '", flags.checkpoint,
                  "' that would give the parameters their first values: expected --startup or "
                  "--params");
}

// First the startup program, then --params over what it makes.
absl::Status SetParameters(const TrainFlags& flags, const std::vector<ParamDecl>& declared,
                           TrainSession& session) {
  std::vector<ParamDecl> in_file = declared;
  if (!flags.startup.empty()) {
    INTERP_ASSIGN_OR_RETURN(const Model startup,
                            LoadModel({.model = flags.startup, .params = "", .compiled_from = ""}));
    INTERP_RETURN_IF_ERROR(
        Annotate(session.trainer->Initialize(startup.program, session.timeout), flags.startup));
    in_file = ParametersInFile(declared, startup.program);
  }
  if (!flags.params.empty()) {
    INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> values, ReadParameters(flags.params, in_file));
    for (auto& [name, tensor] : values) {
      session.trainer->scope()->FindOrCreate(name)->tensor = std::move(tensor);
    }
  }
  return absl::OkStatus();
}

// The parameters that a step starts from and updates.
std::vector<std::string> ParametersOfSteps(const Program& program,
                                           const std::vector<ParamDecl>& declared) {
  absl::flat_hash_set<absl::string_view> trained;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      const Slot* const updated = op.FindInput("Param");
      if (updated == nullptr) continue;
      for (const VarId id : updated->args) trained.insert(program.NameOf(id));
    }
  }
  std::vector<std::string> names;
  for (const ParamDecl& param : declared) {
    const bool needed = !param.made_first && !param.unused && trained.contains(param.name);
    if (needed) names.push_back(param.name);
  }
  return names;
}

absl::Status CheckValues(const std::vector<std::string>& parameters, const TrainSession& session) {
  for (const std::string& name : parameters) {
    const Variable* const variable = session.trainer->scope()->root().FindLocal(name);
    const bool made = variable != nullptr && variable->tensor.dtype != DType::kUndefined;
    if (made && (variable->tensor.has_memory() || variable->tensor.numel() == 0)) continue;
    return NotFound("parameter '", name, "' has no value: expected one from --startup or --params");
  }
  return absl::OkStatus();
}

// The folder of checkpoints, for this training alone.
absl::Status OpenCheckpoints(const TrainFlags& flags, TrainSession& session, ExitCode& blame) {
  if (!KeepsCheckpoints(flags)) return absl::OkStatus();
  std::error_code error;
  const bool needed = flags.startup.empty() && flags.params.empty();
  if (needed && !std::filesystem::exists(flags.checkpoint, error)) return NoFirstValues(flags);
  blame = ExitCode::kRunFailed;
  INTERP_ASSIGN_OR_RETURN(Checkpoints checkpoints,
                          Annotate(Checkpoints::Open(flags.checkpoint), "--checkpoint"));
  session.checkpoints.emplace(std::move(checkpoints));
  if (flags.resume) return absl::OkStatus();
  blame = ExitCode::kUsage;
  return Annotate(session.checkpoints->CheckNone(), "without --resume");
}

absl::Status Resume(const TrainFlags& flags, TrainSession& session, ExitCode& blame) {
  if (!flags.resume || !KeepsCheckpoints(flags)) return absl::OkStatus();
  const absl::StatusOr<std::optional<Resumed>> resumed =
      session.checkpoints->Restore(*session.trainer, session.order);
  if (absl::IsInvalidArgument(resumed.status())) blame = ExitCode::kUsage;
  if (!resumed.ok()) return resumed.status();
  if (!resumed->has_value()) {
    return flags.startup.empty() && flags.params.empty() ? NoFirstValues(flags) : absl::OkStatus();
  }
  session.position = (*resumed)->next;
  for (const std::string& problem : (*resumed)->passed_over) {
    session.warnings.push_back(absl::StrCat(problem, "; going on from '", (*resumed)->folder, "'"));
  }
  return absl::OkStatus();
}

// Nothing where `last` is no end.
std::string UpTo(const char* what, int64_t last) {
  if (last == std::numeric_limits<int64_t>::max()) return "";
  return absl::StrCat(", to ", what, " ", last);
}

// What ranks have to agree on to hold the same state and to take shares of the same batches.
std::string AgreementOf(const TrainSession& session) {
  const BatchOptions& batches = session.order.batches;
  return absl::StrCat(
      session.order.num_samples, " samples",
      batches.num_parts > 1 ? absl::StrCat(", part ", batches.part_index, " of ", batches.num_parts)
                            : "",
      ", batches of ", batches.batch_size, batches.drop_last ? " without the last" : "",
      batches.shuffle ? absl::StrCat(", shuffled with seed ", batches.seed) : "", ", blocks of ",
      batches.shuffle_block, ", a buffer of ", batches.shuffle_buffer,
      UpTo("step", session.last_step), UpTo("epoch", session.last_epoch), ", ",
      session.trainer->persistables().size(), " parameters and states, ",
      session.trainer->core().plan().instructions.size(), " instructions");
}

absl::Status CheckAgreement(const TrainFlags& flags, const TrainSession& session) {
  if (!flags.data_parallel || flags.rings == nullptr) return absl::OkStatus();
  const std::string own = AgreementOf(session);
  std::array<char, 512> rank0 = {};
  std::memcpy(rank0.data(), own.data(), std::min(own.size(), rank0.size() - 1));
  INTERP_RETURN_IF_ERROR(BroadcastBytes(flags.rings->World(), rank0.data(), rank0.size()));
  if (own == rank0.data()) return absl::OkStatus();
  return InvalidArgument("--data-parallel: this rank has ", own, ", rank 0 has ", rank0.data(),
                         "; expected the same data, program and flags on all ranks");
}

// Where rank 0 stands, it may have resumed, all ranks go on.
absl::Status FollowRank0(const TrainFlags& flags, TrainSession& session) {
  INTERP_RETURN_IF_ERROR(session.trainer->ShareState());
  if (!flags.data_parallel || flags.rings == nullptr) return absl::OkStatus();
  return BroadcastBytes(flags.rings->World(), &session.position, sizeof(session.position));
}

absl::Status ReadSamples(const TrainFlags& flags, TrainSession& session) {
  const DataUse use{
      .feeds = session.trainer->feeds(), .sparse = session.sparse_vars, .random = true};
  INTERP_ASSIGN_OR_RETURN(session.data, ReadData(flags.data, use, flags, session.warnings));
  const int64_t num_samples = session.data->num_samples();
  session.order = {.num_samples = num_samples, .batches = flags.batches};
  const int64_t in_part = SamplesInPart(num_samples, flags.batches);
  if (in_part == 0) {
    return InvalidArgument("part ", flags.batches.part_index, " of ", flags.batches.num_parts,
                           " has none of the ", num_samples, " samples");
  }
  const int64_t batches = BatchesPerEpoch(num_samples, flags.batches);
  if (batches == 0) {
    return InvalidArgument("--drop-last leaves no batch of ", flags.batches.batch_size, " in ",
                           in_part, " samples");
  }
  if (flags.epochs > std::numeric_limits<int64_t>::max() / batches) {
    return InvalidArgument("--epochs ", flags.epochs, " of ", batches, " batches are too many");
  }
  session.last_epoch =
      flags.steps > 0 ? std::numeric_limits<int64_t>::max() : std::max<int64_t>(flags.epochs, 1);
  session.last_step = flags.steps > 0 ? flags.steps : session.last_epoch * batches;
  return absl::OkStatus();
}

absl::StatusOr<Model> LoadTrainingProgram(const std::string& path,
                                          std::vector<std::string>& warnings) {
  INTERP_ASSIGN_OR_RETURN(Model model,
                          LoadModel({.model = path, .params = "", .compiled_from = ""}));
  if (model.compiled.has_value()) {
    return InvalidArgument(model.path, ": is a plan, expected a program");
  }
  if (!WritesPersistables(model.program)) {
    warnings.push_back(absl::StrCat(
        model.path,
        ": no op writes a persistable variable, so nothing is learnt; `interp backward` "
        "makes a training program of a forward program"));
  }
  return model;
}

absl::StatusOr<TrainerOptions> MakeTrainerOptions(const TrainFlags& flags, const CoreOptions& core,
                                                  const Program& program) {
  const bool on_host = core.plan.place.on_host();
  TrainerOptions options{.replicas = flags.replicas, .core = core};
  INTERP_ASSIGN_OR_RETURN(options.fetches, TrainingFetches(program, flags.fetches));
  INTERP_ASSIGN_OR_RETURN(
      options.micro_batches,
      MakeMicroBatchOptions(flags.pipeline, flags.batches.batch_size, !on_host));
  const int64_t shares = int64_t{flags.pipeline.micro_batches} * flags.replicas;
  if (shares > flags.batches.batch_size) {
    return InvalidArgument("--micro-batches ", flags.pipeline.micro_batches, " of --replicas ",
                           flags.replicas, ": a batch has ", flags.batches.batch_size,
                           " samples (--batch-size), expected one or more for each");
  }
  if (flags.replicas > 1 && !on_host) {
    return InvalidArgument("--replicas and --place: replicas run on the host");
  }
  if (flags.data_parallel) {
    INTERP_ASSIGN_OR_RETURN(const uint64_t bytes,
                            Annotate(ParseBytes(flags.bucket_size), "--bucket-size"));
    options.data_parallel = {.bucket_bytes = static_cast<int64_t>(bytes)};
  }
  if (flags.plan.precision == "fp16") options.loss_scaling = LossScalingOptions{};
  return options;
}

// The program before its data: what is wrong with a program is found sooner.
absl::Status PrepareEvaluation(const TrainFlags& flags, const CoreOptions& options,
                               TrainSession& session, ExitCode& blame) {
  if (flags.eval.model.empty()) return absl::OkStatus();
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(session.evaluation, MakeEvaluation(flags, options, *session.trainer));
  blame = ExitCode::kUsage;
  const DataUse use{.feeds = session.evaluation->core->plan().feeds,
                    .sparse = session.evaluation->sparse_vars,
                    .random = false};
  INTERP_ASSIGN_OR_RETURN(session.evaluation->data,
                          ReadData(flags.eval_data, use, flags, session.warnings));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> Evaluation::Run(int64_t batch_size,
                                                         const EvaluationLimits& limits,
                                                         int64_t& num_skipped) const {
  INTERP_ASSIGN_OR_RETURN(EvaluationResult result, Evaluate(*core, data, batch_size, limits));
  num_skipped = result.num_skipped;
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < result.means.size(); ++i) {
    named.emplace_back(core->plan().fetches[i], std::move(result.means[i]));
  }
  return named;
}

absl::StatusOr<TrainSession> PrepareTraining(const TrainFlags& flags, const CoreOptions& options,
                                             ExitCode& blame) {
  TrainSession session;
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(CheckFlags(flags));
  INTERP_ASSIGN_OR_RETURN(session.timeout, ParseTimeout(flags.run.timeout));
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(Model model, LoadTrainingProgram(flags.main, session.warnings));
  blame = ExitCode::kUsage;
  INTERP_ASSIGN_OR_RETURN(session.saved,
                          Annotate(ChooseParametersToSave(flags.save, model.program), "--save"));
  INTERP_ASSIGN_OR_RETURN(TrainerOptions trainer_options,
                          MakeTrainerOptions(flags, options, model.program));
  blame = ExitCode::kModelUnusable;
  const std::vector<ParamDecl> declared = ParamsOf(model.program);
  const std::vector<std::string> parameters = ParametersOfSteps(model.program, declared);
  session.sparse_vars = SparseVars(model.program);
  INTERP_ASSIGN_OR_RETURN(
      session.trainer,
      Annotate(Trainer::Create(std::move(model.program), model.scope, std::move(trainer_options)),
               model.path));
  INTERP_RETURN_IF_ERROR(OpenCheckpoints(flags, session, blame));
  blame = ExitCode::kUsage;
  INTERP_RETURN_IF_ERROR(ReadSamples(flags, session));
  INTERP_RETURN_IF_ERROR(CheckAgreement(flags, session));
  blame = ExitCode::kModelUnusable;
  const absl::Status set = SetParameters(flags, declared, session);
  if (absl::IsDeadlineExceeded(set)) blame = ExitCode::kRunFailed;
  INTERP_RETURN_IF_ERROR(set);
  INTERP_RETURN_IF_ERROR(Resume(flags, session, blame));
  INTERP_RETURN_IF_ERROR(FollowRank0(flags, session));
  blame = ExitCode::kModelUnusable;
  INTERP_RETURN_IF_ERROR(CheckValues(parameters, session));
  INTERP_RETURN_IF_ERROR(PrepareEvaluation(flags, options, session, blame));
  return session;
}

}  // namespace interp
