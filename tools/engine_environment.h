// What the environment says of engines.
#pragma once

#include "core/engine/engine.h"
#include "core/status.h"

namespace interp::engine {

// `options` as the environment changes them:
//   INTERP_ENGINE                naive | pooled | per-device
//   INTERP_ENGINE_WORKERS        a number from 1 to 256
//   INTERP_ENGINE_MAX_IN_FLIGHT  a number; 0: no bound
// InvalidArgument that names the variable whose value makes no sense.
absl::StatusOr<EngineOptions> FromEnvironment(EngineOptions options = {});

}  // namespace interp::engine
