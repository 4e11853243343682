// AppendOptimizer: the ops that update parameters by their gradients, and their states.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/program.h"
#include "core/status.h"
#include "passes/train/append_backward.h"

namespace interp {

// An optimizer by the name of Paddle's class, in lower case, and arguments of its constructor:
//
//   sgd momentum lars_momentum adagrad decayed_adagrad adam adamw adamax adadelta rmsprop ftrl lamb
//   dpsgd
//
// Arguments that are not given have the defaults of the constructor. Besides those all take
//
//   weight_decay=C             L2 decay, gradient += C parameter (but for adamw, which has its own,
//                              and lamb, where it is lamb_weight_decay)
//   l1_decay=C                 gradient += C sign(parameter)
//   grad_clip_value=V          each element of a gradient to [-V, V]
//   grad_clip_norm=N           the norm of each gradient to at most N
//   grad_clip_global_norm=N    that of all gradients together
//   multi_precision=true       16-bit parameters have a master of float32 (sgd, momentum, adam,
//                              adamw, lamb)
//   lr_schedule=NAME           the learning rate changes from step to step: names and their options
//                              are in passes/train/learning_rate.h
struct OptimizerSpec {
  std::string type;
  std::vector<std::pair<std::string, std::string>> options;  // name and value, as text
};

// Reads "adam" or "adam:learning_rate=0.001,beta1=0.9". InvalidArgument for an optimizer or an
// option that there is none of, a value that is no number, and two ways to do one thing.
absl::StatusOr<OptimizerSpec> ParseOptimizerSpec(absl::string_view text);

// Appends to block 0 of `main` what Paddle's Optimizer.apply_gradients does, in its order:
// gradients are clipped, decay is added to them, and one op for each parameter, in the order of
// their names, updates it in place. To `startup` it appends the ops that give the states their
// first values. Names are Paddle's: learning_rate_0, w_moment1_0, w_beta1_pow_acc_0; a higher
// number where one is taken. Ops have op_role 2 and op_role_var, those of a schedule 16.
//
// `gradients` are of `main`, as AppendBackward gives them; selected rows are allowed. On an error
// the programs are to be thrown away.
absl::Status AppendOptimizer(Program& main, Program& startup,
                             const std::vector<SourceGradient>& gradients,
                             const OptimizerSpec& spec);

}  // namespace interp
