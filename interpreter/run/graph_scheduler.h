// GraphScheduler: trace order, with work of GPUs in graphs (FindGraphs).
//
// The first run with certain shapes is as any other: kernels make their plans. The second captures
// each segment as a graph, which later runs enqueue as a whole. New shapes, parameters that have
// moved, or results that somebody has kept are run without graphs, and the next run captures again.
// An instruction whose work turns out not to be capturable is left out from then on, and so is,
// after some attempts, what writes a parameter that somebody holds or finds no memory for a graph.
//
// Random numbers are new in every run (GraphRandom).
//
// Memory that graphs keep is read by other streams; before the first graph of a run all streams of
// graphs wait for what those still have to do.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interpreter/analysis/graphs.h"
#include "interpreter/run/graph_random.h"
#include "interpreter/run/graph_stats.h"
#include "interpreter/run/scheduler.h"
#include "interpreter/run/segment_graph.h"

namespace interp {

class GraphScheduler final : public Scheduler {
 public:
  // Of a main block. All arguments are borrowed. Errors: a device has no events.
  static absl::StatusOr<std::unique_ptr<GraphScheduler>> Create(const SegmentGraph::Parts& parts,
                                                                GraphRandom random);

  void Run(const RunContext& context) override;
  // Between runs.
  const GraphStats& stats() const { return stats_; }

 private:
  GraphScheduler(const SegmentGraph::Parts& parts, GraphRandom random);
  absl::Status MakeFences();
  void FindSegments();
  void Drop();
  absl::Status Fence();
  void TrimPools();
  void RunInOrder(const RunContext& context, int32_t begin, int32_t end, int32_t collected);
  void RunSegment(const RunContext& context, size_t segment);
  void Capture(const RunContext& context, size_t segment);
  std::vector<InstrId> ToRefuse(size_t segment, const SegmentGraph::Capture& capture) const;
  void Refuse(absl::Span<const InstrId> ids, const absl::Status& why);
  void Replay(const RunContext& context, size_t segment);

  enum class Mode : int8_t { kPlain, kCapture, kReplay };

  const SegmentGraph::Parts parts_;
  const GraphRandom random_;
  GraphOrder order_;
  std::vector<SegmentGraph> graphs_;  // by segment
  SegmentGraph::KeptBuffers kept_;
  std::vector<bool> refused_;                         // by InstrId
  std::vector<std::unique_ptr<DeviceEvent>> fences_;  // by stream; null for the host's
  Mode mode_ = Mode::kPlain;                          // of the run
  bool captured_ = false;                             // the run before has captured all segments
  bool stale_ = false;                                // the graphs are of no use any more
  int attempts_ = 0;  // captures in a row that failed by what may pass
  GraphStats stats_;
};

}  // namespace interp
