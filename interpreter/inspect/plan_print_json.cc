#include <optional>

#include "core/base/json_writer.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "interpreter/analysis/graphs.h"
#include "interpreter/analysis/variable_table.h"
#include "interpreter/inspect/plan_print_internal.h"

namespace interp::plan_print {
namespace {

// Where attributes and declared dims come from, and how the former are written.
struct Source {
  const Program* program = nullptr;
  AttrForm attrs = AttrForm::kValues;
};

absl::string_view NameOf(const Plan& plan, VarId id) {
  return id < 0 ? kEmptyVarName : absl::string_view(plan.vars[id].name);
}

void WriteVars(JsonWriter& json, absl::string_view key, const Plan& plan,
               absl::Span<const VarId> ids) {
  json.Array(key, ids, [&](VarId id) { json.Value(NameOf(plan, id)); });
}

void WriteSlots(JsonWriter& json, absl::string_view key, const Plan& plan,
                const std::vector<SlotDef>& slots, const ArgCounts& counts, const VarIds& args) {
  json.Key(key);
  json.BeginObject();
  size_t begin = 0;
  for (size_t s = 0; s < counts.size(); ++s) {
    if (counts[s] == 0) continue;
    WriteVars(json, SlotName(slots, s), plan, absl::MakeConstSpan(args).subspan(begin, counts[s]));
    begin += static_cast<size_t>(counts[s]);
  }
  json.EndObject();
}

// Opens the object of an instruction and leaves it open; folded ones have no id.
void BeginInstruction(JsonWriter& json, const Plan& plan, const Instruction& instruction,
                      std::optional<InstrId> id) {
  json.Line();
  json.BeginObject();
  if (id.has_value()) json.Field("id", *id);
  json.Field("type", instruction.op_type);
  json.Field("op_index", instruction.op_index);
  if (instruction.sub_block >= 0) json.Field("runs", instruction.sub_block);
  WriteSlots(json, "inputs", plan, instruction.def->inputs, instruction.input_counts,
             instruction.inputs);
  WriteSlots(json, "outputs", plan, instruction.def->outputs, instruction.output_counts,
             instruction.outputs);
}

// The op an instruction was made of; null where it is not known.
const Op* OpOf(const Plan& plan, const Program& program, const Instruction& instruction) {
  if (instruction.op_index >= 0) return &program.blocks[plan.block].ops[instruction.op_index];
  return instruction.inserted_op >= 0 ? &plan.inserted_ops[instruction.inserted_op] : nullptr;
}

void WriteAttrsOf(JsonWriter& json, const Plan& plan, const Source& source,
                  const Instruction& instruction) {
  const Op* op = OpOf(plan, *source.program, instruction);
  if (op == nullptr) return;
  json.Key("attrs");
  if (source.attrs == AttrForm::kValues) return WriteAttrs(json, *op);
  json.BeginObject();
  for (const Attr& attr : op->attrs) {
    if (!IsProvenanceAttr(attr)) json.Field(attr.name, AttrValueText(attr.value));
  }
  json.EndObject();
}

// Of training programs: which part of a step the op is, where it is not the forward part.
void WritePart(JsonWriter& json, const Plan& plan, const Source& source,
               const Instruction& instruction) {
  const Op* op = OpOf(plan, *source.program, instruction);
  if (op == nullptr) return;
  const int32_t role = RoleOf(*op);
  if ((role & kBackwardRole) != 0) json.Field("part", "backward");
  if ((role & kOptimizeRole) != 0) json.Field("part", "update");
  if (role == kLearningRateRole) json.Field("part", "schedule");
}

void WriteShares(JsonWriter& json, const Plan& plan, const Instruction& instruction) {
  json.Objects("share", instruction.share, [&](const InplacePair& pair) {
    json.Field("input", NameOf(plan, instruction.inputs[pair.input]));
    json.Field("output", NameOf(plan, instruction.outputs[pair.output]));
    json.Field("kind", IsView(instruction, pair) ? "view" : "inplace");
  });
}

void WriteWaits(JsonWriter& json, const Instruction& instruction) {
  json.Objects("after_events", instruction.waits, [&](const EventWait& wait) {
    json.Field("event", wait.event);
    json.Field("previous_run", wait.previous_run);
    json.Field("blocks_host", wait.blocks_host);
  });
}

void WriteInstruction(JsonWriter& json, const Plan& plan, const Source& source, InstrId id) {
  const Instruction& instruction = plan.instructions[id];
  BeginInstruction(json, plan, instruction, id);
  const DType kernel = instruction.def->kernels[instruction.kernel].dtype;
  json.Field("kernel", kernel == DType::kUndefined ? "any" : Name(kernel));
  json.Field("dtype", Name(instruction.dtype));
  json.Array("output_dtypes", instruction.output_dtypes,
             [&](DType dtype) { json.Value(Name(dtype)); });
  json.Array("output_layouts", instruction.output_layouts,
             [&](Layout layout) { json.Value(Name(layout)); });
  WriteShares(json, plan, instruction);
  json.Field("dynamic_shape", instruction.dynamic_shape);
  json.Field("place", absl::string_view(Name(instruction.place)));
  json.Field("queue", Name(instruction.queue));
  json.Field("stream", instruction.stream);
  json.Field("priority", instruction.priority);
  WriteWaits(json, instruction);
  json.Field("record", instruction.record);
  json.Field("waits", plan.dep_counts[id]);
  json.Values("then", plan.successors[id]);
  WriteVars(json, "counts", plan, plan.gc_check[id]);
  WriteVars(json, "frees", plan, plan.frees_in_order[id]);
  if (source.program != nullptr) {
    WritePart(json, plan, source, instruction);
    WriteAttrsOf(json, plan, source, instruction);
  }
  json.EndObject();
}

// By VarId the dims that the block declares; null where it does not.
std::vector<const std::vector<int64_t>*> DeclaredDims(const Plan& plan, const Program* program) {
  std::vector<const std::vector<int64_t>*> dims(plan.vars.size(), nullptr);
  if (program == nullptr) return dims;
  for (const Var& var : program->blocks[plan.block].vars) {
    const VarId id = FindVar(plan, var.id);
    if (id >= 0) dims[id] = &var.dims;
  }
  return dims;
}

void WriteVar(JsonWriter& json, const Plan& plan, VarId id, const std::vector<int64_t>* dims) {
  const PlanVar& var = plan.vars[id];
  json.Line();
  json.BeginObject();
  json.Field("name", absl::string_view(var.name));
  json.Field("kind", Name(var.kind));
  json.Field("dtype", Name(var.dtype));
  json.Field("rank", var.rank);
  if (dims != nullptr) json.Values("dims", *dims);
  json.Field("layout", Name(var.layout));
  json.Field("declared", var.declared);
  json.Field("persistable", var.persistable);
  json.Field("constant", var.constant);
  if (var.folded) json.Field("folded", true);
  if (var.captured) json.Field("captured", true);
  json.Field("storage", NameOf(plan, var.storage));
  json.Field("place", absl::string_view(Name(var.place)));
  json.Field("refs", plan.ref_counts[id]);
  json.EndObject();
}

void WriteFeedsAndFetches(JsonWriter& json, const Plan& plan) {
  json.Objects("feeds", plan.feeds, [&](const FeedSpec& feed) {
    json.Field("name", absl::string_view(feed.name));
    json.Field("dtype", Name(feed.dtype));
    json.Values("shape", feed.shape.dims());
    json.Field("check_feed", feed.check_shape);
  });
  json.Values("fetches", plan.fetches);
}

void WriteStreams(JsonWriter& json, const Plan& plan) {
  json.Objects("streams", plan.streams, [&](const PlanStream& stream) {
    json.Field("name", absl::string_view(stream.name));
    json.Field("place", absl::string_view(Name(stream.place)));
    json.Field("priority", stream.priority);
  });
  json.Objects("events", plan.events,
               [&](const PlanEvent& event) { json.Field("recorder", event.recorder); });
  json.Values("fallbacks", plan.fallbacks);
}

void WriteGraphs(JsonWriter& json, const Plan& plan) {
  const GraphOrder graphs = FindGraphs(plan);
  json.Array("graphs", graphs.segments, [&](const GraphSegment& segment) {
    json.BeginArray();
    for (int32_t at = segment.begin; at < segment.end; ++at) json.Value(graphs.order[at]);
    json.EndArray();
  });
}

void WriteEdges(JsonWriter& json, const Plan& plan) {
  json.ObjectLines("edges", plan.edges, [&](const Edge& edge) {
    json.Field("from", edge.from);
    json.Field("to", edge.to);
    json.Field("kind", Name(edge.kind));
    json.Field("var", edge.var < 0 ? absl::string_view() : NameOf(plan, edge.var));
    json.Field("shrunk", edge.shrunk);
    json.Field("memory", edge.memory);
    json.Field("host_reads", edge.host_reads);
    json.Field("run_type", Name(edge.run_type));
  });
}

void WriteDeps(JsonWriter& json, const Plan& plan) {
  json.Key("instructions");
  json.BeginArray();
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    BeginInstruction(json, plan, plan.instructions[i], static_cast<InstrId>(i));
    json.EndObject();
  }
  json.EndArray();
  WriteEdges(json, plan);
}

void WriteFolded(JsonWriter& json, const Plan& plan, const Source& source) {
  json.Array("folded", plan.folded, [&](const Instruction& instruction) {
    BeginInstruction(json, plan, instruction, std::nullopt);
    if (source.program != nullptr) WriteAttrsOf(json, plan, source, instruction);
    json.EndObject();
  });
}

void WriteWhole(JsonWriter& json, const Plan& plan, const Source& source) {
  WriteFeedsAndFetches(json, plan);
  WriteStreams(json, plan);
  const auto dims = DeclaredDims(plan, source.program);
  json.Key("vars");
  json.BeginArray();
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    WriteVar(json, plan, static_cast<VarId>(id), dims[id]);
  }
  json.EndArray();
  if (!plan.folded.empty()) WriteFolded(json, plan, source);
  json.Key("instructions");
  json.BeginArray();
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    WriteInstruction(json, plan, source, static_cast<InstrId>(i));
  }
  json.EndArray();
  WriteEdges(json, plan);
  json.Values("order", plan.order);
  if (UsesGpus(plan)) WriteGraphs(json, plan);
  json.Field("width", plan.max_width);
  json.Field("critical_path", plan.critical_path);
}

}  // namespace

