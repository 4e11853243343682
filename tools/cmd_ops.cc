// interp ops: lists the op types there are.
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "core/base/json_writer.h"
#include "core/base/near_names.h"
#include "core/op_def.h"
#include "tools/commands.h"

namespace interp {
namespace {

struct OpsFlags {
  std::vector<std::string> types;
  bool json = false;
};

// "X, Bias?, Y*": optional slots have a '?', slots with any number of arguments a '*'.
std::string SlotsText(const std::vector<SlotDef>& slots) {
  return absl::StrJoin(slots, ", ", [](std::string* out, const SlotDef& slot) {
    absl::StrAppend(out, slot.name, (slot.flags & kVariadic) != 0 ? "*" : "",
                    (slot.flags & kOptional) != 0 ? "?" : "");
  });
}

absl::string_view KernelName(const KernelDef& kernel) {
  return kernel.dtype == DType::kUndefined ? absl::string_view("any") : Name(kernel.dtype);
}

// Of the host's kernels, each once.
std::vector<absl::string_view> HostDTypes(const OpDef& def) {
  std::vector<absl::string_view> names;
  for (const KernelDef& kernel : def.kernels) {
    if (kernel.place != PlaceKind::kCpu) continue;
    if (!absl::c_linear_search(names, KernelName(kernel))) names.push_back(KernelName(kernel));
  }
  return names;
}

std::string ToText(const OpDef& def) {
  return absl::StrCat(def.type, "(", SlotsText(def.inputs), ") -> (", SlotsText(def.outputs), ")  ",
                      absl::StrJoin(HostDTypes(def), " "), "\n");
}

void WriteSlots(absl::string_view key, const std::vector<SlotDef>& slots, JsonWriter& json) {
  json.Objects(key, slots, [&](const SlotDef& slot) {
    json.Field("name", slot.name);
    json.Field("optional", (slot.flags & kOptional) != 0);
    json.Field("variadic", (slot.flags & kVariadic) != 0);
  });
}

void WriteJson(const OpDef& def, JsonWriter& json) {
  json.BeginObject();
  json.Field("type", def.type);
  WriteSlots("inputs", def.inputs, json);
  WriteSlots("outputs", def.outputs, json);
  json.Objects("kernels", def.kernels, [&](const KernelDef& kernel) {
    json.Field("place", Name(kernel.place));
    json.Field("dtype", KernelName(kernel));
  });
  json.EndObject();
}

absl::StatusOr<std::vector<const OpDef*>> Select(const OpsFlags& flags) {
  const OpRegistry& registry = OpRegistry::Global();
  const std::vector<absl::string_view> all = registry.Types();
  std::vector<const OpDef*> defs;
  for (const std::string& type : flags.types) {
    const OpDef* def = registry.Find(type);
    if (def == nullptr) return NotFound("no op named '", type, "'", NearNamesHint(type, all));
    defs.push_back(def);
  }
  if (!flags.types.empty()) return defs;
  for (const absl::string_view type : all) defs.push_back(registry.Find(type));
  return defs;
}

absl::StatusOr<ExitCode> Ops(const OpsFlags& flags) {
  INTERP_ASSIGN_OR_RETURN(const auto defs, Select(flags));
  std::string text;
  if (flags.json) {
    JsonWriter json;
    json.BeginArray();
    for (const OpDef* def : defs) {
      json.Line();
      WriteJson(*def, json);
    }
    json.EndArray();
    text = std::move(json).Take() + "\n";
  } else {
    for (const OpDef* def : defs) text += ToText(*def);
  }
  return Show(text);
}

}  // namespace

void AddOpsCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<OpsFlags>();
  CLI::App& command = *app.add_subcommand(
      "ops", "list op types: inputs -> outputs and the dtypes the host has kernels for");
  command.add_option("TYPE", flags->types, "only these; default: all");
  command.add_flag("--json", flags->json, "print one JSON array");
  command.footer("A '?' marks optional slots, a '*' slots with any number of arguments.");
  command.callback(
      [flags, &exit_code] { exit_code = RunCommand([&](ExitCode&) { return Ops(*flags); }); });
}

}  // namespace interp
