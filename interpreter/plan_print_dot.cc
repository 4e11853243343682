#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "interpreter/plan_print_internal.h"

namespace interp::plan_print {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

// "2: relu float32": the plan stage puts the position in the trace order in front.
std::string Label(const Plan& plan, PlanStage stage, InstrId id, int32_t position) {
  const Instruction& instruction = plan.instructions[id];
  if (stage == PlanStage::kDeps) return absl::StrCat("#", id, " ", instruction.op_type);
  return absl::StrCat(position, ": #", id, " ", instruction.op_type, " ", Name(instruction.dtype));
}

std::string EdgeText(const Plan& plan, const Edge& edge) {
  const std::string label =
      absl::StrCat(Name(edge.kind), edge.var < 0 ? "" : absl::StrCat(" ", VarText(plan, edge.var)));
  return absl::StrCat("  i", edge.from, " -> i", edge.to, " [label=", Quoted(label),
                      edge.shrunk ? ", style=dashed" : "", "]\n");
}

}  // namespace

std::string ToDot(const Plan& plan, PlanStage stage) {
  std::vector<int32_t> positions(plan.instructions.size());
  for (size_t p = 0; p < plan.order.size(); ++p) positions[plan.order[p]] = static_cast<int32_t>(p);
  std::string out = "digraph plan {\n";
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const std::string label = Label(plan, stage, static_cast<InstrId>(i), positions[i]);
    absl::StrAppend(&out, "  i", i, " [shape=box, label=", Quoted(label), "]\n");
  }
  for (const Edge& edge : plan.edges) {
    if (stage == PlanStage::kDeps || !edge.shrunk) out += EdgeText(plan, edge);
  }
  return out += "}\n";
}

}  // namespace interp::plan_print
