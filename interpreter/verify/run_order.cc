#include "interpreter/verify/run_order.h"

#include <algorithm>
#include <set>

namespace interp::verify {
namespace {

// Questions about the order within streams: a plan that orders each stream asks one an instruction.
constexpr int64_t kQuestionsPerInstruction = 64;
constexpr int64_t kLeastQuestions = 1 << 20;

bool HasDevices(const Plan& plan) {
  return std::any_of(plan.instructions.begin(), plan.instructions.end(),
                     [](const Instruction& i) { return !i.place.on_host(); });
}

std::vector<Reachability::Edge> KeptEdges(const Plan& plan) {
  std::vector<Reachability::Edge> edges;
  edges.reserve(plan.successors.num_ids());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto from = static_cast<InstrId>(i);
    for (const InstrId to : plan.successors[from]) edges.emplace_back(from, to);
  }
  return edges;
}

}  // namespace

// Nodes of `completions_`: issue and completion of each instruction, one for the end of the run and
// one for the end of each stream's work, issue and completion of the next run.
RunOrder::RunOrder(const Plan& plan)
    : plan_(plan),
      has_devices_(HasDevices(plan)),
      issues_(static_cast<int32_t>(plan.instructions.size()), KeptEdges(plan)),
      completions_(0, {}) {
  CheckWaits();
  if (!has_devices_) return;
  OrderStreams();
  const auto num_nodes =
      static_cast<int32_t>(4 * plan.instructions.size() + 1 + plan.streams.size());
  completions_ = Reachability(num_nodes, CompletionEdges());
}

RunOrder::NodeId RunOrder::NodeOf(const Moment& moment) const {
  const size_t base =
      moment.next_run ? 2 * plan_.instructions.size() + 1 + plan_.streams.size() : 0;
  const bool completion = moment.completion && OnDevice(moment.id);
  return static_cast<NodeId>(base + 2 * static_cast<size_t>(moment.id) + (completion ? 1 : 0));
}

// A path from an issue stays among issues until its last steps, and all that a completion or a wait
// leads to has been issued later as well: so the kept edges alone tell what comes after an issue.
Answer RunOrder::Before(const Moment& a, const Moment& b) {
  const bool from_completion = a.completion && OnDevice(a.id);
  if (a.next_run && !b.next_run) return Answer::kNo;
  if (!from_completion) return a.next_run == b.next_run ? IssuedBefore(a.id, b.id) : Answer::kYes;
  const Answer answer = completions_.Reaches(NodeOf(a), NodeOf(b));
  return answer == Answer::kNo && streams_incomplete_ ? Answer::kUnknown : answer;
}

// Empty for a wait that counts.
std::string RunOrder::WhyBad(InstrId waiter, const EventWait& wait) {
  const InstrId recorder = plan_.events[wait.event].recorder;
  const Instruction& from = plan_.instructions[recorder];
  const Instruction& to = plan_.instructions[waiter];
  if (from.record != wait.event) return "that instruction does not record the event";
  if (from.place.on_host()) return "that instruction runs on the host, where nothing is recorded";
  if (to.place.on_host() && !wait.blocks_host) return "the host has no stream that could wait";
  if (!wait.blocks_host && from.place.kind != to.place.kind) {
    return "a stream cannot wait for a device of another kind";
  }
  if (wait.previous_run) return "";
  const bool before = recorder != waiter && IssuedBefore(recorder, waiter) == Answer::kYes;
  return before ? "" : "nothing makes sure that the event is recorded first";
}

void RunOrder::CheckWaits() {
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto waiter = static_cast<InstrId>(i);
    for (const EventWait& wait : plan_.instructions[i].waits) {
      const InstrId recorder = plan_.events[wait.event].recorder;
      std::string why = WhyBad(waiter, wait);
      if (!why.empty()) {
        bad_waits_.push_back({waiter, recorder, std::move(why)});
        continue;
      }
      const Moment recorded{recorder, /*completion=*/true, /*next_run=*/!wait.previous_run};
      const Moment waits{waiter, /*completion=*/!wait.blocks_host, /*next_run=*/true};
      waits_.push_back({recorded, waits});
    }
  }
}

void RunOrder::AddEdgesWithinRun(bool next_run, std::vector<Reachability::Edge>& edges) const {
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    const NodeId issue = NodeOf({id, /*completion=*/false, next_run});
    for (const InstrId to : plan_.successors[id]) {
      edges.emplace_back(issue, NodeOf({to, /*completion=*/false, next_run}));
    }
    if (OnDevice(id)) edges.emplace_back(issue, issue + 1);
  }
  for (const auto& [from, to] : on_one_stream_) {
    edges.emplace_back(NodeOf({from, /*completion=*/true, next_run}),
                       NodeOf({to, /*completion=*/true, next_run}));
  }
}

