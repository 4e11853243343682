#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "interpreter/inspect/plan_print_internal.h"

namespace interp::plan_print {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

// "i2", of another block than the main one "b1_i2".
std::string Node(const Plan& plan, InstrId id) {
  return absl::StrCat(plan.block == 0 ? "" : absl::StrCat("b", plan.block, "_"), "i", id);
}

// "2: relu float32": the plan stage puts the position in the trace order in front.
std::string Label(const Plan& plan, PlanStage stage, InstrId id, int32_t position) {
  const Instruction& instruction = plan.instructions[id];
  if (stage == PlanStage::kDeps) return absl::StrCat("#", id, " ", instruction.op_type);
  return absl::StrCat(position, ": #", id, " ", instruction.op_type, " ", Name(instruction.dtype));
}

std::string EdgeText(const Plan& plan, const Edge& edge) {
  std::string label(Name(edge.kind));
  if (edge.var >= 0) absl::StrAppend(&label, " ", VarText(plan, edge.var));
  if (edge.var >= 0 && !plan.vars[edge.var].place.on_host()) {
    absl::StrAppend(&label, " ", Name(plan.vars[edge.var].place));
  }
  if (UsesDevices(plan)) {
    absl::StrAppend(&label, edge.memory ? "" : ", issued", edge.host_reads ? ", host_reads" : "",
                    ", ", Name(edge.run_type));
  }
  return absl::StrCat("  ", Node(plan, edge.from), " -> ", Node(plan, edge.to),
                      " [label=", Quoted(label), edge.shrunk ? ", style=dashed" : "", "]\n");
}

// One box around what runs on a stream.
std::string StreamsText(const Plan& plan) {
  std::vector<std::string> members(plan.streams.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    absl::StrAppend(&members[plan.instructions[i].stream], "; ",
                    Node(plan, static_cast<InstrId>(i)));
  }
  std::string text;
  for (size_t s = 0; s < members.size(); ++s) {
    const std::string label = StreamText(plan, static_cast<int32_t>(s));
    if (members[s].empty() && plan.block != 0) continue;
    absl::StrAppend(&text, "  subgraph cluster_",
                    plan.block == 0 ? "" : absl::StrCat("b", plan.block, "_"), s,
                    " {label=", Quoted(label), members[s], "}\n");
  }
  return text;
}

// From the recorder to whoever waits. They do not pull at the layout: the edges behind them do.
std::string EventsText(const Plan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (const EventWait& wait : plan.instructions[i].waits) {
      const std::string label =
          absl::StrCat("event ", wait.event, wait.previous_run ? " of the run before" : "");
      absl::StrAppend(&text, "  ", Node(plan, plan.events[wait.event].recorder), " -> ",
                      Node(plan, static_cast<InstrId>(i)), " [label=", Quoted(label),
                      ", color=blue, style=bold, constraint=false]\n");
    }
  }
  return text;
}

// The nodes and edges of one block.
void AppendBlock(const Plan& plan, PlanStage stage, std::string& out) {
  std::vector<int32_t> positions(plan.instructions.size());
  for (size_t p = 0; p < plan.order.size(); ++p) positions[plan.order[p]] = static_cast<int32_t>(p);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    absl::StrAppend(&out, "  ", Node(plan, id),
                    " [shape=box, label=", Quoted(Label(plan, stage, id, positions[i])), "]\n");
  }
  for (const Edge& edge : plan.edges) {
    if (stage == PlanStage::kDeps || !edge.shrunk) out += EdgeText(plan, edge);
  }
  if (UsesDevices(plan)) out += StreamsText(plan);
  if (stage == PlanStage::kPlan) out += EventsText(plan);
}

}  // namespace

std::string ToDot(absl::Span<const Plan> plans, PlanStage stage) {
  std::string out = "digraph plan {\n";
  for (const Plan* plan : RunningPlans(plans)) {
    if (plan->block == plans[0].block) {
      AppendBlock(*plan, stage, out);
      continue;
    }
    absl::StrAppend(&out, "  subgraph cluster_block_", plan->block,
                    " {label=", Quoted(absl::StrCat("block ", plan->block)), "\n");
    AppendBlock(*plan, stage, out);
    out += "  }\n";
  }
  // From the instruction that runs a block to the block's first one.
  for (const Plan* plan : RunningPlans(plans)) {
    for (size_t i = 0; i < plan->instructions.size(); ++i) {
      const auto block = static_cast<size_t>(plan->instructions[i].sub_block);
      if (plan->instructions[i].sub_block < 0 || block >= plans.size()) continue;
      if (plans[block].instructions.empty()) continue;
      absl::StrAppend(&out, "  ", Node(*plan, static_cast<InstrId>(i)), " -> ",
                      Node(plans[block], 0), " [label=\"runs\", style=dotted]\n");
    }
  }
  return out += "}\n";
}

}  // namespace interp::plan_print
