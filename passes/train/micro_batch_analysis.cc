#include "passes/train/micro_batch_analysis.h"

#include <algorithm>
#include <utility>

#include "core/each_argument.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "core/sub_blocks.h"
#include "passes/feed_fetch.h"
#include "passes/op_effects.h"
#include "passes/train/micro_batch_flow.h"
#include "passes/train/split_stages.h"
#include "passes/train/split_update.h"

namespace interp {
namespace {

constexpr int64_t kMaxOps = 4'000'000;  // of the program of jobs
constexpr absl::string_view kRuns = "micro-batches";

bool InJob(const Op& op) { return !IsFeed(op) && !IsFetch(op) && !IsUpdate(op); }

class Analyzer {
 public:
  Analyzer(const Program& main, const MicroBatchOptions& options, const OpRegistry& registry)
      : main_(main),
        ops_(main.blocks[0].ops),
        options_(options),
        registry_(registry),
        positions_(VarPositions(main, main.blocks[0])),
        persistable_(main.names.size(), false) {
    for (const Block& block : main.blocks) {
      for (const Var& var : block.vars) {
        persistable_[var.id] = persistable_[var.id] || var.persistable;
      }
    }
    found_.per_micro_batch.assign(main.names.size(), false);
  }

  absl::StatusOr<MicroBatchAnalysis> Run(const std::vector<std::string>& feeds) {
    INTERP_ASSIGN_OR_RETURN(const SplitProgram split, SplitUpdate(main_));
    found_.fetched_once = split.fetched_from_update;
    INTERP_RETURN_IF_ERROR(CheckOps());
    INTERP_RETURN_IF_ERROR(ChooseStages());
    FindStates(split);
    INTERP_RETURN_IF_ERROR(CheckStates());
    FindVariables(feeds);
    FindWriters();
    flow_ = FlowOfMicroBatch(main_, found_.job_of, samples_, found_.states);
    ChooseWeights(split);
    INTERP_RETURN_IF_ERROR(FindSums(split));
    INTERP_RETURN_IF_ERROR(CheckUpdate());
    FindKept();
    return std::move(found_);
  }

  absl::Status CheckTurns(const std::vector<std::string>& feeds) {
    INTERP_ASSIGN_OR_RETURN(const SplitProgram split, SplitUpdate(main_));
    INTERP_RETURN_IF_ERROR(CheckSharesUpdate(split, kRuns));
    for (const Op& op : ops_) {
      found_.job_of.push_back(!InJob(op) ? -1 : IsBackward(op) ? 1 : 0);
    }
    FindStates(split);
    FindVariables(feeds);
    FindWriters();
    flow_ = FlowOfMicroBatch(main_, found_.job_of, samples_, found_.states);
    for (const PassedValue& value : split.passed) {
      const VarId id = main_.Find(value.variable);
      if (!IsOfBackward(id) && flow_.of_states[id]) return ReadsState(id, "made of ");
    }
    const std::vector<bool> read = ReadByUpdate();
    for (const VarId id : found_.states) {
      if (read[id] && !IsMadeAnew(id)) return ReadsState(id, "");
    }
    return absl::OkStatus();
  }

 private:
  const Var* VarOf(VarId id) const {
    return positions_[id] < 0 ? nullptr : &main_.blocks[0].vars[positions_[id]];
  }
  // All micro-batches have the one variable. Gradients may be declared persistable; they are not.
  bool IsShared(VarId id) const { return persistable_[id] && !passed_[id]; }
  int32_t JobOf(size_t op) const { return found_.job_of[op]; }

