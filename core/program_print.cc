#include "core/program_print.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/number_text.h"
#include "core/op_role.h"

namespace interp {
namespace {

constexpr std::pair<VarKind, absl::string_view> kKinds[] = {
    {VarKind::kLodTensor, "lod_tensor"},
    {VarKind::kSelectedRows, "selected_rows"},
    {VarKind::kFeedMinibatch, "feed_minibatch"},
    {VarKind::kFetchList, "fetch_list"},
    {VarKind::kStepScopes, "step_scopes"},
    {VarKind::kLodRankTable, "lod_rank_table"},
    {VarKind::kLodTensorArray, "lod_tensor_array"},
    {VarKind::kPlaceList, "place_list"},
    {VarKind::kReader, "reader"},
    {VarKind::kRaw, "raw"},
    {VarKind::kTuple, "tuple"},
    {VarKind::kString, "string"},
    {VarKind::kStrings, "strings"},
    {VarKind::kVocab, "vocab"},
    {VarKind::kFeedList, "feed_list"},
    {VarKind::kSparseCoo, "sparse_coo"},
    {VarKind::kSparseCsr, "sparse_csr"},
};

constexpr std::array<absl::string_view, std::variant_size_v<AttrVariant>> kPrefixes = {
    "int",  "float",  "string", "ints",     "floats", "strings", "bool",    "bools",  "block",
    "long", "blocks", "longs",  "float64s", "var",    "vars",    "float64", "scalar", "scalars"};

std::string VarNameText(const Program& program, VarId id) {
  return NameText(NameForDump(program, id));
}

std::string StringText(absl::string_view text) {
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(text), "\"");
}

// The text of one element, by type.
std::string ItemText(int32_t v) { return absl::StrCat(v); }
std::string ItemText(int64_t v) { return absl::StrCat(v); }
std::string ItemText(bool v) { return v ? "true" : "false"; }
std::string ItemText(float v) { return FloatText(v); }
std::string ItemText(double v) { return FloatText(v); }
std::string ItemText(const std::string& v) { return StringText(v); }
std::string ItemText(BlockIndex v) { return absl::StrCat(v.index); }
std::string ItemText(const VarName& v) { return NameText(v.name); }
std::string ItemText(const Complex& v) {
  return absl::StrCat("(", FloatText(v.real), ",", FloatText(v.imag), ")");
}
std::string ItemText(const Scalar& v) {
  return std::visit([](const auto& held) { return ItemText(held); }, v.value);
}

template <typename T>
std::string ListText(const std::vector<T>& items) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? "," : "", ItemText(T(items[i])));
  }
  return text += ']';
}
template <typename T>
std::string ItemText(const std::vector<T>& v) {
  return ListText(v);
}
std::string ItemText(const BlockIndices& v) { return ListText(v.indices); }
std::string ItemText(const VarNames& v) {
  return absl::StrCat(
      "[",
      absl::StrJoin(v.names, ",",
                    [](std::string* out, const std::string& name) { *out += NameText(name); }),
      "]");
}

template <typename T>
constexpr bool kIsPlain = false;
template <>
inline constexpr bool kIsPlain<int32_t> = true;
template <>
inline constexpr bool kIsPlain<float> = true;
template <>
inline constexpr bool kIsPlain<bool> = true;
template <>
inline constexpr bool kIsPlain<std::string> = true;

// Whether the value's own text tells its kind.
template <typename T>
bool NeedsPrefix(const T&) {
  return !kIsPlain<T>;
}
template <typename T>
bool NeedsPrefix(const std::vector<T>& list) {
  return list.empty() ? !std::is_same_v<T, int32_t> : !kIsPlain<T>;
}

std::string AttrText(const Attr& attr) {
  return absl::StrCat(NameText(attr.name), "=", AttrValueText(attr.value));
}

std::string SlotsText(const Program& program, const std::vector<Slot>& slots) {
  std::string text = "(";
  for (const Slot& slot : slots) {
    absl::StrAppend(&text, text.size() > 1 ? ", " : "", NameText(slot.name), "=");
    const bool list = slot.args.size() != 1;
    absl::StrAppend(
        &text, list ? "[" : "",
        absl::StrJoin(slot.args, ", ",
                      [&](std::string* out, VarId id) { *out += VarNameText(program, id); }),
        list ? "]" : "");
  }
  return text += ')';
}

// Names argument `position` of the flattened slots: "X", "X[1]" when the slot has several, "#3"
// when the name does not lead back to it.
std::string ArgumentText(const std::vector<Slot>& slots, int32_t position) {
  const std::string number = absl::StrCat("#", position);
  if (position < 0) return number;
  for (size_t s = 0, begin = 0; s < slots.size(); begin += slots[s].args.size(), ++s) {
    const size_t index = static_cast<size_t>(position) - begin;
    if (index >= slots[s].args.size()) continue;
    const auto first = std::find_if(slots.begin(), slots.end(),
                                    [&](const Slot& slot) { return slot.name == slots[s].name; });
    if (first != slots.begin() + static_cast<std::ptrdiff_t>(s)) return number;
    const std::string name = NameText(slots[s].name);
    return slots[s].args.size() == 1 ? name : absl::StrCat(name, "[", index, "]");
  }
  return number;
}

