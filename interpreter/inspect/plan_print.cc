#include "interpreter/inspect/plan_print.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/program_print.h"
#include "interpreter/analysis/graphs.h"
#include "interpreter/inspect/plan_print_internal.h"

namespace interp {
namespace plan_print {

std::string VarsText(const Plan& plan, absl::Span<const VarId> ids) {
  return absl::StrJoin(ids, ", ",
                       [&plan](std::string* out, VarId id) { *out += VarText(plan, id); });
}

absl::string_view SlotName(const std::vector<SlotDef>& slots, size_t slot) {
  return slot < slots.size() ? slots[slot].name : "sub_block";
}

std::vector<const Plan*> RunningPlans(absl::Span<const Plan> plans) {
  std::vector<const Plan*> running = {&plans[0]};
  for (size_t at = 0; at < running.size(); ++at) {
    for (const Instruction& instruction : running[at]->instructions) {
      // A plan alone is printed without those that it runs.
      const auto block = static_cast<size_t>(instruction.sub_block);
      if (instruction.sub_block >= 0 && block < plans.size()) running.push_back(&plans[block]);
    }
  }
  return running;
}

bool UsesDevices(const Plan& plan) { return plan.streams.size() > 1; }

std::string StreamText(const Plan& plan, int32_t stream) {
  const PlanStream& s = plan.streams[stream];
  return absl::StrCat(NameText(s.name), " ", Name(s.place));
}

}  // namespace plan_print

namespace {

using plan_print::UsesDevices;
using plan_print::VarsText;

// "(X=a, Y=[b, c])"; absent slots are left out.
std::string SlotsText(const Plan& plan, const std::vector<SlotDef>& slots, const ArgCounts& counts,
                      const VarIds& args) {
  std::string text = "(";
  size_t begin = 0;
  for (size_t s = 0; s < counts.size(); ++s) {
    if (counts[s] == 0) continue;
    const auto ids = absl::MakeConstSpan(args).subspan(begin, counts[s]);
    begin += ids.size();
    const bool list = s >= slots.size() || (slots[s].flags & kVariadic) != 0;
    absl::StrAppend(&text, text.size() > 1 ? ", " : "", plan_print::SlotName(slots, s), "=",
                    list ? "[" : "", VarsText(plan, ids), list ? "]" : "");
  }
  return text += ')';
}

// "relu(X=a) -> (Out=b) op=2"
std::string CallText(const Plan& plan, const Instruction& instruction) {
  return absl::StrCat(
      instruction.op_type,
      SlotsText(plan, instruction.def->inputs, instruction.input_counts, instruction.inputs),
      " -> ",
      SlotsText(plan, instruction.def->outputs, instruction.output_counts, instruction.outputs),
      instruction.op_index < 0 ? " inserted" : absl::StrCat(" op=", instruction.op_index),
      instruction.sub_block < 0 ? "" : absl::StrCat(" runs=", instruction.sub_block), "\n");
}

// "#3 relu(X=a) -> (Out=b) op=2"
std::string HeadText(const Plan& plan, InstrId id) {
  return absl::StrCat("  #", id, " ", CallText(plan, plan.instructions[id]));
}

// "     after #3 raw x shrunk"; with devices how the order is kept: "run=event", and "issued" where
// `from` need not have completed.
std::string EdgeText(const Plan& plan, const Edge& edge) {
  std::string text = absl::StrCat("     after #", edge.from, " ", Name(edge.kind));
  if (edge.var >= 0) absl::StrAppend(&text, " ", VarText(plan, edge.var));
  if (edge.shrunk) text += " shrunk";
  if (UsesDevices(plan)) {
    absl::StrAppend(&text, edge.memory ? "" : " issued", edge.host_reads ? " host_reads" : "",
                    " run=", Name(edge.run_type));
  }
  return text += '\n';
}

// " block=2" but for the main block.
std::string BlockText(const Plan& plan) {
  return plan.block == 0 ? "" : absl::StrCat(" block=", plan.block);
}

std::string PrintDeps(const Plan& plan) {
  const auto shrunk = std::count_if(plan.edges.begin(), plan.edges.end(),
                                    [](const Edge& edge) { return edge.shrunk; });
  std::string text =
      absl::StrCat("deps", BlockText(plan), " instructions=", plan.instructions.size(),
                   " edges=", plan.edges.size(), " shrunk=", shrunk, "\n");
  auto edge = plan.edges.begin();
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    text += HeadText(plan, id);
    for (; edge != plan.edges.end() && edge->to == id; ++edge) {
      text += EdgeText(plan, *edge);
    }
  }
  return text;
}

std::string FeedText(const FeedSpec& feed) {
  return absl::StrCat(NameText(feed.name), " ", Name(feed.dtype), ToString(feed.shape),
                      feed.check_shape ? " check_feed" : "");
}

// "var y float32 rank=2 channels_last storage=x refs=1"
std::string PlanVarText(const Plan& plan, VarId id) {
  const PlanVar& var = plan.vars[id];
  std::string text = absl::StrCat("  var ", VarText(plan, id));
  if (var.kind != VarKind::kLodTensor) {
    const absl::string_view kind = Name(var.kind);
    absl::StrAppend(&text, " ", kind.empty() ? "unknown_kind" : kind);
  } else {
    absl::StrAppend(&text, " ", Name(var.dtype));
    if (var.rank >= 0) absl::StrAppend(&text, " rank=", var.rank);
    if (var.layout != Layout::kPlain) absl::StrAppend(&text, " ", Name(var.layout));
  }
  if (var.persistable) text += var.constant ? " constant" : " persistable";
  if (var.folded) text += " folded";
  if (!var.declared) text += " undeclared";
  if (!var.place.on_host()) absl::StrAppend(&text, " place=", Name(var.place));
  if (var.storage != id) absl::StrAppend(&text, " storage=", VarText(plan, var.storage));
  if (plan.ref_counts[id] > 0) absl::StrAppend(&text, " refs=", plan.ref_counts[id]);
  return text += '\n';
}

// What the kernel makes, where it is not plain tensors of its own dtype: "b:int64:channels_last".
std::string OutputsText(const Plan& plan, const Instruction& instruction) {
  std::string text;
  for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
    const DType dtype = instruction.output_dtypes[arg];
    const Layout layout = instruction.output_layouts[arg];
    if (dtype == instruction.dtype && layout == Layout::kPlain) continue;
    absl::StrAppend(&text, " makes=", VarText(plan, instruction.outputs[arg]), ":", Name(dtype),
                    layout == Layout::kPlain ? "" : absl::StrCat(":", Name(layout)));
  }
  return text;
}

