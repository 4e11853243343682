#include "interpreter/analysis/link.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace interp {
namespace {

void FillSuccessors(Plan& plan) {
  const size_t n = plan.instructions.size();
  plan.dep_counts.assign(n, 0);
  plan.successors.begins.assign(n + 1, 0);
  for (const Edge& edge : plan.edges) {
    if (edge.shrunk) continue;
    ++plan.dep_counts[edge.to];
    ++plan.successors.begins[edge.from + 1];
  }
  for (size_t i = 0; i < n; ++i) plan.successors.begins[i + 1] += plan.successors.begins[i];
  plan.successors.ids.resize(plan.successors.begins[n]);
  std::vector<int32_t> next(plan.successors.begins.begin(), plan.successors.begins.end() - 1);
  for (const Edge& edge : plan.edges) {
    if (!edge.shrunk) plan.successors.ids[next[edge.from]++] = edge.to;
  }
}

void FillOrder(Plan& plan) {
  using Ready = std::pair<int32_t, InstrId>;  // priority, then program order
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  std::vector<int32_t> waiting = plan.dep_counts;
  const auto push = [&](InstrId i) { ready.emplace(plan.instructions[i].priority, i); };
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i] == 0) push(static_cast<InstrId>(i));
  }
  plan.order.clear();
  plan.order.reserve(waiting.size());
  while (!ready.empty()) {
    const InstrId i = ready.top().second;
    ready.pop();
    plan.order.push_back(i);
    for (const InstrId s : plan.successors[i]) {
      if (--waiting[s] == 0) push(s);
    }
  }
}

void MeasureWidth(Plan& plan) {
  std::vector<int32_t> depth(plan.instructions.size(), 0);
  std::vector<int32_t> width;
  for (const InstrId i : plan.order) {
    if (depth[i] >= static_cast<int32_t>(width.size())) width.resize(depth[i] + 1, 0);
    ++width[depth[i]];
    for (const InstrId s : plan.successors[i]) depth[s] = std::max(depth[s], depth[i] + 1);
  }
  plan.critical_path = static_cast<int32_t>(width.size());
  plan.max_width = width.empty() ? 0 : *std::max_element(width.begin(), width.end());
}

// A feed's kernel sets the shape of its output, but to that of what is fed.
bool IsFeed(const Plan& plan, const Instruction& instruction) {
  return plan.feed_list >= 0 && instruction.inputs.size() == 1 &&
         instruction.inputs[0] == plan.feed_list;
}

// An update in place leaves the size as it is; InstructionRunner tells when it changes the shape.
// What the block that an instruction runs reads is not updated by it.
bool UpdatesInPlace(const Instruction& instruction, int out) {
  return TakesInput(instruction, instruction.outputs[out]);
}

// By VarId: whether readers may find another shape although everything from outside the block has
// the shape it had: several instructions write it, or a sub-block does.
std::vector<bool> VarsOfChangingShape(const Plan& plan) {
  std::vector<bool> changing(plan.vars.size(), false);
  std::vector<bool> written(plan.vars.size(), false);
  for (const Instruction& instruction : plan.instructions) {
    for (int out = 0; out < static_cast<int>(instruction.outputs.size()); ++out) {
      const VarId id = instruction.outputs[out];
      if (id < 0) continue;
      if (IsHiddenOutput(instruction, out)) changing[id] = true;
      if (UpdatesInPlace(instruction, out)) continue;
      if (written[id]) changing[id] = true;
      written[id] = true;
    }
  }
  return changing;
}

bool InfersAlways(const Plan& plan, const Instruction& instruction,
                  const std::vector<bool>& changing) {
  if (instruction.def->dynamic_outputs && !IsFeed(plan, instruction)) return true;
  for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
    const VarId id = instruction.inputs[arg];
    if (id < 0) continue;
    const int flags = InputFlags(instruction, arg);
    if (changing[id] || ((flags & kValueInInfer) != 0 && !plan.vars[id].constant)) return true;
  }
  return std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                     [&](VarId id) { return id >= 0 && changing[id]; });
}

}  // namespace

void LinkInstructions(Plan& plan) {
  FillSuccessors(plan);
  FillOrder(plan);
  MeasureWidth(plan);
}

void MarkDynamicShapes(Plan& plan) {
  std::vector<bool> changing = VarsOfChangingShape(plan);
  for (Instruction& instruction : plan.instructions) {
    instruction.dynamic_shape = InfersAlways(plan, instruction, changing);
    if (!instruction.dynamic_shape) continue;
    for (const VarId id : instruction.outputs) {
      if (id >= 0 && plan.vars[id].kind == VarKind::kLodTensor) changing[id] = true;
    }
  }
}

}  // namespace interp
