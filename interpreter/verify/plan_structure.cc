// Long because it checks every field of a plan, each in one place.
#include "interpreter/verify/plan_structure.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace interp {
namespace {

// Work over a plan numbers several points of each instruction of two runs.
constexpr size_t kMaxInstructions = std::numeric_limits<int32_t>::max() / 8;

bool InRange(int32_t index, size_t size) {
  return index >= 0 && index < static_cast<int32_t>(size);
}
bool InRangeOrNone(int32_t index, size_t size) { return index == -1 || InRange(index, size); }

template <typename T>
absl::Status CheckSize(const T& values, size_t expected, absl::string_view name) {
  if (values.size() == expected) return absl::OkStatus();
  return InvalidArgument(name, " has ", values.size(), " entries, expected ", expected);
}

absl::Status CheckPlace(Place place) {
  if (place.index >= 0 && place.index < kMaxDevices) return absl::OkStatus();
  return InvalidArgument("a place has number ", place.index, ", expected 0 to ", kMaxDevices - 1);
}

// The arguments of one side against the slots of its definition; `hidden`: one more slot has the
// hidden arguments.
absl::Status CheckArguments(const std::vector<SlotDef>& slots, bool output, bool hidden,
                            const ArgCounts& counts, const VarIds& args, size_t num_vars) {
  INTERP_RETURN_IF_ERROR(
      CheckSize(counts, slots.size() + (hidden ? 1 : 0), "the list of argument counts"));
  size_t begin = 0;
  for (size_t s = 0; s < slots.size(); ++s) {
    const int32_t count = counts[s];
    if (count < 0 || static_cast<size_t>(count) > args.size() - begin) {
      return InvalidArgument("slot '", slots[s].name, "' has ", count, " of ", args.size(),
                             " arguments");
    }
    if (count > 1 && (slots[s].flags & kVariadic) == 0) {
      return InvalidArgument("slot '", slots[s].name, "' has ", count, " arguments, expected 1");
    }
    const auto first = args.begin() + static_cast<std::ptrdiff_t>(begin);
    const bool present = std::any_of(first, first + count, [](VarId id) { return id >= 0; });
    // An output that keeps its value is no argument, but has its place.
    const bool kept = output && count > 0;
    if (!present && !kept && (slots[s].flags & (kOptional | kOfSubBlock)) == 0) {
      return InvalidArgument("slot '", slots[s].name, "' has no argument");
    }
    begin += static_cast<size_t>(count);
  }
  if (hidden) {
    if (counts.back() < 0) return InvalidArgument("has ", counts.back(), " hidden arguments");
    begin += static_cast<size_t>(counts.back());
  }
  INTERP_RETURN_IF_ERROR(CheckSize(args, begin, "the list of arguments"));
  for (const VarId id : args) {
    if (!InRangeOrNone(id, num_vars)) {
      return InvalidArgument("argument ", id, " is none of ", num_vars, " variables");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckShares(const Instruction& instruction) {
  for (size_t p = 0; p < instruction.share.size(); ++p) {
    const InplacePair& pair = instruction.share[p];
    if (!InRange(pair.input, instruction.inputs.size()) ||
        !InRange(pair.output, instruction.outputs.size()) || instruction.inputs[pair.input] < 0 ||
        instruction.outputs[pair.output] < 0 || IsHiddenInput(instruction, pair.input) ||
        IsHiddenOutput(instruction, pair.output)) {
      return InvalidArgument("output argument ", pair.output, " cannot use the memory of input ",
                             pair.input, ": one of them is absent");
    }
    for (size_t other = 0; other < p; ++other) {
      if (instruction.share[other].output == pair.output) {
        return InvalidArgument("output argument ", pair.output, " uses the memory of two inputs");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKernel(const Instruction& instruction) {
  if (!InRange(instruction.kernel, instruction.def->kernels.size())) {
    return InvalidArgument("kernel ", instruction.kernel, " is none of ",
                           instruction.def->kernels.size());
  }
  if (instruction.def->kernels[instruction.kernel].run == nullptr) {
    return InvalidArgument("kernel ", instruction.kernel, " has no function");
  }
  if (instruction.def->parse != nullptr && instruction.attrs == nullptr) {
    return InvalidArgument("has no attributes");
  }
  return absl::OkStatus();
}

// Plans of the host alone may do without a list of streams.
absl::Status CheckStream(const Plan& plan, const Instruction& instruction) {
  INTERP_RETURN_IF_ERROR(CheckPlace(instruction.place));
  const bool on_host = instruction.place.on_host();
  if (on_host != (instruction.stream == 0) || on_host != (instruction.queue == QueueKind::kHost)) {
    return InvalidArgument("runs on ", Name(instruction.place), ", but in queue ",
                           Name(instruction.queue), " and on stream ", instruction.stream);
  }
  if (!on_host && !InRange(instruction.stream, plan.streams.size())) {
    return InvalidArgument("stream ", instruction.stream, " is none of ", plan.streams.size());
  }
  if (!on_host && plan.streams[instruction.stream].place != instruction.place) {
    return InvalidArgument("runs on ", Name(instruction.place), ", but its stream is of ",
                           Name(plan.streams[instruction.stream].place));
  }
  return absl::OkStatus();
}

absl::Status CheckEvents(const Plan& plan, const Instruction& instruction) {
  if (!InRangeOrNone(instruction.record, plan.events.size())) {
    return InvalidArgument("records event ", instruction.record, " of ", plan.events.size());
  }
  for (const EventWait& wait : instruction.waits) {
    if (!InRange(wait.event, plan.events.size())) {
      return InvalidArgument("waits for event ", wait.event, " of ", plan.events.size());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInstruction(const Plan& plan, const Instruction& instruction) {
  if (instruction.def == nullptr) return InvalidArgument("has no definition");
  const size_t num_vars = plan.vars.size();
  const OpDef& def = *instruction.def;
  const bool hidden = instruction.sub_block >= 0;
  if (hidden != (def.sub_block != nullptr)) {
    return InvalidArgument("runs block ", instruction.sub_block, ", which its op does not");
  }
  INTERP_RETURN_IF_ERROR(CheckArguments(def.inputs, /*output=*/false, hidden,
                                        instruction.input_counts, instruction.inputs, num_vars));
  INTERP_RETURN_IF_ERROR(CheckArguments(def.outputs, /*output=*/true, hidden,
                                        instruction.output_counts, instruction.outputs, num_vars));
  const size_t num_outputs = instruction.outputs.size();
  INTERP_RETURN_IF_ERROR(CheckSize(instruction.output_dtypes, num_outputs, "output_dtypes"));
  INTERP_RETURN_IF_ERROR(CheckSize(instruction.output_layouts, num_outputs, "output_layouts"));
  if (instruction.op_index < -1 ||
      !InRangeOrNone(instruction.inserted_op, plan.inserted_ops.size())) {
    return InvalidArgument("is op ", instruction.op_index, " or inserted op ",
                           instruction.inserted_op, " of ", plan.inserted_ops.size());
  }
  INTERP_RETURN_IF_ERROR(CheckShares(instruction));
  INTERP_RETURN_IF_ERROR(CheckKernel(instruction));
  INTERP_RETURN_IF_ERROR(CheckStream(plan, instruction));
  return CheckEvents(plan, instruction);
}

absl::Status CheckInstructions(const Plan& plan) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const absl::Status status = CheckInstruction(plan, plan.instructions[i]);
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("instruction #", i, " ", plan.instructions[i].op_type));
    }
  }
  return absl::OkStatus();
}

// Every constant that it reads is there by then, and it makes what nobody else writes.
absl::Status CheckFolded(const Plan& plan, const Instruction& instruction,
                         std::vector<bool>& made) {
  INTERP_RETURN_IF_ERROR(CheckInstruction(plan, instruction));
  if (!CanFold(instruction) || !instruction.place.on_host() || !instruction.waits.empty() ||
      instruction.record >= 0) {
    return InvalidArgument("is no op that runs once, on the host");
  }
  for (const InplacePair& pair : instruction.share) {
    if (!IsView(instruction, pair)) return InvalidArgument("writes over what it reads");
  }
  for (const VarId id : instruction.inputs) {
    if (id < 0) continue;
    const VarId source = plan.vars[id].copy_of >= 0 ? plan.vars[id].copy_of : id;
    if (plan.vars[id].constant && plan.vars[id].kind == VarKind::kLodTensor &&
        (!plan.vars[source].folded || made[source])) {
      continue;
    }
    return InvalidArgument("reads '", plan.vars[id].name, "', which is no constant by then");
  }
  for (const VarId id : instruction.outputs) {
    if (id < 0) continue;
    if (!plan.vars[id].folded || made[id]) {
      return InvalidArgument("writes '", plan.vars[id].name, "', which is not its own");
    }
    made[id] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckFolded(const Plan& plan) {
  std::vector<bool> made(plan.vars.size(), false);
  for (size_t i = 0; i < plan.folded.size(); ++i) {
    INTERP_RETURN_IF_ERROR(
        Annotate(CheckFolded(plan, plan.folded[i], made), absl::StrCat("folded instruction #", i)));
  }
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    const PlanVar& var = plan.vars[id];
    if (!var.folded && !made[id]) continue;
    if (made[id] && var.constant && !var.persistable && !var.captured) continue;
    return InvalidArgument("variable '", var.name, "' is folded, but nothing makes it so");
  }
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (const VarId id : plan.instructions[i].outputs) {
      if (id < 0 || !plan.vars[id].folded) continue;
      return InvalidArgument("instruction #", i, " ", plan.instructions[i].op_type, " writes '",
                             plan.vars[id].name, "', which is folded");
    }
  }
  return absl::OkStatus();
}

// The variables that the block shares with what runs it and with its gradient.
absl::Status CheckSharedVariables(const Plan& plan) {
  const size_t num_vars = plan.vars.size();
  for (const Capture& capture : plan.captures) {
    if (!InRange(capture.var, num_vars) || !plan.vars[capture.var].captured) {
      return InvalidArgument("variable ", capture.var, " of ", num_vars, " is no capture");
    }
  }
  INTERP_RETURN_IF_ERROR(CheckSize(plan.entry_args, plan.entries.size(), "entry_args"));
  for (const std::vector<VarId>* list : {&plan.entries, &plan.results}) {
    for (const VarId id : *list) {
      if (!InRange(id, num_vars) || plan.vars[id].captured) {
        return InvalidArgument("variable ", id, " of ", num_vars, " is no entry or result");
      }
    }
  }
  for (const SavedVar& saved : plan.saved) {
    if (!InRange(saved.var, num_vars) || plan.vars[saved.var].captured != saved.at_start ||
        plan.vars[saved.var].persistable) {
      return InvalidArgument("variable ", saved.var, " of ", num_vars,
                             " is nothing that a gradient could take");
    }
  }
  for (const VarId id : plan.inherited) {
    if (!InRange(id, num_vars) || plan.vars[id].captured || plan.vars[id].persistable) {
      return InvalidArgument("variable ", id, " of ", num_vars, " is none of the block's own");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVariables(const Plan& plan) {
  const size_t num_vars = plan.vars.size();
  for (const PlanVar& var : plan.vars) {
    if (!InRange(var.storage, num_vars) || !InRangeOrNone(var.copy_of, num_vars) || var.rank < -1) {
      return InvalidArgument("variable '", var.name, "' has storage ", var.storage, ", rank ",
                             var.rank, " and is a copy of ", var.copy_of);
    }
    INTERP_RETURN_IF_ERROR(
        Annotate(CheckPlace(var.place), absl::StrCat("variable '", var.name, "'")));
  }
  INTERP_RETURN_IF_ERROR(CheckSharedVariables(plan));
  if (plan.num_program_vars < 0 || static_cast<size_t>(plan.num_program_vars) > num_vars) {
    return InvalidArgument(plan.num_program_vars, " variables of the program among ", num_vars);
  }
  if (!InRangeOrNone(plan.feed_list, num_vars) || !InRangeOrNone(plan.fetch_list, num_vars)) {
    return InvalidArgument("the lists of feeds and fetches are variables ", plan.feed_list, " and ",
                           plan.fetch_list, " of ", num_vars);
  }
  return absl::OkStatus();
}

absl::Status CheckStreamsAndEvents(const Plan& plan) {
  if (!plan.streams.empty() && !plan.streams[0].place.on_host()) {
    return InvalidArgument("stream 0 is of ", Name(plan.streams[0].place), ", expected the host");
  }
  for (const PlanStream& stream : plan.streams) INTERP_RETURN_IF_ERROR(CheckPlace(stream.place));
  for (const PlanEvent& event : plan.events) {
    if (!InRange(event.recorder, plan.instructions.size())) {
      return InvalidArgument("an event is recorded by instruction ", event.recorder, " of ",
                             plan.instructions.size());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEdges(const Plan& plan) {
  const size_t n = plan.instructions.size();
  for (size_t e = 0; e < plan.edges.size(); ++e) {
    const Edge& edge = plan.edges[e];
    if (!InRange(edge.from, n) || !InRange(edge.to, n) || edge.from >= edge.to ||
        !InRangeOrNone(edge.var, plan.vars.size())) {
      return InvalidArgument("an edge over variable ", edge.var, " leads from instruction ",
                             edge.from, " to ", edge.to, " of ", n);
    }
    if (e == 0) continue;
    const Edge& before = plan.edges[e - 1];
    if (std::make_pair(before.to, before.from) >= std::make_pair(edge.to, edge.from)) {
      return InvalidArgument("edges are not sorted at number ", e);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLists(const IdLists& lists, size_t expected, size_t num_ids,
                        absl::string_view name) {
  INTERP_RETURN_IF_ERROR(CheckSize(lists.begins, expected + 1, name));
  if (lists.begins[0] != 0 || static_cast<size_t>(lists.begins[expected]) != lists.ids.size() ||
      !std::is_sorted(lists.begins.begin(), lists.begins.end())) {
    return InvalidArgument(name, " is not cut into one part an instruction");
  }
  for (const int32_t id : lists.ids) {
    if (!InRange(id, num_ids)) return InvalidArgument(name, " has ", id, " of ", num_ids);
  }
  return absl::OkStatus();
}

absl::Status CheckSuccessors(const Plan& plan) {
  const size_t n = plan.instructions.size();
  INTERP_RETURN_IF_ERROR(CheckLists(plan.successors, n, n, "the list of successors"));
  for (size_t i = 0; i < n; ++i) {
    auto before = static_cast<InstrId>(i);
    for (const InstrId to : plan.successors[static_cast<InstrId>(i)]) {
      if (to <= before) {
        return InvalidArgument("instruction #", i, " is followed by ", to,
                               ": expected later ones, sorted, of ", n);
      }
      before = to;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(const Plan& plan) {
  const size_t n = plan.instructions.size();
  INTERP_RETURN_IF_ERROR(CheckSize(plan.order, n, "order"));
  std::vector<bool> seen(n, false);
  for (const InstrId id : plan.order) {
    if (!InRange(id, n) || seen[id]) {
      return InvalidArgument("order has instruction ", id, " of ", n, " twice or wrongly");
    }
    seen[id] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(const std::vector<int32_t>& counts, size_t expected,
                         absl::string_view name) {
  INTERP_RETURN_IF_ERROR(CheckSize(counts, expected, name));
  for (const int32_t count : counts) {
    if (count < 0) return InvalidArgument(name, " has a count of ", count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlanStructure(const Plan& plan) {
  if (plan.instructions.size() > kMaxInstructions || plan.vars.size() > kMaxInstructions) {
    return InvalidArgument("too large: ", plan.instructions.size(), " instructions and ",
                           plan.vars.size(), " variables");
  }
  INTERP_RETURN_IF_ERROR(CheckVariables(plan));
  INTERP_RETURN_IF_ERROR(CheckStreamsAndEvents(plan));
  INTERP_RETURN_IF_ERROR(CheckInstructions(plan));
  INTERP_RETURN_IF_ERROR(CheckFolded(plan));
  INTERP_RETURN_IF_ERROR(CheckEdges(plan));
  INTERP_RETURN_IF_ERROR(CheckSuccessors(plan));
  INTERP_RETURN_IF_ERROR(CheckCounts(plan.dep_counts, plan.instructions.size(), "dep_counts"));
  INTERP_RETURN_IF_ERROR(CheckOrder(plan));
  INTERP_RETURN_IF_ERROR(CheckCounts(plan.ref_counts, plan.vars.size(), "ref_counts"));
  const size_t n = plan.instructions.size();
  INTERP_RETURN_IF_ERROR(CheckLists(plan.gc_check, n, plan.vars.size(), "gc_check"));
  return CheckLists(plan.frees_in_order, n, plan.vars.size(), "frees_in_order");
}

namespace {

// An instruction against the plan of the block that it runs.
absl::Status CheckSubBlock(absl::Span<const Plan> plans, const Plan& outer,
                           const Instruction& instruction, std::vector<bool>& runs) {
  const int32_t block = instruction.sub_block;
  if (!InRange(block, plans.size()) || runs[block]) {
    return InvalidArgument("runs block ", block, " of ", plans.size(), ", or is not the only one");
  }
  runs[block] = true;
  const Plan& inner = plans[block];
  const auto read = std::count_if(inner.captures.begin(), inner.captures.end(),
                                  [](const Capture& capture) { return capture.read; });
  const auto written = std::count_if(inner.captures.begin(), inner.captures.end(),
                                     [](const Capture& capture) { return capture.written; });
  if (read != instruction.input_counts.back() || written != instruction.output_counts.back()) {
    return InvalidArgument("has ", instruction.input_counts.back(), " and ",
                           instruction.output_counts.back(), " hidden arguments, but block ", block,
                           " reads ", read, " variables and writes ", written);
  }
  for (const int32_t arg : inner.entry_args) {
    if (!InRange(arg, instruction.inputs.size()) || instruction.inputs[arg] < 0) {
      return InvalidArgument("an entry of block ", block, " is like argument ", arg);
    }
  }
  absl::Status status;
  ForEachCapture(instruction, inner, [&](VarId outer_var, VarId inner_var) {
    if (!InRange(inner_var, inner.vars.size())) {
      status = InvalidArgument("block ", block, " captures variable ", inner_var);
      return;
    }
    const PlanVar& var = inner.vars[inner_var];
    if (outer_var >= 0 && outer.vars[outer_var].kind == var.kind &&
        outer.vars[outer_var].place == var.place && var.layout == Layout::kPlain) {
      return;
    }
    status = InvalidArgument("what block ", block, " knows as '", var.name,
                             "' is another variable here");
  });
  return status;
}

// A gradient against the block whose values it takes.
absl::Status CheckInherited(absl::Span<const Plan> plans, const Plan& plan) {
  if (plan.forward_block < 0 && plan.inherited.empty()) return absl::OkStatus();
  if (!InRange(plan.forward_block, plans.size()) || plan.forward_block == plan.block) {
    return InvalidArgument("is the gradient of block ", plan.forward_block, " of ", plans.size());
  }
  const Plan& forward = plans[plan.forward_block];
  if (forward.gradient_block != plan.block) {
    return InvalidArgument("is the gradient of block ", forward.block, ", whose gradient is block ",
                           forward.gradient_block);
  }
  INTERP_RETURN_IF_ERROR(CheckSize(plan.inherited, forward.saved.size(), "inherited"));
  for (size_t i = 0; i < plan.inherited.size(); ++i) {
    const VarId left = forward.saved[i].var;
    if (!InRange(left, forward.vars.size())) return InvalidArgument("block saves variable ", left);
    const PlanVar& from = forward.vars[left];
    const PlanVar& to = plan.vars[plan.inherited[i]];
    if (from.kind == to.kind && from.place == to.place && from.settled && to.settled) continue;
    if (from.kind == to.kind && from.kind != VarKind::kLodTensor) continue;
    return InvalidArgument("what block ", forward.block, " leaves as '", from.name,
                           "' is another variable here");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlansStructure(absl::Span<const Plan> plans) {
  if (plans.empty()) return InvalidArgument("there is no plan");
  std::vector<bool> runs(plans.size(), false);
  runs[0] = true;
  std::vector<int32_t> open = {0};
  while (!open.empty()) {
    const Plan& plan = plans[open.back()];
    const int32_t block = open.back();
    open.pop_back();
    absl::Status status = plan.block == block
                              ? CheckPlanStructure(plan)
                              : InvalidArgument("is said to be of block ", plan.block);
    if (status.ok()) status = CheckInherited(plans, plan);
    for (size_t i = 0; status.ok() && i < plan.instructions.size(); ++i) {
      if (plan.instructions[i].sub_block < 0) continue;
      status = Annotate(CheckSubBlock(plans, plan, plan.instructions[i], runs),
                        absl::StrCat("instruction #", i, " ", plan.instructions[i].op_type));
      open.push_back(plan.instructions[i].sub_block);
    }
    if (!status.ok()) return Annotate(status, absl::StrCat("the plan of block ", block));
  }
  return absl::OkStatus();
}

}  // namespace interp
