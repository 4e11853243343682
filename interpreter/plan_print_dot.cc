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
  std::string label(Name(edge.kind));
  if (edge.var >= 0) absl::StrAppend(&label, " ", VarText(plan, edge.var));
  if (edge.var >= 0 && !plan.vars[edge.var].place.on_host()) {
    absl::StrAppend(&label, " ", Name(plan.vars[edge.var].place));
  }
  if (UsesDevices(plan)) {
    absl::StrAppend(&label, edge.memory ? "" : ", issued", edge.host_reads ? ", host_reads" : "",
                    ", ", Name(edge.run_type));
  }
  return absl::StrCat("  i", edge.from, " -> i", edge.to, " [label=", Quoted(label),
                      edge.shrunk ? ", style=dashed" : "", "]\n");
}

// One box around what runs on a stream.
std::string StreamsText(const Plan& plan) {
  std::vector<std::string> members(plan.streams.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    absl::StrAppend(&members[plan.instructions[i].stream], "; i", i);
  }
  std::string text;
  for (size_t s = 0; s < members.size(); ++s) {
    const std::string label = StreamText(plan, static_cast<int32_t>(s));
    absl::StrAppend(&text, "  subgraph cluster_", s, " {label=", Quoted(label), members[s], "}\n");
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
      absl::StrAppend(&text, "  i", plan.events[wait.event].recorder, " -> i", i,
                      " [label=", Quoted(label), ", color=blue, style=bold, constraint=false]\n");
    }
  }
  return text;
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
  if (UsesDevices(plan)) out += StreamsText(plan);
  if (stage == PlanStage::kPlan) out += EventsText(plan);
  return out += "}\n";
}

}  // namespace interp::plan_print
