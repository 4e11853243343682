// TrainOps: a private registry of the ops that a small linear regression needs, so that tests of
// training depend on no kernel. All of float32.
//
//   product(X, W) -> P             P[i] = X[i,:] W
//   squared_error(P, Y) -> Loss, D   the mean of (P - Y)^2, and its derivative by P
//   product_grad(X, D) -> WGrad    D X
//   descend(Param, Grad) -> ParamOut   Param - 0.1 Grad, in place
//   track(X, State) -> StateOut    0.9 State + 0.1 the mean of X: a state as batch_norm has
//   noise(X) -> Out                X, each element plus a random number below 0.5
//   guard(X) -> Out                X; fails when X[0] is below -100; calls Probe::OnKernel
//   count(X) -> Out                int64: how many elements X has
//   feed, fetch: as the interpreter expects them
#pragma once

#include <string>

#include "core/op_def.h"

namespace interp::testing {

const OpRegistry& TrainOps();

// A training program of these ops, as text: feeds x [-1,3] and y [-1], parameter w [3], state s
// [1], fetches loss, p [-1] and counted. With noise, steps draw random numbers.
std::string RegressionText(bool with_noise);

}  // namespace interp::testing