  absl::Status CheckOps() const {
    int64_t count = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!InJob(ops_[i])) continue;
      ++count;
      if (!HasSubBlock(ops_[i])) continue;
      return Unimplemented(
          DescribeOp(main_, 0, i),
          ": runs a block, which micro-batches of a pipeline, on devices and of ranks have none of "
          "their own for");
    }
    if (count <= kMaxOps / std::max(options_.micro_batches, 1)) return absl::OkStatus();
    return InvalidArgument(options_.micro_batches, " micro-batches of ", count,
                           " ops of the forward and backward part are more than ", kMaxOps,
                           " ops in one program: take fewer micro-batches (at most ",
                           kMaxOps / count, ") and smaller batches");
  }

  absl::Status ChooseStages() {
    JobSchedule& schedule = found_.schedule;
    schedule = {.kind = options_.schedule,
                .stages = options_.stages,
                .chunks = options_.chunks,
                .micro_batches = options_.micro_batches};
    const bool by_device = options_.stages == 0;
    if (by_device) {
      const int32_t segments = CountDeviceSegments(main_);
      if (options_.chunks > 1 && segments % options_.chunks != 0) {
        return InvalidArgument("attributes op_device name ", segments,
                               " devices, one for each segment of the network, which is no "
                               "multiple of ",
                               options_.chunks, " chunks");
      }
      schedule.stages = std::max(segments / std::max(options_.chunks, 1), 1);
    }
    INTERP_RETURN_IF_ERROR(CheckSchedule(schedule));
    const int32_t last = options_.place.index + schedule.stages - 1;
    if (!options_.place.on_host() && last >= kMaxDevices) {
      return InvalidArgument(schedule.stages, " stages from ", Name(options_.place),
                             " on need a device number ", last, ", and the last is number ",
                             kMaxDevices - 1);
    }
    INTERP_ASSIGN_OR_RETURN(StageSplit split,
                            SplitStages(main_, by_device ? 0 : schedule.segments(), registry_));
    found_.segment_of = std::move(split.segment_of);
    found_.job_of = std::move(split.job_of);
    return absl::OkStatus();
  }

  void FindStates(const SplitProgram& split) {
    passed_.assign(main_.names.size(), false);
    for (const PassedValue& value : split.passed) passed_[main_.Find(value.variable)] = true;
    for (const std::string& name : split.states_written) {
      found_.states.push_back(main_.Find(name));
    }
  }

