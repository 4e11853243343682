#include "interpreter/inspect/program_html.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/json_writer.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "core/sub_blocks.h"
#include "interpreter/inspect/pages.h"
#include "passes/feed_fetch.h"

namespace interp {
namespace {

// A constant of a million numbers is no attribute that anybody reads.
constexpr size_t kMaxAttrText = 16 * 1024;

// Distinct texts by index, in the order of their first use.
class Table {
 public:
  size_t IndexOf(const std::string& text) {
    const auto [it, added] = indices_.try_emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return it->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, size_t> indices_;
};

// What is written while blocks are, and stands beside them.
struct Tables {
  Table strings;
  Table attrs;  // whole lists as JSON
};

std::string TypeText(const Var& var) {
  const bool tensor = var.dtype != DType::kUndefined || !var.dims.empty();
  const std::string kind = var.kind == VarKind::kLodTensor ? "" : std::string(Name(var.kind));
  if (!tensor) return var.kind == VarKind::kLodTensor ? "unknown" : kind;
  const std::string type = absl::StrCat(Name(var.dtype), "[", absl::StrJoin(var.dims, ","), "]");
  return kind.empty() ? type : absl::StrCat(kind, " of ", type);
}

int FlagsOf(const Var& var) {
  return (var.persistable ? 1 : 0) | (var.is_parameter ? 2 : 0) | (var.need_check_feed ? 4 : 0) |
         (var.stop_gradient ? 8 : 0);
}

void WriteVar(JsonWriter& json, const Program& program, const Var& var, Tables& tables) {
  json.Line();
  json.BeginArray();
  json.Value(tables.strings.IndexOf(NameForDump(program, var.id)));
  json.Value(tables.strings.IndexOf(TypeText(var)));
  json.Value(FlagsOf(var));
  json.Value(var.lod_level);
  json.EndArray();
}

std::string AttrText(const AttrValue& value) {
  std::string text = AttrValueText(value);
  if (text.size() <= kMaxAttrText) return text;
  const size_t length = text.size();
  text.resize(kMaxAttrText);
  return absl::StrCat(text, " ... cut, ", length, " characters");
}

std::string AttrsJson(const Op& op, Table& strings) {
  JsonWriter json;
  json.BeginArray();
  for (const Attr& attr : op.attrs) {
    if (IsProvenanceAttr(attr)) continue;
    json.BeginArray();
    json.Value(strings.IndexOf(attr.name));
    json.Value(AttrText(attr.value));
    json.EndArray();
  }
  json.EndArray();
  return std::move(json).Take();
}

void WriteSlots(JsonWriter& json, absl::string_view key, const Program& program,
                const std::vector<Slot>& slots, Table& strings) {
  if (slots.empty()) return;
  json.Array(key, slots, [&](const Slot& slot) {
    json.BeginArray();
    json.Value(strings.IndexOf(slot.name));
    for (const VarId id : slot.args) json.Value(strings.IndexOf(NameForDump(program, id)));
    json.EndArray();
  });
}

absl::string_view PartOf(const Op& op) {
  const int32_t role = RoleOf(op);
  if (role == kLearningRateRole) return "schedule";
  if ((role & kOptimizeRole) != 0) return "update";
  return (role & kBackwardRole) != 0 ? "backward" : "forward";
}

// The argument at a position among those of all slots; empty for a position that is none.
std::string ArgumentAt(const Program& program, const std::vector<Slot>& slots, int32_t position) {
  if (position < 0) return "";
  auto left = static_cast<size_t>(position);
  for (const Slot& slot : slots) {
    if (left < slot.args.size()) return NameForDump(program, slot.args[left]);
    left -= slot.args.size();
  }
  return "";
}

void WriteInplace(JsonWriter& json, const Program& program, const Op& op, Table& strings) {
  if (op.inplace.empty()) return;
  json.Array("inplace", op.inplace, [&](const InplacePair& pair) {
    json.BeginArray();
    json.Value(strings.IndexOf(ArgumentAt(program, op.inputs, pair.input)));
    json.Value(strings.IndexOf(ArgumentAt(program, op.outputs, pair.output)));
    json.EndArray();
  });
}

void WriteOp(JsonWriter& json, const Program& program, const Op& op, Tables& tables) {
  json.Line();
  json.BeginObject();
  json.Field("type", tables.strings.IndexOf(op.type));
  json.Field("attrs", tables.attrs.IndexOf(AttrsJson(op, tables.strings)));
  if (PartOf(op) != "forward") json.Field("part", PartOf(op));
  WriteSlots(json, "in", program, op.inputs, tables.strings);
  WriteSlots(json, "out", program, op.outputs, tables.strings);
  std::vector<int32_t> blocks;
  ForEachSubBlock(op, [&](int32_t block) { blocks.push_back(block); });
  if (!blocks.empty()) json.Values("blocks", blocks);
  WriteInplace(json, program, op, tables.strings);
  json.EndObject();
}

void WriteBlock(JsonWriter& json, const Program& program, const Block& block, Tables& tables) {
  json.BeginObject();
  json.Field("parent", block.parent_idx);
  json.Field("forward", block.forward_block_idx);
  json.Array("vars", block.vars, [&](const Var& var) { WriteVar(json, program, var, tables); });
  json.Array("ops", block.ops, [&](const Op& op) { WriteOp(json, program, op, tables); });
  json.EndObject();
}

// `ids`: an error, of a program that is damaged, gives an empty list.
void WriteNames(JsonWriter& json, absl::string_view key, const Program& program,
                const absl::StatusOr<std::vector<VarId>>& ids, Table& strings) {
  json.Key(key);
  json.BeginArray();
  if (ids.ok()) {
    for (const VarId id : *ids) json.Value(strings.IndexOf(NameForDump(program, id)));
  }
  json.EndArray();
}

void WriteStatistics(JsonWriter& json, const TensorStatistics& statistics) {
  json.BeginObject();
  json.Field("type", absl::string_view(statistics.type));
  json.Field("count", statistics.count);
  json.Field("zeros", statistics.num_zero);
  json.Field("nan", statistics.num_nan);
  json.Field("infinite", statistics.num_infinite);
  json.Field("min", statistics.min);
  json.Field("max", statistics.max);
  json.Field("mean", statistics.mean);
  json.Field("deviation", statistics.deviation);
  json.Values("histogram", statistics.histogram);
  json.EndObject();
}

void WriteFacts(JsonWriter& json, const ProgramPage& page) {
  json.Key("facts");
  json.BeginArray();
  for (const auto& [name, text] : page.facts) {
    json.BeginArray();
    json.Value(absl::string_view(name));
    json.Value(absl::string_view(text));
    json.EndArray();
  }
  json.EndArray();
  json.Key("statistics");
  json.BeginObject();
  for (const auto& [name, statistics] : page.statistics) {
    json.Line();
    json.Key(name);
    WriteStatistics(json, statistics);
  }
  json.EndObject();
}

// The lists are JSON already, which JsonWriter does not take: so they are joined by hand.
std::string WithAttrs(std::string object, const Table& attrs) {
  object.pop_back();
  return absl::StrCat(object, ",\"attrs\":[", absl::StrJoin(attrs.texts(), ",\n"), "]}");
}

}  // namespace

std::string ToHtml(const Program& program, const ProgramPage& page) {
  Tables tables;
  JsonWriter json;
  json.BeginObject();
  json.Field("title", absl::string_view(page.title));
  WriteFacts(json, page);
  WriteNames(json, "inputs", program, FeedVars(program), tables.strings);
  WriteNames(json, "outputs", program, FetchVars(program), tables.strings);
  json.Array("blocks", program.blocks,
             [&](const Block& block) { WriteBlock(json, program, block, tables); });
  json.Values("strings", tables.strings.texts());
  json.EndObject();
  return pages::FillPage(pages::kProgramView, WithAttrs(std::move(json).Take(), tables.attrs));
}

}  // namespace interp