// The dtype of the kernel; "any" for one that serves them all.
absl::string_view KernelText(const Instruction& instruction) {
  const DType dtype = instruction.def->kernels[instruction.kernel].dtype;
  return dtype == DType::kUndefined ? "any" : Name(dtype);
}

// "     after_events=[0, 2 previous_run] record=3"; nothing where there are none.
std::string EventsText(const Instruction& instruction) {
  if (instruction.waits.empty() && instruction.record < 0) return "";
  std::string text = "    ";
  if (!instruction.waits.empty()) {
    absl::StrAppend(&text, " after_events=[",
                    absl::StrJoin(instruction.waits, ", ",
                                  [](std::string* out, const EventWait& wait) {
                                    absl::StrAppend(out, wait.event,
                                                    wait.previous_run ? " previous_run" : "",
                                                    wait.blocks_host ? " blocks_host" : "");
                                  }),
                    "]");
  }
  if (instruction.record >= 0) absl::StrAppend(&text, " record=", instruction.record);
  return text += '\n';
}

std::string InstructionText(const Plan& plan, InstrId id) {
  const Instruction& instruction = plan.instructions[id];
  std::string text = HeadText(plan, id);
  absl::StrAppend(&text, "     kernel=", KernelText(instruction), OutputsText(plan, instruction));
  for (const InplacePair& pair : instruction.share) {
    absl::StrAppend(&text, IsView(instruction, pair) ? " view=" : " inplace=",
                    VarText(plan, instruction.inputs[pair.input]), "->",
                    VarText(plan, instruction.outputs[pair.output]));
  }
  if (instruction.dynamic_shape) text += " dynamic_shape";
  if (!instruction.place.on_host()) {
    absl::StrAppend(&text, " place=", Name(instruction.place));
  }
  absl::StrAppend(&text, " queue=", Name(instruction.queue), " stream=", instruction.stream,
                  " priority=", instruction.priority, "\n     waits=", plan.dep_counts[id],
                  " then=[", absl::StrJoin(plan.successors[id], ", "), "] counts=[",
                  VarsText(plan, plan.gc_check[id]), "] frees=[",
                  VarsText(plan, plan.frees_in_order[id]), "]\n");
  return text + EventsText(instruction);
}

