#include "tests/testing/mutations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/testing/plans.h"

namespace interp::testing {
namespace {

bool Uses(const Instruction& instruction, VarId var) {
  return std::count(instruction.inputs.begin(), instruction.inputs.end(), var) > 0 ||
         std::count(instruction.outputs.begin(), instruction.outputs.end(), var) > 0;
}

class MutationFinder {
 public:
  explicit MutationFinder(const Plan& plan) : plan_(plan) {}

  std::vector<Mutation> Find() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      AddEdges(id);
      AddEvents(id);
      AddCounts(id);
      AddShares(id);
    }
    AddFrees();
    AddSwaps();
    return std::move(mutations_);
  }

 private:
  void AddEdges(InstrId id) {
    for (const InstrId to : plan_.successors[id]) {
      mutations_.push_back({.kind = MutationKind::kDropEdge, .first = id, .second = to});
    }
  }

  void AddEvents(InstrId id) {
    const Instruction& instruction = plan_.instructions[id];
    for (size_t w = 0; w < instruction.waits.size(); ++w) {
      mutations_.push_back(
          {.kind = MutationKind::kDropWait, .first = id, .index = static_cast<int32_t>(w)});
    }
    if (instruction.record >= 0) {
      mutations_.push_back({.kind = MutationKind::kDropRecord, .first = id});
    }
  }

  void AddCounts(InstrId id) {
    for (const VarId var : plan_.gc_check[id]) {
      for (InstrId earlier = 0; earlier < id; ++earlier) {
        const absl::Span<const VarId> listed = plan_.gc_check[earlier];
        if (!Uses(plan_.instructions[earlier], var)) continue;
        if (std::count(listed.begin(), listed.end(), var) > 0) continue;
        mutations_.push_back({MutationKind::kCountDownEarlier, id, earlier, var});
      }
    }
  }

  void AddFrees() {
    for (size_t at = 0; at < plan_.order.size(); ++at) {
      for (const VarId var : plan_.frees_in_order[plan_.order[at]]) {
        for (size_t earlier = at < 3 ? 0 : at - 3; earlier < at; ++earlier) {
          mutations_.push_back(
              {MutationKind::kFreeEarlier, plan_.order[at], plan_.order[earlier], var});
        }
      }
    }
  }

  bool MayShare(const Instruction& instruction, size_t in, size_t out) const {
    const VarId from = instruction.inputs[in];
    const VarId to = instruction.outputs[out];
    if (from < 0 || to < 0 || from == to) return false;
    const PlanVar& a = plan_.vars[from];
    const PlanVar& b = plan_.vars[to];
    if (a.kind != VarKind::kLodTensor || b.kind != VarKind::kLodTensor) return false;
    const int flags = InputFlags(instruction, static_cast<int>(in));
    return (flags & kNoNeedBuffer) == 0 && a.place == b.place;
  }

  void AddShares(InstrId id) {
    const Instruction& instruction = plan_.instructions[id];
    if (instruction.def->dynamic_outputs || !instruction.def->view.empty()) return;
    for (size_t out = 0; out < instruction.outputs.size(); ++out) {
      const bool taken = std::any_of(
          instruction.share.begin(), instruction.share.end(),
          [&](const InplacePair& pair) { return pair.output == static_cast<int32_t>(out); });
      for (size_t in = 0; !taken && in < instruction.inputs.size(); ++in) {
        if (!MayShare(instruction, in, out)) continue;
        const bool hidden = IsHiddenInput(instruction, static_cast<int>(in)) ||
                            IsHiddenOutput(instruction, static_cast<int>(out));
        if (hidden) continue;
        mutations_.push_back({.kind = MutationKind::kShareLiveValue,
                              .first = id,
                              .second = static_cast<int32_t>(in),
                              .index = static_cast<int32_t>(out)});
      }
    }
  }

  void AddSwaps() {
    std::vector<InstrId> latest(plan_.streams.size(), -1);
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      if (plan_.instructions[i].place.on_host()) continue;
      InstrId& before = latest[plan_.instructions[i].stream];
      if (before >= 0) {
        mutations_.push_back({.kind = MutationKind::kSwapOnStream, .first = before, .second = id});
      }
      before = id;
    }
  }

  const Plan& plan_;
  std::vector<Mutation> mutations_;
};

void DropEdge(Plan& plan, InstrId from, InstrId to) {
  std::vector<std::vector<int32_t>> successors = Apart(plan.successors);
  if (std::erase(successors[from], to) == 0) return;
  plan.successors = Together(successors);
  --plan.dep_counts[to];
  std::erase_if(plan.edges, [&](const Edge& e) { return e.from == from && e.to == to; });
}

void MoveVar(IdLists& lists, const Mutation& mutation) {
  std::vector<std::vector<int32_t>> apart = Apart(lists);
  std::erase(apart[mutation.first], mutation.var);
  apart[mutation.second].push_back(mutation.var);
  lists = Together(apart);
}

void SwapOnStream(Plan& plan, InstrId first, InstrId second) {
  DropEdge(plan, first, second);
  const auto to = std::find(plan.order.begin(), plan.order.end(), first);
  const auto from = std::find(plan.order.begin(), plan.order.end(), second);
  if (to < from) std::rotate(to, from, from + 1);
}

}  // namespace

const char* Name(MutationKind kind) {
  constexpr const char* kNames[kNumMutationKinds] = {
      "drop edge",    "drop wait",        "drop record",   "count down earlier",
      "free earlier", "share live value", "swap on stream"};
  return kNames[static_cast<int>(kind)];
}

std::vector<Mutation> AllMutations(const Plan& plan) { return MutationFinder(plan).Find(); }

Plan Mutate(Plan plan, const Mutation& mutation) {
  Instruction& first = plan.instructions[mutation.first];
  switch (mutation.kind) {
    case MutationKind::kDropEdge:
      DropEdge(plan, mutation.first, mutation.second);
      break;
    case MutationKind::kDropWait:
      first.waits.erase(first.waits.begin() + mutation.index);
      break;
    case MutationKind::kDropRecord:
      first.record = -1;
      break;
    case MutationKind::kCountDownEarlier:
      MoveVar(plan.gc_check, mutation);
      break;
    case MutationKind::kFreeEarlier:
      MoveVar(plan.frees_in_order, mutation);
      break;
    case MutationKind::kShareLiveValue:
      first.share.push_back({mutation.second, mutation.index});
      break;
    case MutationKind::kSwapOnStream:
      SwapOnStream(plan, mutation.first, mutation.second);
      break;
  }
  return plan;
}

std::string Describe(const Plan& plan, const Mutation& mutation) {
  std::string text = absl::StrCat(Name(mutation.kind), " #", mutation.first);
  if (mutation.second >= 0) absl::StrAppend(&text, " ", mutation.second);
  if (mutation.index >= 0) absl::StrAppend(&text, " [", mutation.index, "]");
  if (mutation.var >= 0) absl::StrAppend(&text, " ", plan.vars[mutation.var].name);
  return text;
}

}  // namespace interp::testing
