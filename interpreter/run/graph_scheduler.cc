#include "interpreter/run/graph_scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interpreter/plan/instruction_name.h"

namespace interp {
namespace {

constexpr int kMostAttempts = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<GraphScheduler>> GraphScheduler::Create(
    const SegmentGraph::Parts& parts, GraphRandom random) {
  std::unique_ptr<GraphScheduler> scheduler(new GraphScheduler(parts, std::move(random)));
  INTERP_RETURN_IF_ERROR(scheduler->MakeFences());
  return scheduler;
}

GraphScheduler::GraphScheduler(const SegmentGraph::Parts& parts, GraphRandom random)
    : parts_(parts), random_(std::move(random)), refused_(parts.plan->instructions.size(), false) {
  FindSegments();
}

absl::Status GraphScheduler::MakeFences() {
  for (const PlanStream& stream : parts_.plan->streams) {
    std::unique_ptr<DeviceEvent>& fence = fences_.emplace_back();
    if (stream.place.on_host()) continue;
    INTERP_ASSIGN_OR_RETURN(fence, parts_.devices->device(stream.place).CreateEvent());
  }
  return absl::OkStatus();
}

void GraphScheduler::FindSegments() {
  order_ = FindGraphs(*parts_.plan, refused_);
  graphs_.clear();
  for (const GraphSegment& segment : order_.segments) {
    const auto ids =
        absl::MakeConstSpan(order_.order).subspan(segment.begin, segment.end - segment.begin);
    graphs_.emplace_back(parts_, ids, segment.stream);
  }
}

void GraphScheduler::Drop() {
  if (stats_.graphs > 0 || stale_) {
    parts_.devices->Synchronize().IgnoreError();  // memory of a lost device is nobody's
    FindSegments();
    kept_.clear();
    parts_.devices->TrimGraphs();
  }
  stats_.graphs = stats_.instructions = 0;
  captured_ = stale_ = false;
}

absl::Status GraphScheduler::Fence() {
  for (size_t s = 0; s < fences_.size(); ++s) {
    if (fences_[s] == nullptr) continue;
    INTERP_RETURN_IF_ERROR(parts_.devices->stream(static_cast<int32_t>(s)).Record(*fences_[s]));
  }
  std::vector<bool> fenced(fences_.size(), false);
  for (const GraphSegment& segment : order_.segments) {
    if (fenced[segment.stream]) continue;
    fenced[segment.stream] = true;
    for (size_t s = 0; s < fences_.size(); ++s) {
      if (fences_[s] == nullptr || static_cast<int32_t>(s) == segment.stream) continue;
      INTERP_RETURN_IF_ERROR(parts_.devices->stream(segment.stream).Wait(*fences_[s]));
    }
  }
  return absl::OkStatus();
}

void GraphScheduler::Run(const RunContext& context) {
  if (context.infer_all || stale_) Drop();
  mode_ = captured_ ? Mode::kReplay : Mode::kCapture;
  if (context.infer_all || order_.segments.empty()) mode_ = Mode::kPlain;
  absl::Status begun = random_.Update();
  if (mode_ == Mode::kReplay) {
    for (SegmentGraph& graph : graphs_) graph.DropResults();
  } else if (mode_ == Mode::kCapture) {
    TrimPools();
  }
  if (begun.ok() && mode_ != Mode::kPlain) begun = Fence();
  if (!begun.ok()) parts_.run.control->Fail(std::move(begun));
  int32_t done = 0;
  for (size_t i = 0; i < order_.segments.size(); ++i) {
    RunInOrder(context, done, order_.segments[i].begin, done);
    RunSegment(context, i);
    done = order_.segments[i].end;
  }
  RunInOrder(context, done, static_cast<int32_t>(order_.order.size()), done);
  if (mode_ != Mode::kCapture || stale_) return;
  captured_ = true;
  attempts_ = 0;
  stale_ = parts_.run.control->ShouldStop();
}

// What runs without graphs took is what graphs are to have.
void GraphScheduler::TrimPools() {
  for (const PlanStream& stream : parts_.plan->streams) {
    if (!stream.place.on_host()) parts_.devices->pool(stream.place).Trim();
  }
}

// Those before `collected` have been collected already.
void GraphScheduler::RunInOrder(const RunContext& context, int32_t begin, int32_t end,
                                int32_t collected) {
  for (int32_t at = begin; at < end; ++at) {
    const InstrId id = order_.order[at];
    RunOne(parts_.run, id, context);
    if (at >= collected) parts_.run.collector->After(id, context.observer, context.worker);
  }
}

void GraphScheduler::RunSegment(const RunContext& context, size_t segment) {
  const GraphSegment& range = order_.segments[segment];
  if (mode_ == Mode::kPlain || stale_ || parts_.run.control->ShouldStop()) {
    return RunInOrder(context, range.begin, range.end, range.begin);
  }
  if (mode_ == Mode::kReplay) return Replay(context, segment);
  Capture(context, segment);
}

void GraphScheduler::Capture(const RunContext& context, size_t segment) {
  const GraphSegment& range = order_.segments[segment];
  SegmentGraph::Capture capture;
  const std::vector<InstrId> writers = graphs_[segment].WritersOfHeld();
  if (writers.empty()) {
    capture = graphs_[segment].Make(context, kept_);
  } else {
    capture.status = absl::FailedPreconditionError("a parameter that it writes is held elsewhere");
  }
  if (capture.status.ok()) {
    ++stats_.captures;
    ++stats_.graphs;
    stats_.instructions += range.end - range.begin;
    absl::Status status = graphs_[segment].Enqueue(context);
    if (!status.ok()) parts_.run.control->Fail(std::move(status));
    return;
  }
  stale_ = true;
  RunInOrder(context, range.begin, range.end,
             range.begin + static_cast<int32_t>(capture.collected));
  graphs_[segment].DropCollected();
  if (parts_.run.control->ShouldStop()) return;
  const bool may_pass = !writers.empty() || absl::IsResourceExhausted(capture.status);
  if (may_pass && ++attempts_ < kMostAttempts) return;
  Refuse(writers.empty() ? ToRefuse(segment, capture) : writers, capture.status);
}

void GraphScheduler::Replay(const RunContext& context, size_t segment) {
  const GraphSegment& range = order_.segments[segment];
  if (!graphs_[segment].Fits()) {
    stale_ = true;
    return RunInOrder(context, range.begin, range.end, range.begin);
  }
  absl::Status status = graphs_[segment].Replay(context);
  if (status.ok()) ++stats_.replays;
  if (status.ok() && parts_.run.control->Expired()) {
    status = parts_.run.runner->Explain(order_.order[range.begin], RunControl::TimedOut());
  }
  if (!status.ok()) parts_.run.control->Fail(std::move(status));
  for (int32_t at = range.begin; at < range.end; ++at) {
    parts_.run.collector->After(order_.order[at], context.observer, context.worker);
  }
}

// All of the segment where it is not known what broke the graph.
std::vector<InstrId> GraphScheduler::ToRefuse(size_t segment,
                                              const SegmentGraph::Capture& capture) const {
  const GraphSegment& range = order_.segments[segment];
  const auto ids = absl::MakeConstSpan(order_.order).subspan(range.begin, range.end - range.begin);
  if (capture.broken.has_value()) return {ids[*capture.broken]};
  return {ids.begin(), ids.end()};
}

// Their work itself is right, as it has just been done without a graph.
void GraphScheduler::Refuse(absl::Span<const InstrId> ids, const absl::Status& why) {
  for (const InstrId id : ids) refused_[id] = true;
  stats_.refused.push_back(absl::StrCat(
      NameOf(parts_.plan->instructions[ids[0]]),
      ids.size() == 1 ? "" : absl::StrCat(" and ", ids.size() - 1, " more"), ": ", why.message()));
}

}  // namespace interp