std::string InplaceText(const Op& op) {
  return absl::StrJoin(op.inplace, ", ", [&op](std::string* out, const InplacePair& pair) {
    absl::StrAppend(out, ArgumentText(op.inputs, pair.input), "->",
                    ArgumentText(op.outputs, pair.output));
  });
}

std::string VarText(const Program& program, const Var& var) {
  std::string text = absl::StrCat("var ", VarNameText(program, var.id));
  if (var.kind != VarKind::kLodTensor) {
    const absl::string_view kind = Name(var.kind);
    const int number = static_cast<int>(var.kind);
    absl::StrAppend(&text, " ", kind.empty() ? absl::StrCat("kind", number) : std::string(kind));
  }
  if (var.kind == VarKind::kLodTensor || var.dtype != DType::kUndefined || !var.dims.empty()) {
    absl::StrAppend(&text, " ", Name(var.dtype), "[", absl::StrJoin(var.dims, ","), "]");
  }
  if (var.lod_level != 0) absl::StrAppend(&text, " lod=", var.lod_level);
  if (var.persistable) text += var.is_parameter ? " param" : " persistable";
  if (var.is_parameter && !var.persistable) text += " parameter";
  if (var.need_check_feed) text += " check_feed";
  if (var.stop_gradient) text += " stop_gradient";
  return text;
}

std::string BlockHeader(const Block& block) {
  std::string text = absl::StrCat("block ", block.idx);
  if (block.parent_idx != -1) absl::StrAppend(&text, " parent=", block.parent_idx);
  if (block.has_forward_block_idx) absl::StrAppend(&text, " forward=", block.forward_block_idx);
  return text;
}

}  // namespace

absl::string_view Name(VarKind kind) {
  for (const auto& [known, name] : kKinds) {
    if (known == kind) return name;
  }
  return "";
}

std::optional<VarKind> VarKindFromName(absl::string_view name) {
  for (const auto& [kind, known] : kKinds) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

absl::string_view AttrKindPrefix(size_t kind) { return kPrefixes[kind]; }

std::string AttrValueText(const AttrValue& value) {
  const bool prefix = std::visit([](const auto& v) { return NeedsPrefix(v); }, value);
  return absl::StrCat(prefix ? absl::StrCat(AttrKindPrefix(value.index()), ":") : "",
                      std::visit([](const auto& v) { return ItemText(v); }, value));
}

std::string NameForDump(const Program& program, VarId id) {
  const bool known = id >= 0 && id < std::ssize(program.names);
  return known ? program.names[id] : absl::StrCat("no variable #", id);
}

std::string NameText(absl::string_view name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), IsBareNameChar);
  return bare ? std::string(name) : absl::StrCat("\"", absl::Utf8SafeCHexEscape(name), "\"");
}

bool IsBareNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("_.@/:$+-|~*").find(c) != absl::string_view::npos;
}

bool IsProvenanceAttr(const Attr& attr) {
  if (attr.name == "op_device") {
    const auto* device = std::get_if<std::string>(&attr.value);
    return device != nullptr && device->empty();
  }
  return attr.name == "op_callstack" || attr.name == "op_role" || attr.name == "op_role_var" ||
         attr.name == "op_namescope";
}

namespace {

// What a training program is cut by.
bool SaysRole(const Op& op, const Attr& attr) {
  return (attr.name == "op_role" && RoleOf(op) != kForwardRole) || attr.name == "op_role_var";
}

std::string OpText(const Program& program, const Op& op, bool roles) {
  std::string text = absl::StrCat(NameText(op.type), SlotsText(program, op.inputs), " -> ",
                                  SlotsText(program, op.outputs));
  std::string attrs;
  for (const Attr& attr : op.attrs) {
    if (IsProvenanceAttr(attr) && !(roles && SaysRole(op, attr))) continue;
    absl::StrAppend(&attrs, attrs.empty() ? "" : ", ", AttrText(attr));
  }
  if (!attrs.empty()) absl::StrAppend(&text, " {", attrs, "}");
  if (!op.inplace.empty()) absl::StrAppend(&text, " inplace(", InplaceText(op), ")");
  if (op.is_target) text += " target";
  return text;
}

std::string ProgramText(const Program& program, bool roles) {
  std::string text;
  if (program.version != 0) absl::StrAppend(&text, "program version=", program.version, "\n");
  for (const Block& block : program.blocks) {
    absl::StrAppend(&text, BlockHeader(block), "\n");
    for (const Var& var : block.vars) absl::StrAppend(&text, "  ", VarText(program, var), "\n");
    for (const Op& op : block.ops) absl::StrAppend(&text, "  ", OpText(program, op, roles), "\n");
  }
  return text;
}

}  // namespace

std::string ToText(const Program& program, const Op& op) {
  return OpText(program, op, /*roles=*/false);
}

std::string ToText(const Program& program) { return ProgramText(program, /*roles=*/false); }

std::string SaveProgramText(const Program& program) { return ProgramText(program, /*roles=*/true); }

std::string DescribeOp(const Program& program, size_t block, size_t op) {
  return absl::StrCat("block ", block, ", op #", op, " ", program.blocks[block].ops[op].type);
}

}  // namespace interp
