#include "tools/pipeline_flags.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "tools/number_flag.h"

namespace interp {

void AddPipelineFlags(CLI::App& command, PipelineFlags& flags) {
  constexpr const char* kGroup = "Micro-batches and pipelines";
  command
      .add_option("--micro-batches", flags.micro_batches,
                  "parts of a batch that are computed one after another, before one update")
      ->transform(Whole(1, kMaxMicroBatches))
      ->group(kGroup);
  command
      .add_option("--pipeline-stages", flags.stages,
                  "parts of the network, each on a device of its own; default: what op_device of "
                  "the ops says, with --pipeline-schedule, else 1")
      ->transform(Whole(1, kMaxSegments))
      ->group(kGroup);
  command
      .add_option("--pipeline-schedule", flags.schedule,
                  "order of the micro-batches in the stages: fthenb, 1f1b or interleaved; default "
                  "1f1b")
      ->group(kGroup);
  command
      .add_option("--pipeline-chunks", flags.chunks,
                  "parts of the network on each stage, of interleaved; default 2")
      ->transform(Whole(1, kMaxSegments))
      ->group(kGroup);
  command
      .add_option("--pipeline-page", flags.page,
                  "write a page that shows when the stages computed what in the last step (HTML)")
      ->group(kGroup);
}

absl::StatusOr<std::optional<MicroBatchOptions>> MakeMicroBatchOptions(const PipelineFlags& flags,
                                                                       int64_t batch_size,
                                                                       bool on_devices) {
  if (flags.micro_batches == 0) {
    std::vector<std::string> given;
    if (flags.stages > 0) given.emplace_back("--pipeline-stages");
    if (!flags.schedule.empty()) given.emplace_back("--pipeline-schedule");
    if (flags.chunks > 0) given.emplace_back("--pipeline-chunks");
    if (!flags.page.empty()) given.emplace_back("--pipeline-page");
    if (given.empty()) return std::nullopt;
    return InvalidArgument("without --micro-batches there is no effect of ",
                           absl::StrJoin(given, ", "));
  }
  if (flags.micro_batches > batch_size) {
    return InvalidArgument("--micro-batches ", flags.micro_batches, ": a batch has ", batch_size,
                           " samples (--batch-size), expected one or more for each");
  }
  if (!flags.page.empty() && !on_devices) {
    return InvalidArgument(
        "--pipeline-page has no effect without a device (--place sim): on the host all stages "
        "share its threads");
  }
  MicroBatchOptions options{.micro_batches = flags.micro_batches};
  if (!flags.schedule.empty()) {
    INTERP_ASSIGN_OR_RETURN(options.schedule,
                            Annotate(ScheduleFromName(flags.schedule), "--pipeline-schedule"));
  }
  const int32_t default_chunks = options.schedule == ScheduleKind::kInterleaved ? 2 : 1;
  options.chunks = flags.chunks > 0 ? flags.chunks : default_chunks;
  options.stages = flags.stages > 0 || !flags.has_stages() ? std::max(flags.stages, 1) : 0;
  // The program's ops say how many stages there are: what depends on them is checked with it.
  if (options.stages == 0 && options.schedule == ScheduleKind::kInterleaved) return options;
  INTERP_RETURN_IF_ERROR(Annotate(CheckSchedule({.kind = options.schedule,
                                                 .stages = std::max(options.stages, 1),
                                                 .chunks = options.chunks,
                                                 .micro_batches = options.micro_batches}),
                                  "--pipeline-schedule and --pipeline-chunks"));
  return options;
}

}  // namespace interp
