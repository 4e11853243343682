// interp train: trains a program on data.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/io/file.h"
#include "tools/commands.h"
#include "tools/flag_effects.h"
#include "tools/number_flag.h"
#include "tools/outputs.h"
#include "tools/slot_data.h"
#include "tools/train_report.h"
#include "tools/train_session.h"
#include "tools/training_steps.h"

namespace interp {
namespace {

constexpr int kMaxReplicas = 1024;

ExitCode ShowInterrupted(const TrainFlags& flags, const TrainReport& report, int64_t step) {
  const ExitCode shown = Show(flags.json ? ToJson(report) : ToText(report));
  if (shown != ExitCode::kOk) return shown;
  return Fail(ExitCode::kInterrupted,
              absl::CancelledError(absl::StrCat(
                  flags.main, ": interrupted after step ", step,
                  flags.checkpoint.empty() ? "; nothing was saved, as there is no --checkpoint"
                                           : "; --resume goes on from there")));
}

// What there is to tell of micro-batches, and the page of --pipeline-page.
absl::Status AddPipeline(const TrainFlags& flags, Trainer& trainer, const RunWatch& watch,
                         TrainReport& report) {
  const std::optional<JobSchedule> schedule = trainer.schedule();
  if (!schedule.has_value()) return absl::OkStatus();
  std::optional<PipelineTimes> times;
  if (watch.trace() != nullptr) {
    times = TimesOfJobs(*watch.trace(), trainer.core().plan(), trainer.core().program());
  }
  report.pipeline = ReportPipeline(*schedule, std::move(times));
  if (flags.pipeline.page.empty()) return absl::OkStatus();
  if (!report.pipeline->times.has_value()) return InvalidArgument("no step was run");
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(flags.pipeline.page));
  INTERP_RETURN_IF_ERROR(file.Append(ToPage(*report.pipeline, flags.main)));
  return file.Commit();
}

// What FILE or FEED=FILE names: of a folder, the arrays in it.
void AddDataFiles(const char* flag, const std::vector<std::string>& arguments,
                  std::vector<NamedFile>& files) {
  namespace fs = std::filesystem;
  for (const std::string& argument : arguments) {
    for (const std::string& path : {argument, argument.substr(argument.find('=') + 1)}) {
      files.push_back({flag, path});
      std::error_code error;
      fs::directory_iterator entries(path, error);
      for (const fs::directory_iterator end; !error && entries != end; entries.increment(error)) {
        if (entries->path().extension() == ".npy") files.push_back({flag, entries->path()});
      }
    }
  }
}

// No result takes the place of what is read, but that --save may write --params anew.
absl::Status CheckTrainFiles(const TrainFlags& flags) {
  std::vector<NamedFile> outputs = {{"--log", flags.log},
                                    {"--plot", flags.plot},
                                    {"--trace", flags.watch.trace},
                                    {"--pipeline-page", flags.pipeline.page}};
  INTERP_RETURN_IF_ERROR(CheckDistinct(outputs, {{"--params", flags.params}}));
  std::vector<NamedFile> read = {{"MAIN", ModelFileOf(flags.main)},
                                 {"--startup", ModelFileOf(flags.startup)},
                                 {"--eval", ModelFileOf(flags.eval.model)}};
  AddDataFiles("--data", flags.data, read);
  AddDataFiles("--eval-data", flags.eval_data, read);
  outputs.insert(outputs.begin() + 2, {"--save", flags.save});
  return CheckDistinct(outputs, read);
}

// InvalidArgument for a flag that has no effect with the others and devices of this kind.
absl::Status CheckTrainFlags(const TrainFlags& flags, const CLI::App& command, PlaceKind kind) {
  const bool has_records = std::ranges::any_of(flags.data, IsRecordFile) ||
                           std::ranges::any_of(flags.eval_data, IsRecordFile);
  INTERP_RETURN_IF_ERROR(CheckEffect(
      command, {"--image-feed", "--label-feed", "--image", "--decode-threads", "--skip-damaged"},
      has_records, "without --data FILE.rec"));
  const bool has_slots = std::ranges::any_of(flags.data, IsSlotFile) ||
                         std::ranges::any_of(flags.eval_data, IsSlotFile);
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--slots"}, has_slots, "without --data FILE.slot"));
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command, {"--eval-every"}, !flags.eval.model.empty(), "without --eval"));
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command, {"--keep"}, !flags.checkpoint.empty(), "without --checkpoint"));
  INTERP_RETURN_IF_ERROR(
      CheckEffect(command, {"--bucket-size"}, flags.data_parallel, "without --data-parallel"));
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--part-index"}, command.count("--num-parts") > 0,
                                     "without --num-parts"));
  INTERP_RETURN_IF_ERROR(CheckTrainFiles(flags));
  return CheckRunFlags(command, flags.run, kind);
}

