// MakeMicroBatches: a training program made one whose step computes its batch part by part.
//
//   forward, backward, update      becomes      F0 B0 F1 B1 ... sums update
//
// A micro-batch is a part of the rows of a batch. Its forward and backward part are jobs
// (passes/train/job_schedule.h); the update follows once, on the sum of the gradients of all. Jobs
// of several stages, each on a place of its own, are a pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/op_def.h"
#include "core/place.h"
#include "core/program.h"
#include "core/status.h"
#include "passes/train/job_schedule.h"

namespace interp {

// Attributes of the ops of jobs, for whoever shows a run: NameOf(job), and its stage. What belongs
// to a stage and to no job, the sums, has the latter alone.
inline constexpr absl::string_view kJobAttr = "interp_job";
inline constexpr absl::string_view kStageAttr = "interp_stage";

struct MicroBatchOptions {
  int32_t micro_batches = 1;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  // 1: all on one place. 0: what `op_device` says (SplitStages).
  int32_t stages = 1;
  int32_t chunks = 1;  // of a stage, see JobSchedule
  // Of the first stage. Stage s of a pipeline is on the device whose number is larger by s; on the
  // host all are.
  Place place = {};
};

// A job as the program has it: some neighbouring ops of block 0.
struct JobOps {
  Job job;
  int32_t first_op = 0;
  int32_t num_ops = 0;
  // What the job leaves for later jobs of its micro-batch, for the sums, which end with the last
  // one, and for the update. All else but fetches is freed by the end of the job.
  std::vector<VarId> keeps;
};

struct MicroBatchProgram {
  Program program;
  JobSchedule schedule;
  std::vector<JobOps> jobs;  // in the order of the program
  // To be fed besides the data, by micro-batch: its samples divided by those of the batch, as the
  // program declares it: float64[1] where a gradient is of that type, else float32[1].
  std::vector<std::string> weights;
  // Persistable variables that go from one micro-batch to the next: means of batch_norm, metrics.
  std::vector<std::string> states;
  // The variables that a step has once; of all others each micro-batch has its own.
  absl::flat_hash_set<std::string> fetched_once;
};

// The name that a variable of `main` has in a micro-batch; in the first it keeps its own.
std::string NameInMicroBatch(const std::string& name, int32_t micro_batch);

// The gradient of a loss that is a mean over samples is the mean of the micro-batches' gradients,
// each weighted by its samples. So the loss's gradient is weighted where the backward part begins;
// where no op is marked as that (op_role 257), the gradients are:
//
//   mul(X=x, Y=w) -> (Out=h)                   interp_job=F0
//   fill_constant() -> (Out=loss@GRAD)         interp_job=B0
//   scale(X=loss@GRAD, ScaleTensor=WEIGHT_0) -> (Out=loss@GRAD)
//   mul_grad(..) -> (Y@GRAD=w@GRAD@MICRO_0)
//   mul(X=x@MICRO_1, Y=w) -> (Out=h@MICRO_1)   interp_job=F1
//   ...
//   sum(X=[w@GRAD@MICRO_0, w@GRAD@MICRO_1]) -> (Out=w@GRAD)
//   sgd(Param=w, Grad=w@GRAD)
//
// The pass addto (passes/train/addto.h) takes the sum as gradients are made, so that one
// micro-batch's are there at a time. Sums are taken in the order of the micro-batches, which all
// schedules keep: they give the same bits. `feeds`: what is fed; those whose first declared dim is
// open hold samples and get a variable for each micro-batch, all others are fed once. Persistable
// variables that the forward part writes (means of batch_norm, metrics) go from one micro-batch to
// the next. Linear in ops and arguments, times micro-batches.
//
// Where an update reads the sum of a gradient from a marked op and of something else, the gradients
// are weighted, too.
//
// Errors: those of CheckSchedule, SplitStages and SplitUpdate; Unimplemented for ops that run
// blocks, for a persistable variable that one job writes and another uses, and where the update
// reads rows that are samples, integers of samples or of the backward part, what the forward part
// makes of a state, or a state with gradients that are not weighted; InvalidArgument for a device
// that there is not, and for more than 4 million ops in all. REQUIRES: VerifyProgram(main).
absl::StatusOr<MicroBatchProgram> MakeMicroBatches(const Program& main,
                                                   const std::vector<std::string>& feeds,
                                                   const MicroBatchOptions& options,
                                                   const OpRegistry& ops);

}  // namespace interp
