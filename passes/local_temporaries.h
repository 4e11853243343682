#pragma once

#include "passes/pass.h"

namespace interp {

inline constexpr absl::string_view kLocalTemporariesPass = "local_temporaries";

// Makes persistable variables the run's own where each run writes them before it reads them: layers
// with weight norm, exported by paddle.jit.save, compute their weights into such variables. What is
// made of parameters there can be folded then, and cores may run side by side.
//
//   var w float32[4,4] persistable                            var w float32[4,4]
//   assign(X=v) -> (Out=w)                          becomes   assign(X=v) -> (Out=w)
//   mul(X=x, Y=w) -> (Out=y)                                  mul(X=x, Y=w) -> (Out=y)
//
// The scope does not have their values after a run, so the pass is for those who want fetches
// alone: Predictor, commands of `interp` that save nothing, and plans of what fetches something.
// Parameters stay, as do variables that nobody reads (a start-up program makes them for others),
// that the caller feeds, and that sub-blocks name. Linear time.
absl::StatusOr<Program> LocalTemporaries(Program program, const PassContext& context);

}  // namespace interp