absl::StatusOr<ExitCode> Train(TrainFlags& flags, const CLI::App& command, Ranks& ranks,
                               ExitCode& blame) {
  flags.batches.shuffle = !flags.no_shuffle;
  flags.batches.seed = flags.limits.seed;
  flags.plan.keeps_state = true;
  INTERP_ASSIGN_OR_RETURN(CoreOptions options, MakeCoreOptions(flags.plan, flags.run));
  INTERP_RETURN_IF_ERROR(CheckTrainFlags(flags, command, options.plan.place.kind));
  LimitToMachine(flags.run, options.plan.place.kind, flags.replicas, options);
  options.random_seed = flags.limits.seed;
  options.rings = flags.rings;
  INTERP_ASSIGN_OR_RETURN(const auto stall_time, StallTime(flags.watch));
  INTERP_ASSIGN_OR_RETURN(TrainSession session, PrepareTraining(flags, options, blame));
  for (const std::string& warning : session.warnings) {
    Warn(warning);
  }
  ranks.WarnOfHosts(options.plan.place.kind);
  const bool pipeline =
      session.trainer->micro_batches() != nullptr && !options.plan.place.on_host();
  RunWatch watch(flags.watch, stall_time, session.trainer->core(), flags.rings.get(),
                 /*record=*/pipeline);
  TrainingSteps steps(flags, session, watch);
  blame = ExitCode::kRunFailed;
  absl::StatusOr<TrainReport> report = steps.Run();
  if (steps.are_done()) ranks.RunIsDone();
  const absl::Status traced = watch.WriteTrace();
  INTERP_RETURN_IF_ERROR(Annotate(report.status(), flags.main));
  INTERP_RETURN_IF_ERROR(Annotate(traced, "--trace"));
  report->profile = watch.FinishProfile();
  INTERP_RETURN_IF_ERROR(
      Annotate(AddPipeline(flags, *session.trainer, watch, *report), "--pipeline-page"));
  if (steps.interrupted()) return ShowInterrupted(flags, *report, session.trainer->num_steps());
  return Show(flags.json ? ToJson(*report) : ToText(*report));
}

// One of several processes, or all there is.
ExitCode TrainRank(TrainFlags& flags, const CLI::App& command) {
  return AsRank(flags.ranks, &flags.plan.place, [&](Ranks& ranks, ExitCode& blame) {
    ranks.ForReading({&flags.main, &flags.startup, &flags.params, &flags.eval.model});
    ranks.ForReading(flags.data);
    ranks.ForReading(flags.eval_data);
    ranks.ForWriting(
        {&flags.log, &flags.plot, &flags.save, &flags.watch.trace, &flags.pipeline.page});
    flags.rings = ranks.rings();
    // No two ranks that train each for itself want the same part.
    const bool own_part = !flags.data_parallel && command.count("--part-index") == 0;
    if (own_part && flags.batches.num_parts > 1) flags.batches.part_index = ranks.rank();
    return Train(flags, command, ranks, blame);
  });
}

// How far training goes through the samples, and in which order.
void AddOrderFlags(CLI::App& command, TrainFlags& flags) {
  command.add_option("--epochs", flags.epochs, "times through the data; default 1")
      ->transform(Whole(1));
  command.add_option("--steps", flags.steps, "steps in all, those before --resume included")
      ->transform(Whole(1));
  command.add_flag("--no-shuffle", flags.no_shuffle, "take the samples in their order");
  command
      .add_option("--shuffle-block", flags.batches.shuffle_block,
                  "shuffle blocks of so many samples, which stay in order in them")
      ->transform(Whole(1));
  command
      .add_option("--shuffle-buffer", flags.batches.shuffle_buffer,
                  "draw each sample from so many that come next")
      ->transform(Whole(1));
  command.add_option("--num-parts", flags.batches.num_parts, "parts that the data is cut into")
      ->transform(Whole(1))
      ->capture_default_str();
  command
      .add_option(
          "--part-index", flags.batches.part_index,
          "the part that is trained on, from 0; default: the rank, and 0 with --data-parallel")
      ->transform(Whole(0));
  command.add_flag("--drop-last", flags.batches.drop_last,
                   "leave out the last batch of an epoch when it is not full");
}

