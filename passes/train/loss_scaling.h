// Loss scaling: keeps gradients of float16 away from zero.
#pragma once

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// As paddle.static.amp.decorate(optimizer) of Paddle 2.6 has them.
struct LossScalingOptions {
  double initial = 65536;
  bool dynamic = true;    // the scale changes as below; else it stays
  int grow_after = 2000;  // steps in a row with finite gradients
  double grow = 2;        // what the scale is multiplied by then
  int shrink_after = 1;   // steps with an infinity or a NaN
  double shrink = 0.5;
};

// Makes the steps of a training program scale the loss, gradients therefore, and divide by the
// scale before the update:
//
//   fill_constant -> (Out=loss@GRAD)          elementwise_mul(loss@GRAD, loss_scaling_0) behind it
//   ... backward ...
//                                             check_finite_and_unscale(gradients, loss_scaling_0)
//                                             update_loss_scaling(gradients, found_inf, ...)
//   ... update ...                            its ops get SkipUpdate=found_inf where they take it
//
// A step with an infinity or a NaN has gradients of zero, and Adam's kind skips it. `startup` gets
// the ops that give loss_scaling_0, num_good_steps_0 and num_bad_steps_0 their first values. Works
// on any program whose ops have roles (AppendBackward's and Paddle's). Names and order are those of
// paddle.static.amp.
//
// Errors: InvalidArgument for a program without the op that starts the backward part, without
// gradients that an update reads, with an update before the backward part ends, or with gradients
// that are selected rows or not of float32.
absl::Status AddLossScaling(Program& main, Program& startup, const LossScalingOptions& options,
                            const OpRegistry& ops);

}  // namespace interp
