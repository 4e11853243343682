#include "core/base/json_writer.h"
#include "core/program_print.h"

namespace interp {
namespace {

void Write(JsonWriter& json, int32_t v) { json.Value(v); }
void Write(JsonWriter& json, int64_t v) { json.Value(v); }
void Write(JsonWriter& json, bool v) { json.Value(v); }
void Write(JsonWriter& json, float v) { json.Value(v); }
void Write(JsonWriter& json, double v) { json.Value(v); }
void Write(JsonWriter& json, const std::string& v) { json.Value(absl::string_view(v)); }
void Write(JsonWriter& json, BlockIndex v) { json.Value(v.index); }
void Write(JsonWriter& json, const VarName& v) { json.Value(absl::string_view(v.name)); }
void Write(JsonWriter& json, const Complex& v) {
  json.BeginArray();
  json.Value(v.real);
  json.Value(v.imag);
  json.EndArray();
}
void Write(JsonWriter& json, const Scalar& v) {
  std::visit([&json](const auto& held) { Write(json, held); }, v.value);
}
template <typename T>
void Write(JsonWriter& json, const std::vector<T>& items) {
  json.BeginArray();
  for (size_t i = 0; i < items.size(); ++i) Write(json, T(items[i]));
  json.EndArray();
}
void Write(JsonWriter& json, const BlockIndices& v) { Write(json, v.indices); }
void Write(JsonWriter& json, const VarNames& v) { Write(json, v.names); }

void WriteVar(JsonWriter& json, const Program& program, const Var& var) {
  json.BeginObject();
  json.Field("name", absl::string_view(NameForDump(program, var.id)));
  json.Field("kind", Name(var.kind));
  json.Field("dtype", Name(var.dtype));
  json.Key("dims");
  Write(json, var.dims);
  json.Field("lod_level", var.lod_level);
  json.Field("persistable", var.persistable);
  json.Field("is_parameter", var.is_parameter);
  json.Field("need_check_feed", var.need_check_feed);
  json.Field("stop_gradient", var.stop_gradient);
  json.EndObject();
}

void WriteSlots(JsonWriter& json, const Program& program, const std::vector<Slot>& slots) {
  json.BeginObject();
  for (const Slot& slot : slots) {
    json.Array(slot.name, slot.args,
               [&](VarId id) { json.Value(absl::string_view(NameForDump(program, id))); });
  }
  json.EndObject();
}

void WriteOp(JsonWriter& json, const Program& program, const Op& op) {
  json.BeginObject();
  json.Field("type", absl::string_view(op.type));
  json.Key("inputs");
  WriteSlots(json, program, op.inputs);
  json.Key("outputs");
  WriteSlots(json, program, op.outputs);
  json.Key("attrs");
  WriteAttrs(json, op);
  json.Objects("inplace", op.inplace, [&](const InplacePair& pair) {
    json.Field("input", pair.input);
    json.Field("output", pair.output);
  });
  json.EndObject();
}

void WriteBlock(JsonWriter& json, const Program& program, const Block& block) {
  json.BeginObject();
  json.Field("idx", block.idx);
  json.Field("parent", block.parent_idx);
  json.Field("forward", block.forward_block_idx);
  json.Array("vars", block.vars, [&](const Var& var) {
    json.Line();
    WriteVar(json, program, var);
  });
  json.Array("ops", block.ops, [&](const Op& op) {
    json.Line();
    WriteOp(json, program, op);
  });
  json.EndObject();
}

}  // namespace

void WriteAttrs(JsonWriter& json, const Op& op) {
  json.BeginObject();
  for (const Attr& attr : op.attrs) {
    if (IsProvenanceAttr(attr)) continue;
    json.Key(attr.name);
    std::visit([&json](const auto& v) { Write(json, v); }, attr.value);
  }
  json.EndObject();
}

std::string ToJson(const Program& program) {
  JsonWriter json;
  json.BeginObject();
  json.Field("version", program.version);
  json.Array("blocks", program.blocks, [&](const Block& block) {
    json.Line();
    WriteBlock(json, program, block);
  });
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace interp