void AddDataFlags(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--data", flags.data,
                  "samples: .npz, .csv, folders of .npy, idx files, .rec, .slot; FILE or "
                  "FEED=FILE; repeatable")
      ->allow_extra_args(false)
      ->required();
  command.add_option("--batch-size", flags.batches.batch_size, "samples in a step")
      ->required()
      ->transform(Whole(1, int64_t{1} << 40));
  command
      .add_option("--replicas", flags.replicas,
                  "shares of a batch that are computed side by side, each with --threads")
      ->transform(Whole(1, kMaxReplicas))
      ->capture_default_str();
  command.add_flag("--data-parallel", flags.data_parallel,
                   "share out each batch over the ranks that mpirun has started, and add up their "
                   "gradients");
  command
      .add_option("--bucket-size", flags.bucket_size,
                  "gradients of --data-parallel that go out together, as in 4M")
      ->capture_default_str();
  AddOrderFlags(command, flags);
  command.add_option(
      "--max-file-memory", flags.limits.max_file_memory,
      "most that the arrays of one file or folder may take, as in 512M; default 16G");
  AddRecordFlags(command, flags.records);
  command
      .add_option("--slots", flags.slots,
                  "slots of a line in .slot files, as in label,words,price; default: the feeds in "
                  "their order")
      ->delimiter(',');
  command.add_option("--seed", flags.limits.seed, "seed of the order of samples and of random ops")
      ->transform(Whole(0, kMaxSeed))
      ->capture_default_str();
}

void AddResultFlags(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--fetch", flags.fetches,
                  "variables to show, as in loss,acc; default: what the program fetches, or its "
                  "loss")
      ->delimiter(',');
  command.add_option("--eval", flags.eval.model, "program to evaluate the parameters with");
  command.add_option("--eval-data", flags.eval_data, "its samples, as of --data; repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--eval-every", flags.eval_every, "steps between evaluations; default: an epoch")
      ->transform(Whole(1));
  command.add_option("--log", flags.log, "write a line of CSV a step: step and fetches");
  command.add_option("--plot", flags.plot, "draw the fetches over the steps, as SVG");
  command.add_option("--save", flags.save,
                     "write all persistable tensors at the end to file.pdiparams or file.npz");
  command.add_option("--checkpoint", flags.checkpoint, "folder of checkpoints");
  command
      .add_option("--checkpoint-every", flags.checkpoint_every,
                  "steps between checkpoints; default: an epoch")
      ->transform(Whole(1));
  command.add_option("--keep", flags.keep, "checkpoints that are kept")
      ->transform(Whole(1))
      ->capture_default_str();
  command.add_flag("--resume", flags.resume, "go on from the newest checkpoint, if there is one");
  command.add_flag("--json", flags.json, "print one JSON object");
}

}  // namespace

void AddTrainCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App& command = *app.add_subcommand("train", "train a program on data");
  command.add_option("MAIN", flags->main, "training program: forward, backward and update")
      ->required();
  command.add_option("--startup", flags->startup, "program that makes the first parameters");
  command.add_option(
      "--params", flags->params,
      "persistable tensors that --startup does not make, or all: as of `interp run`");
  AddDataFlags(command, *flags);
  AddResultFlags(command, *flags);
  AddPipelineFlags(command, flags->pipeline);
  AddPlanFlags(command, flags->plan);
  // Training prunes nothing.
  command.remove_option(command.get_option("--no-prune"));
  AddRunFlags(command, flags->run);
  AddWatchFlags(command, flags->watch);
  AddRankFlags(command, flags->ranks);
  command.callback([flags, &command, &exit_code] { exit_code = TrainRank(*flags, command); });
}

}  // namespace interp