  // What one job leaves in a persistable variable for another would be another micro-batch's under
  // some schedules. Where each micro-batch ends before the next begins, it is its own.
  absl::Status CheckStates() const {
    const JobSchedule& schedule = found_.schedule;
    if (schedule.segments() == 1 && schedule.kind != ScheduleKind::kFThenB) {
      return absl::OkStatus();
    }
    constexpr int64_t kNone = -1;
    std::vector<int64_t> writer(main_.names.size(), kNone);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!InJob(ops_[i])) continue;
      for (const VarId id : EachNamedArgument(main_, ops_[i].outputs)) {
        if (IsShared(id) && !LeavesUntouched(ops_[i], id)) writer[id] = static_cast<int64_t>(i);
      }
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!InJob(ops_[i])) continue;
      VarId shared = -1;
      for (const std::vector<Slot>* const slots : {&ops_[i].inputs, &ops_[i].outputs}) {
        for (const Slot& slot : *slots) {
          for (const VarId id : slot.args) {
            if (writer[id] == kNone || JobOf(writer[id]) == JobOf(i)) continue;
            if (!IsUnusedAverage(i, slot, writer[id])) shared = id;
          }
        }
      }
      if (shared < 0) continue;
      return Unimplemented(DescribeOp(main_, 0, i), ": uses '", main_.NameOf(shared),
                           "', which is persistable and written by another job of the pipeline");
    }
    return absl::OkStatus();
  }

  // The gradient of batch_norm lists the averages, and takes what the forward op has saved.
  bool IsUnusedAverage(size_t op, const Slot& slot, int64_t writer) const {
    return MovesAverages(ops_[writer]) && IsAverage(slot) &&
           ops_[op].type == absl::StrCat(ops_[writer].type, "_grad");
  }

  void FindVariables(const std::vector<std::string>& feeds) {
    for (const Op& op : ops_) {
      if (!InJob(op)) continue;
      for (const VarId id : EachNamedArgument(main_, op.outputs)) {
        found_.per_micro_batch[id] = !IsShared(id);
      }
    }
    for (const std::string& feed : feeds) {
      const VarId id = main_.Find(feed);
      if (id < 0) continue;  // told when feeds get their ops
      const Var* const var = VarOf(id);
      const bool whole =
          var != nullptr && (var->persistable || (!var->dims.empty() && var->dims[0] >= 0));
      found_.per_micro_batch[id] = !whole;
      if (!whole) samples_.push_back(id);
    }
    for (VarId id = 0; id < std::ssize(main_.names); ++id) {
      if (!found_.per_micro_batch[id]) found_.fetched_once.insert(main_.names[id]);
    }
  }

  void FindWriters() {
    writer_.assign(main_.names.size(), -1);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!InJob(ops_[i])) continue;
      for (const VarId id : UsesOf(main_, ops_[i]).writes) writer_[id] = static_cast<int64_t>(i);
    }
  }

  // Whether the backward part has written the variable last.
  bool IsOfBackward(VarId id) const { return writer_[id] >= 0 && IsBackward(ops_[writer_[id]]); }

  // Gradients are weighted where they begin, unless some come from what is not marked as a begin:
  // then each sum's summands are.
  void ChooseWeights(const SplitProgram& split) {
    for (const PassedValue& value : split.passed) {
      const VarId id = main_.Find(value.variable);
      if (flow_.weighting[id] == Weighting::kMixed) weighs_starts_ = false;
    }
    found_.starts.assign(ops_.size(), false);
    if (weighs_starts_) found_.starts = flow_.starts;
  }

  absl::Status FindSums(const SplitProgram& split) {
    INTERP_RETURN_IF_ERROR(CheckNoRows(split, kRuns));
    for (const PassedValue& value : split.passed) {
      const VarId id = main_.Find(value.variable);
      if (value.merge == Merge::kRows) continue;  // numbers of the selected rows before
      const Var* const var = VarOf(id);
      const bool integers =
          var != nullptr && var->dtype != DType::kUndefined && !IsFloating(var->dtype);
      INTERP_RETURN_IF_ERROR(CheckPassed(id, integers));
      if (integers) continue;  // the same in all: that of the first
      const bool weighted = weighs_starts_ && flow_.weighting[id] != Weighting::kNone;
      found_.sums.push_back(
          {.id = id, .writer = static_cast<size_t>(writer_[id]), .weighted = !weighted});
      found_.fetched_once.insert(value.variable);
    }
    return absl::OkStatus();
  }

  // What the update reads must be the batch's.
  absl::Status CheckPassed(VarId id, bool integers) const {
    const auto fails = [&](const auto&... why) {
      return Unimplemented("the update reads '", main_.NameOf(id), "', ", why...);
    };
    const bool backward = IsOfBackward(id);
    if (integers && backward) {
      return fails(Name(VarOf(id)->dtype),
                   " of the backward part: expected gradients, which are floats");
    }
    if (integers && flow_.of_samples[id]) {
      return fails(Name(VarOf(id)->dtype),
                   " made of samples: each micro-batch has some of its own, and they have no mean");
    }
    if (!backward && flow_.of_states[id]) return ReadsState(id, "made of ");
    return absl::OkStatus();
  }

  // `what` the value is beside the persistable variable.
  absl::Status ReadsState(VarId id, absl::string_view what) const {
    return Unimplemented("the update reads '", main_.NameOf(id), "', ", what,
                         "a persistable variable that each micro-batch changes: it is not what "
                         "one step would make of it");
  }

  std::vector<bool> ReadByUpdate() const {
    std::vector<bool> read(main_.names.size(), false);
    for (const Op& op : ops_) {
      if (!IsUpdate(op)) continue;
      for (const VarId id : UsesOf(main_, op).reads) read[id] = true;
    }
    return read;
  }

  // Whether each micro-batch gives the variable the same value again. Nobody knows of a block.
  bool IsMadeAnew(VarId id) const {
    if (writer_[id] < 0 || HasSubBlock(ops_[writer_[id]])) return false;
    for (const VarId from : EachNamedArgument(main_, ops_[writer_[id]].inputs)) {
      if (flow_.of_states[from] || flow_.of_samples[from]) return false;
    }
    return true;
  }

  // Sums of gradients that the program itself takes, in variables that are kept, and counters.
  absl::Status CheckUpdate() const {
    const std::vector<bool> read = ReadByUpdate();
    for (const VarId id : found_.states) {
      if (!read[id]) continue;
      const Var* const var = VarOf(id);
      const bool gradient = IsOfBackward(id) && var != nullptr && IsFloating(var->dtype);
      if (!gradient && !IsMadeAnew(id)) return ReadsState(id, "");
      if (!gradient) continue;
      if (weighs_starts_ && flow_.weighting[id] == Weighting::kOnce) continue;
      return Unimplemented("the update reads '", main_.NameOf(id),
                           "', which the backward part changes from one micro-batch to the next "
                           "with values that are not weighted by their samples: op_role 257 is to "
                           "mark the ops that make the gradient of the loss");
    }
    return absl::OkStatus();
  }

  // For each job of a micro-batch what it writes and later ones, or the update, read.
  void FindKept() {
    const size_t num_jobs = 2 * static_cast<size_t>(found_.schedule.segments());
    std::vector<bool> summed(main_.names.size(), false);
    for (const MicroBatchSum& sum : found_.sums) summed[sum.id] = true;
    std::vector<int32_t> last_read(main_.names.size(), -1);
    std::vector<int32_t> writer(main_.names.size(), -1);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (IsFeed(ops_[i]) || IsFetch(ops_[i])) continue;
      const bool update = IsUpdate(ops_[i]);
      const int32_t job = update ? static_cast<int32_t>(num_jobs) : JobOf(i);
      for (const VarId id : EachNamedArgument(main_, ops_[i].inputs)) {
        if (!update || !summed[id]) last_read[id] = std::max(last_read[id], job);
      }
      if (update) continue;
      for (const VarId id : EachNamedArgument(main_, ops_[i].outputs)) {
        writer[id] = std::max(writer[id], job);
      }
    }
    found_.kept.resize(num_jobs);
    for (VarId id = 0; id < std::ssize(main_.names); ++id) {
      if (found_.per_micro_batch[id] && writer[id] >= 0 && last_read[id] > writer[id]) {
        found_.kept[writer[id]].push_back(id);
      }
    }
  }

  const Program& main_;
  const std::vector<Op>& ops_;
  const MicroBatchOptions options_;
  const OpRegistry& registry_;
  const std::vector<int32_t> positions_;  // by VarId: of declarations
  std::vector<bool> persistable_;         // by VarId: in any block
  std::vector<bool> passed_;              // by VarId: from the jobs to the update
  std::vector<VarId> samples_;            // feeds that micro-batches have some rows of
  std::vector<int64_t> writer_;           // by VarId: the last op in a job that changes it, or -1
  bool weighs_starts_ = true;
  MicroBatchFlow flow_;
  MicroBatchAnalysis found_;
};

}  // namespace

absl::StatusOr<MicroBatchAnalysis> AnalyzeMicroBatches(const Program& main,
                                                       const std::vector<std::string>& feeds,
                                                       const MicroBatchOptions& options,
                                                       const OpRegistry& ops) {
  return Analyzer(main, options, ops).Run(feeds);
}

absl::Status CheckTurns(const Program& main, const std::vector<std::string>& feeds,
                        const OpRegistry& ops) {
  return Analyzer(main, MicroBatchOptions(), ops).CheckTurns(feeds);
}

}  // namespace interp
