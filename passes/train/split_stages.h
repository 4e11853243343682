// SplitStages: which part of a pipeline computes which op of a training program.
//
//   forward    segment 0 ── 1 ── 2 ── 3 ─┐      one job each and micro-batch, in this order
//   backward   segment 0 ── 1 ── 2 ── 3 ─┘      and back
//   update     each op where its parameter is used
#pragma once

#include <cstdint>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

struct StageSplit {
  int32_t num_segments = 1;
  std::vector<int32_t> segment_of;  // by op of block 0; -1 for feed and fetch ops
  // By op: its job among those of a micro-batch: first forward jobs in the order of segments, then
  // backward jobs, from the last segment to the first. -1 for ops of the update, too.
  std::vector<int32_t> job_of;
};

// Whether `op_device` puts an op on the host: "cpu", with a number or without.
bool IsPutOnHost(const Op& op);

// The most that attributes `op_device` name: 1 + the largest number of "gpu:0", "gpu:1" ... on ops
// of the forward and backward part; 0 where none has a number.
int32_t CountDeviceSegments(const Program& main);

// `num_segments` > 0: cuts the forward part, in program order, into so many parts of about the same
// cost, whatever `op_device` says. 0: segment k is what `op_device` puts on device k, and ops
// without one follow what they read.
//
// Products and convolutions cost their multiplications, estimated from declared dims; other ops the
// elements they write, each as much as it takes a device to move it. An op of the backward part
// belongs to the forward op that it differentiates, found by the names of gradients; what has no
// such name follows what it reads. An op that needs or overwrites what a later job uses belongs to
// that job, whatever its role: an op of the forward part that reads gradients runs with the
// backward part. Linear in ops and arguments.
//
// Errors: InvalidArgument for fewer forward ops than segments, for an op whose `op_device` puts it
// before what it needs, and for a device of which there is no op.
absl::StatusOr<StageSplit> SplitStages(const Program& main, int32_t num_segments,
                                       const OpRegistry& ops);

}  // namespace interp
