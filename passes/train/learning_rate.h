// Learning rates that change from step to step: ops of the program, which count steps in the
// persistable variable @LR_DECAY_COUNTER@, as those of Paddle's functions exponential_decay,
// noam_decay and so on do (python/paddle/optimizer/lr.py).
//
//   lr_schedule=     the rate of step s, counted from 0 (from 1 by noam), of learning_rate l
//   noam             l d_model^-0.5 min(s^-0.5, s warmup_steps^-1.5)
//   exponential      l decay_rate^(s / decay_steps)
//   natural_exp      l e^(-decay_rate s / decay_steps)
//   inverse_time     l / (1 + decay_rate s / decay_steps)
//   polynomial       (l - end_learning_rate) (1 - s / decay_steps)^power + end_learning_rate, where
//                    s is at most decay_steps, or with cycle=true decay_steps grows to a multiple
//                    that is no less than s
//   cosine           l / 2 (cos(pi floor(s / step_each_epoch) / epochs) + 1)
//   piecewise        values[i] for the first i with s < boundaries[i], else the last of values
//                    (boundaries=10;20,values=0.1;0.01;0.001)
//
// staircase=true takes the whole part of s / decay_steps (exponential, natural_exp, inverse_time).
// warmup_steps, start_lr and end_lr, all three, lead linearly from start_lr to end_lr in the first
// steps of any schedule but noam, or without one.
#pragma once

#include "passes/train/optimizer_kind.h"
#include "passes/train/state_writer.h"

namespace interp {

// Options of the schedule, as OptimizerOption; empty for "". InvalidArgument for an unknown one.
absl::StatusOr<std::vector<OptimizerOption>> ScheduleOptions(absl::string_view schedule);

// Checks values that depend on each other.
absl::Status CheckSchedule(const OptimizerValues& values);

// Whether the learning rate changes at all.
bool HasSchedule(const OptimizerValues& values);

// Appends the schedule; the variable of dtype `dtype` that holds the rate. Prepends an op that
// counts.
absl::StatusOr<VarId> AppendSchedule(StateWriter& writer, const OptimizerValues& values,
                                     DType dtype);

}  // namespace interp
