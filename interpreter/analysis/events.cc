#include "interpreter/analysis/events.h"

#include <algorithm>

#include "interpreter/analysis/dependencies.h"

namespace interp {
namespace {

// By stream: the last position on it that is known to be complete; -1: nothing.
using Clock = std::vector<int32_t>;

void Join(Clock& clock, const Clock& other) {
  for (size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

RunType Classify(const Plan& plan, const Edge& edge) {
  const Instruction& from = plan.instructions[edge.from];
  const Instruction& to = plan.instructions[edge.to];
  if (!edge.memory || from.place.on_host() || from.stream == to.stream) return RunType::kDirect;
  if (to.place.on_host()) {
    return from.op_type == "memcpy_d2h" ? RunType::kDirect : RunType::kEvent;
  }
  return to.op_type == "memcpy_d2h" ? RunType::kSynchronize : RunType::kEvent;
}

// Edges by target: those of `edges` that lead to i are edges[begins[i]] ... edges[begins[i+1]-1].
std::vector<int32_t> BeginsByTarget(const std::vector<Edge>& edges, size_t num_instructions) {
  std::vector<int32_t> begins(num_instructions + 1, 0);
  for (const Edge& edge : edges) ++begins[edge.to + 1];
  for (size_t i = 0; i < num_instructions; ++i) begins[i + 1] += begins[i];
  return begins;
}

class EventPlacer {
 public:
  explicit EventPlacer(Plan& plan)
      : plan_(plan),
        num_streams_(plan.streams.size()),
        lengths_(num_streams_, 0),
        at_stream_(num_streams_, Clock(num_streams_, -1)),
        positions_(plan.instructions.size(), -1),
        at_host_(plan.instructions.size()),
        behind_(plan.instructions.size()) {
    for (size_t i = 0; i < positions_.size(); ++i) {
      if (!plan.instructions[i].place.on_host()) {
        positions_[i] = lengths_[plan.instructions[i].stream]++;
      }
    }
  }

  void Run() {
    const size_t n = plan_.instructions.size();
    begins_ = BeginsByTarget(plan_.edges, n);
    const Clock nothing(num_streams_, -1);
    for (size_t i = 0; i < n; ++i) Visit(static_cast<InstrId>(i), nothing, {});

    const std::vector<Edge> crossing =
        BuildCrossRunDependencies(plan_.instructions, plan_.vars, StoragesThatKeepMemory());
    if (crossing.empty()) return;
    // A run has returned when the next one starts: that knows all the threads of this one knew.
    Clock start(num_streams_, -1);
    for (const Clock& known : at_host_) Join(start, known);
    const std::vector<int32_t> begins = BeginsByTarget(crossing, n);
    second_run_ = true;
    for (size_t i = 0; i < n; ++i) {
      const absl::Span<const Edge> from_before =
          absl::MakeConstSpan(crossing).subspan(begins[i], begins[i + 1] - begins[i]);
      Visit(static_cast<InstrId>(i), start, from_before);
    }
  }

 private:
  std::vector<bool> StoragesThatKeepMemory() const {
    std::vector<bool> keeps(plan_.vars.size(), false);
    for (size_t id = 0; id < plan_.vars.size(); ++id) {
      const PlanVar& var = plan_.vars[id];
      if (var.kind != VarKind::kLodTensor || var.constant) continue;
      if (var.persistable || plan_.ref_counts[id] == 0) keeps[var.storage] = true;
    }
    return keeps;
  }

  // The position of instruction `id`, of the previous run or of the one being looked at.
  int32_t PositionOf(InstrId id, bool previous_run) const {
    const int32_t stream = plan_.instructions[id].stream;
    return positions_[id] + (second_run_ && !previous_run ? lengths_[stream] : 0);
  }

  // Follows what is known when instruction `id` is issued and when it runs, and adds the waits
  // that its edges still need.
  void Visit(InstrId id, const Clock& start, absl::Span<const Edge> from_before) {
    Instruction& instruction = plan_.instructions[id];
    const absl::Span<const Edge> edges =
        absl::MakeConstSpan(plan_.edges).subspan(begins_[id], begins_[id + 1] - begins_[id]);
    Clock host = start;
    for (const Edge& edge : edges) Join(host, at_host_[edge.from]);
    const bool on_device = !instruction.place.on_host();
    Clock stream = host;
    if (on_device) Join(stream, at_stream_[instruction.stream]);
    for (const EventWait& wait : instruction.waits) Follow(wait, host, stream);
    // The latest first: what it waited for itself need not be waited for again.
    for (auto edge = from_before.rbegin(); edge != from_before.rend(); ++edge) {
      Demand(instruction, *edge, /*previous_run=*/true, host, stream);
    }
    if (!second_run_) {
      for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
        Demand(instruction, *edge, /*previous_run=*/false, host, stream);
      }
    }
    Join(stream, host);
    if (on_device) {
      stream[instruction.stream] = PositionOf(id, false);
      at_stream_[instruction.stream] = stream;
      if (second_run_) {
        behind_second_.resize(plan_.instructions.size());
        behind_second_[id] = std::move(stream);
      } else {
        behind_[id] = std::move(stream);
      }
    }
    at_host_[id] = std::move(host);
  }

  // Adds a wait for the edge unless the clocks cover it.
  void Demand(Instruction& instruction, const Edge& edge, bool previous_run, Clock& host,
              Clock& stream) {
    const Instruction& from = plan_.instructions[edge.from];
    if (!edge.memory || from.place.on_host()) return;
    const bool blocks_host =
        instruction.place.on_host() || edge.host_reads || from.place.kind != instruction.place.kind;
    const Clock& known = blocks_host ? host : stream;
    if (known[from.stream] >= PositionOf(edge.from, previous_run)) return;
    const EventWait wait{
        .event = EventOf(edge.from), .previous_run = previous_run, .blocks_host = blocks_host};
    instruction.waits.push_back(wait);
    Follow(wait, host, stream);
  }

  void Follow(const EventWait& wait, Clock& host, Clock& stream) {
    const InstrId recorder = plan_.events[wait.event].recorder;
    const Clock& known =
        second_run_ && !wait.previous_run ? behind_second_[recorder] : behind_[recorder];
    Join(stream, known);
    if (wait.blocks_host) Join(host, known);
  }

  int32_t EventOf(InstrId recorder) {
    int32_t& event = plan_.instructions[recorder].record;
    if (event < 0) {
      event = static_cast<int32_t>(plan_.events.size());
      plan_.events.push_back({recorder});
    }
    return event;
  }

  Plan& plan_;
  const size_t num_streams_;
  std::vector<int32_t> lengths_;    // instructions by stream
  std::vector<Clock> at_stream_;    // by stream: what its latest work is behind
  std::vector<int32_t> positions_;  // by instruction, on its stream
  std::vector<Clock> at_host_;      // by instruction: what its issuing thread is behind
  std::vector<Clock> behind_;       // by instruction of a device: what is complete when it is
  std::vector<Clock> behind_second_;
  std::vector<int32_t> begins_;
  bool second_run_ = false;
};

}  // namespace

void PlaceEvents(Plan& plan) {
  for (Edge& edge : plan.edges) edge.run_type = Classify(plan, edge);
  if (plan.streams.size() > 1) EventPlacer(plan).Run();
}

}  // namespace interp