namespace {

void WriteCaptures(JsonWriter& json, const Plan& plan) {
  json.Objects("captures", plan.captures, [&](const Capture& capture) {
    json.Field("name", NameOf(plan, capture.var));
    json.Field("read", capture.read);
    json.Field("written", capture.written);
  });
  WriteVars(json, "entries", plan, plan.entries);
  WriteVars(json, "results", plan, plan.results);
  std::vector<VarId> saved;
  for (const SavedVar& var : plan.saved) saved.push_back(var.var);
  WriteVars(json, "saved", plan, saved);
  WriteVars(json, "inherited", plan, plan.inherited);
}

void WriteBlock(JsonWriter& json, const Plan& plan, PlanStage stage, const Source& source) {
  if (stage == PlanStage::kDeps) return WriteDeps(json, plan);
  WriteWhole(json, plan, source);
}

}  // namespace

void WriteStage(JsonWriter& json, absl::Span<const Plan> plans, PlanStage stage,
                const Program* program, AttrForm attrs) {
  const Source source{program, attrs};
  const std::vector<const Plan*> running = RunningPlans(plans);
  WriteBlock(json, *running[0], stage, source);
  if (running.size() == 1) return;
  json.ObjectLines("blocks", absl::MakeConstSpan(running).subspan(1), [&](const Plan* plan) {
    json.Field("block", plan->block);
    WriteCaptures(json, *plan);
    WriteBlock(json, *plan, stage, source);
  });
}

std::string ToJson(absl::Span<const Plan> plans, PlanStage stage, const Program* program) {
  JsonWriter json;
  json.BeginObject();
  WriteStage(json, plans, stage, program, AttrForm::kValues);
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace interp::plan_print