void RunOrder::AddEdgesBetweenRuns(std::vector<Reachability::Edge>& edges) const {
  const auto end_of_run = static_cast<NodeId>(2 * plan_.instructions.size());
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    edges.emplace_back(NodeOf({id}), end_of_run);
    edges.emplace_back(end_of_run, NodeOf({id, /*completion=*/false, /*next_run=*/true}));
    if (!OnDevice(id)) continue;
    const NodeId end_of_stream = end_of_run + 1 + plan_.instructions[i].stream;
    edges.emplace_back(NodeOf({id, /*completion=*/true}), end_of_stream);
    edges.emplace_back(end_of_stream, NodeOf({id, /*completion=*/true, /*next_run=*/true}));
  }
}

std::vector<Reachability::Edge> RunOrder::CompletionEdges() {
  std::vector<Reachability::Edge> edges;
  AddEdgesWithinRun(/*next_run=*/false, edges);
  AddEdgesWithinRun(/*next_run=*/true, edges);
  AddEdgesBetweenRuns(edges);
  for (const auto& [recorded, waits] : waits_) {
    edges.emplace_back(NodeOf(recorded), NodeOf(waits));
    if (!recorded.next_run) continue;
    // The first of the two runs has the waits for its own records, too.
    edges.emplace_back(NodeOf({recorded.id, recorded.completion}),
                       NodeOf({waits.id, waits.completion}));
  }
  return edges;
}

void RunOrder::OrderStreams() {
  std::vector<std::vector<InstrId>> by_stream(plan_.streams.size());
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (OnDevice(id)) by_stream[plan_.instructions[i].stream].push_back(id);
  }
  int64_t budget =
      kLeastQuestions + kQuestionsPerInstruction * static_cast<int64_t>(plan_.instructions.size());
  for (const std::vector<InstrId>& on_stream : by_stream) OrderStream(on_stream, budget);
}

// The stream's instructions, in program order, form chains: neighbours that are issued in order. A
// good plan has one chain a stream. From every chain the last member issued before an instruction
// is noted: the members before that one come before it.
void RunOrder::OrderStream(const std::vector<InstrId>& on_stream, int64_t& budget) {
  std::vector<size_t> chain_begins;
  for (size_t k = 0; k < on_stream.size(); ++k) {
    bool extends = false;
    size_t end = k;
    for (size_t c = chain_begins.size(); c-- > 0; end = chain_begins[c]) {
      if (--budget < 0) {
        streams_incomplete_ = true;
        break;
      }
      const auto chain =
          absl::MakeConstSpan(on_stream).subspan(chain_begins[c], end - chain_begins[c]);
      const InstrId last = LastIssuedBefore(chain, on_stream[k]);
      if (last < 0) continue;
      on_one_stream_.emplace_back(last, on_stream[k]);
      if (end == k) extends = last == chain.back();
    }
    if (!extends) chain_begins.push_back(k);
  }
}

// The last member of a chain that is issued before `id`, or -1. All before that one are, too.
InstrId RunOrder::LastIssuedBefore(absl::Span<const InstrId> chain, InstrId id) {
  if (IssuedBefore(chain.back(), id) == Answer::kYes) return chain.back();
  const auto end = std::partition_point(chain.begin(), chain.end(), [&](InstrId member) {
    const Answer answer = IssuedBefore(member, id);
    if (answer == Answer::kUnknown) streams_incomplete_ = true;
    return answer == Answer::kYes;
  });
  return end == chain.begin() ? -1 : *(end - 1);
}

int64_t RunOrder::CountRedundantEdges(bool* all) {
  int64_t count = 0;
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto from = static_cast<InstrId>(i);
    for (const InstrId to : plan_.successors[from]) {
      const Answer around = issues_.ReachesAround(from, to);
      if (around == Answer::kYes) ++count;
      if (around == Answer::kUnknown) *all = false;
    }
  }
  return count;
}

int64_t RunOrder::CountRedundantWaits(bool* all) {
  if (!has_devices_) return 0;
  std::set<std::pair<NodeId, NodeId>> seen;
  int64_t count = 0;
  for (const auto& [recorded, waits] : waits_) {
    const bool same_stream = waits.completion && plan_.instructions[recorded.id].stream ==
                                                     plan_.instructions[waits.id].stream;
    const NodeId from = NodeOf(recorded);
    const NodeId to = NodeOf(waits);
    const bool repeated = !seen.emplace(from, to).second;
    const Answer around =
        same_stream || repeated ? Answer::kYes : completions_.ReachesAround(from, to);
    if (around == Answer::kYes) ++count;
    if (around == Answer::kUnknown) *all = false;
  }
  return count;
}

}  // namespace interp::verify
