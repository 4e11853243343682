// Flags of `interp train` and `interp dump` for steps in micro-batches and pipelines.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "core/status.h"
#include "passes/train/micro_batches.h"

namespace interp {

struct PipelineFlags {
  int32_t micro_batches = 0;  // 0: the program runs as it is
  int32_t stages = 0;         // 0: what op_device says
  int32_t chunks = 0;         // 0: 2 with the schedule interleaved, else 1
  std::string schedule;       // empty: 1f1b
  std::string page;           // file to write; empty: none

  bool has_stages() const { return stages > 0 || chunks > 0 || !schedule.empty(); }
};
void AddPipelineFlags(CLI::App& command, PipelineFlags& flags);

// Nothing without --micro-batches. InvalidArgument for flags that have no effect or make no
// schedule, and for batches that cannot be cut so.
absl::StatusOr<std::optional<MicroBatchOptions>> MakeMicroBatchOptions(const PipelineFlags& flags,
                                                                       int64_t batch_size,
                                                                       bool on_devices);

}  // namespace interp