// Streams, events and what fell back to the host; nothing for a plan of the host alone.
std::string DevicesText(const Plan& plan) {
  std::string text;
  for (const std::string& type : plan.fallbacks) absl::StrAppend(&text, "  fallback ", type, "\n");
  if (!UsesDevices(plan)) return text;
  for (size_t s = 0; s < plan.streams.size(); ++s) {
    absl::StrAppend(&text, "  stream ", s, " ",
                    plan_print::StreamText(plan, static_cast<int32_t>(s)),
                    " priority=", plan.streams[s].priority, "\n");
  }
  for (size_t e = 0; e < plan.events.size(); ++e) {
    absl::StrAppend(&text, "  event ", e, " of #", plan.events[e].recorder, "\n");
  }
  return text;
}

// "  graph 0 compute cuda:0 of #3 #4 #5", and what of the GPUs is in none: "  no_graph #2
// memcpy_h2d: uses memory of the host"; nothing for a plan without GPUs.
std::string GraphsText(const Plan& plan) {
  std::string text;
  const GraphOrder graphs = FindGraphs(plan);
  for (size_t g = 0; g < graphs.segments.size(); ++g) {
    const GraphSegment& segment = graphs.segments[g];
    absl::StrAppend(&text, "  graph ", g, " ", plan_print::StreamText(plan, segment.stream), " of");
    for (int32_t at = segment.begin; at < segment.end; ++at) {
      absl::StrAppend(&text, " #", graphs.order[at]);
    }
    text += '\n';
  }
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.place.kind != PlaceKind::kCuda) continue;
    const absl::string_view why = WhyInNoGraph(plan, instruction);
    if (why.empty()) continue;
    absl::StrAppend(&text, "  no_graph #", i, " ", instruction.op_type, ": ", why, "\n");
  }
  return text;
}

// The variables that the block shares with what runs it and with its gradient.
std::string SharedVariablesText(const Plan& plan) {
  std::string text;
  for (const VarId id : plan.entries) {
    absl::StrAppend(&text, "  entry ", VarText(plan, id), "\n");
  }
  for (const VarId id : plan.results) {
    absl::StrAppend(&text, "  result ", VarText(plan, id), "\n");
  }
  for (const SavedVar& saved : plan.saved) {
    absl::StrAppend(&text, "  saved ", VarText(plan, saved.var), saved.at_start ? " at start" : "",
                    "\n");
  }
  for (const VarId id : plan.inherited) {
    absl::StrAppend(&text, "  inherited ", VarText(plan, id), " from block ", plan.forward_block,
                    "\n");
  }
  for (const Capture& capture : plan.captures) {
    absl::StrAppend(&text, "  capture ", VarText(plan, capture.var), capture.read ? " read" : "",
                    capture.written ? " written" : "", "\n");
  }
  return text;
}

std::string PrintWhole(const Plan& plan) {
  std::string text =
      absl::StrCat("plan", BlockText(plan), " instructions=", plan.instructions.size(),
                   " edges=", plan.successors.num_ids(), " width=", plan.max_width,
                   " critical_path=", plan.critical_path, "\n");
  for (const FeedSpec& feed : plan.feeds) absl::StrAppend(&text, "  feed ", FeedText(feed), "\n");
  for (const std::string& fetch : plan.fetches) {
    absl::StrAppend(&text, "  fetch ", NameText(fetch), "\n");
  }
  text += DevicesText(plan);
  text += SharedVariablesText(plan);
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    text += PlanVarText(plan, static_cast<VarId>(id));
  }
  for (const Instruction& instruction : plan.folded) {
    absl::StrAppend(&text, "  folded ", CallText(plan, instruction));
  }
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    text += InstructionText(plan, static_cast<InstrId>(i));
  }
  absl::StrAppend(&text, "  order ", absl::StrJoin(plan.order, " "), "\n");
  if (plan.block == 0) text += GraphsText(plan);
  return text;
}

}  // namespace

std::string PrintPlan(const Plan& plan, PlanStage stage, PlanFormat format,
                      const Program* program) {
  return PrintPlans(absl::MakeConstSpan(&plan, 1), stage, format, program);
}

std::string PrintPlans(absl::Span<const Plan> plans, PlanStage stage, PlanFormat format,
                       const Program* program) {
  switch (format) {
    case PlanFormat::kJson:
      return plan_print::ToJson(plans, stage, program);
    case PlanFormat::kDot:
      return plan_print::ToDot(plans, stage);
    case PlanFormat::kText:
      break;
  }
  std::string text;
  for (const Plan* plan : plan_print::RunningPlans(plans)) {
    text += stage == PlanStage::kDeps ? PrintDeps(*plan) : PrintWhole(*plan);
  }
  return text;
}

}  // namespace interp
