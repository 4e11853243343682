#include "core/json_writer.h"
#include "core/program_print.h"
#include "interpreter/analysis/storage.h"
#include "interpreter/plan_print_internal.h"

namespace interp::plan_print {
namespace {

absl::string_view NameOf(const Plan& plan, VarId id) {
  return id < 0 ? kEmptyVarName : absl::string_view(plan.vars[id].name);
}

template <typename T>
void WriteNumbers(JsonWriter& json, absl::string_view key, const T& numbers) {
  json.Key(key);
  json.BeginArray();
  for (const auto number : numbers) json.Value(number);
  json.EndArray();
}

void WriteVars(JsonWriter& json, absl::string_view key, const Plan& plan,
               absl::Span<const VarId> ids) {
  json.Key(key);
  json.BeginArray();
  for (const VarId id : ids) json.Value(NameOf(plan, id));
  json.EndArray();
}

void WriteSlots(JsonWriter& json, absl::string_view key, const Plan& plan,
                const std::vector<SlotDef>& slots, const std::vector<int32_t>& counts,
                const std::vector<VarId>& args) {
  json.Key(key);
  json.BeginObject();
  size_t begin = 0;
  for (size_t s = 0; s < counts.size(); ++s) {
    if (counts[s] == 0) continue;
    WriteVars(json, slots[s].name, plan, absl::MakeConstSpan(args).subspan(begin, counts[s]));
    begin += static_cast<size_t>(counts[s]);
  }
  json.EndObject();
}

// Opens the object of an instruction and leaves it open.
void BeginInstruction(JsonWriter& json, const Plan& plan, InstrId id) {
  const Instruction& instruction = plan.instructions[id];
  json.Line();
  json.BeginObject();
  json.Field("id", id);
  json.Field("type", absl::string_view(instruction.op_type));
  json.Field("op_index", instruction.op_index);
  WriteSlots(json, "inputs", plan, instruction.def->inputs, instruction.input_counts,
             instruction.inputs);
  WriteSlots(json, "outputs", plan, instruction.def->outputs, instruction.output_counts,
             instruction.outputs);
}

void WriteShares(JsonWriter& json, const Plan& plan, const Instruction& instruction) {
  json.Key("share");
  json.BeginArray();
  for (const InplacePair& pair : instruction.share) {
    json.BeginObject();
    json.Field("input", NameOf(plan, instruction.inputs[pair.input]));
    json.Field("output", NameOf(plan, instruction.outputs[pair.output]));
    json.Field("kind", IsView(instruction, pair) ? "view" : "inplace");
    json.EndObject();
  }
  json.EndArray();
}

void WriteInstruction(JsonWriter& json, const Plan& plan, InstrId id) {
  const Instruction& instruction = plan.instructions[id];
  BeginInstruction(json, plan, id);
  const DType kernel = instruction.def->kernels[instruction.kernel].dtype;
  json.Field("kernel", kernel == DType::kUndefined ? "any" : Name(kernel));
  json.Field("dtype", Name(instruction.dtype));
  json.Key("output_dtypes");
  json.BeginArray();
  for (const DType dtype : instruction.output_dtypes) json.Value(Name(dtype));
  json.EndArray();
  json.Key("output_layouts");
  json.BeginArray();
  for (const Layout layout : instruction.output_layouts) json.Value(Name(layout));
  json.EndArray();
  WriteShares(json, plan, instruction);
  json.Field("dynamic_shape", instruction.dynamic_shape);
  json.Field("queue", Name(instruction.queue));
  json.Field("stream", instruction.stream);
  json.Field("priority", instruction.priority);
  json.Field("waits", plan.dep_counts[id]);
  WriteNumbers(json, "then", plan.successors[id]);
  WriteVars(json, "counts", plan, plan.gc_check[id]);
  WriteVars(json, "frees", plan, plan.frees_in_order[id]);
  json.EndObject();
}

void WriteVar(JsonWriter& json, const Plan& plan, VarId id) {
  const PlanVar& var = plan.vars[id];
  json.Line();
  json.BeginObject();
  json.Field("name", absl::string_view(var.name));
  json.Field("kind", Name(var.kind));
  json.Field("dtype", Name(var.dtype));
  json.Field("rank", var.rank);
  json.Field("layout", Name(var.layout));
  json.Field("declared", var.declared);
  json.Field("persistable", var.persistable);
  json.Field("constant", var.constant);
  json.Field("storage", NameOf(plan, var.storage));
  json.Field("refs", plan.ref_counts[id]);
  json.EndObject();
}

void WriteFeedsAndFetches(JsonWriter& json, const Plan& plan) {
  json.Key("feeds");
  json.BeginArray();
  for (const FeedSpec& feed : plan.feeds) {
    json.BeginObject();
    json.Field("name", absl::string_view(feed.name));
    json.Field("dtype", Name(feed.dtype));
    WriteNumbers(json, "shape", feed.shape.dims());
    json.Field("check_feed", feed.check_shape);
    json.EndObject();
  }
  json.EndArray();
  json.Key("fetches");
  json.BeginArray();
  for (const std::string& fetch : plan.fetches) json.Value(absl::string_view(fetch));
  json.EndArray();
}

void WriteDeps(JsonWriter& json, const Plan& plan) {
  json.Key("instructions");
  json.BeginArray();
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    BeginInstruction(json, plan, static_cast<InstrId>(i));
    json.EndObject();
  }
  json.EndArray();
  json.Key("edges");
  json.BeginArray();
  for (const Edge& edge : plan.edges) {
    json.Line();
    json.BeginObject();
    json.Field("from", edge.from);
    json.Field("to", edge.to);
    json.Field("kind", Name(edge.kind));
    json.Field("var", edge.var < 0 ? absl::string_view() : NameOf(plan, edge.var));
    json.Field("shrunk", edge.shrunk);
    json.EndObject();
  }
  json.EndArray();
}

void WriteWhole(JsonWriter& json, const Plan& plan) {
  WriteFeedsAndFetches(json, plan);
  json.Key("vars");
  json.BeginArray();
  for (size_t id = 0; id < plan.vars.size(); ++id) WriteVar(json, plan, static_cast<VarId>(id));
  json.EndArray();
  json.Key("instructions");
  json.BeginArray();
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    WriteInstruction(json, plan, static_cast<InstrId>(i));
  }
  json.EndArray();
  WriteNumbers(json, "order", plan.order);
  json.Field("width", plan.max_width);
  json.Field("critical_path", plan.critical_path);
}

}  // namespace

std::string ToJson(const Plan& plan, PlanStage stage) {
  JsonWriter json;
  json.BeginObject();
  if (stage == PlanStage::kDeps) {
    WriteDeps(json, plan);
  } else {
    WriteWhole(json, plan);
  }
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace interp::plan_print
