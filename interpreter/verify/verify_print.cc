#include "absl/strings/str_join.h"
#include "core/base/json_writer.h"
#include "interpreter/verify/verify_plan.h"

namespace interp {
namespace {

// At most this many arguments are shown of each side.
constexpr size_t kMaxArguments = 8;

std::string ArgumentsText(const Plan& plan, absl::Span<const VarId> ids) {
  const absl::string_view rest = ids.size() > kMaxArguments ? ", ..." : "";
  return absl::StrCat("(",
                      absl::StrJoin(ids.subspan(0, kMaxArguments), ", ",
                                    [&](std::string* out, VarId id) { *out += VarText(plan, id); }),
                      rest, ")");
}

// "#3 relu(a) -> (b)", with the stream where it is one of a device.
std::string InstructionText(const Plan& plan, InstrId id) {
  const Instruction& instruction = plan.instructions[id];
  std::string text =
      absl::StrCat("#", id, " ", instruction.op_type, ArgumentsText(plan, instruction.inputs),
                   " -> ", ArgumentsText(plan, instruction.outputs));
  if (!instruction.place.on_host()) {
    absl::StrAppend(&text, " on ", Name(instruction.place), " stream '",
                    plan.streams[instruction.stream].name, "'");
  }
  return text;
}

std::string ViolationText(absl::Span<const Plan> plans, const Violation& violation) {
  const Plan& plan = plans[violation.block];
  std::string text = "  ";
  if (plans.size() > 1) absl::StrAppend(&text, "block ", violation.block, ": ");
  absl::StrAppend(&text, Name(violation.kind));
  if (violation.var >= 0) absl::StrAppend(&text, " of ", VarText(plan, violation.var));
  absl::StrAppend(&text, ": ", violation.detail, "\n");
  if (violation.first >= 0) {
    absl::StrAppend(&text, "    ", InstructionText(plan, violation.first), "\n");
  }
  if (violation.second >= 0 && (violation.second != violation.first || violation.next_run)) {
    absl::StrAppend(&text, "    ", InstructionText(plan, violation.second),
                    violation.next_run ? ", in the next run" : "", "\n");
  }
  return text;
}

// "3 waits", "1 wait".
std::string Count(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string CheckedText(const VerifyReport& report) {
  std::string text = absl::StrCat(
      "  checked  ", report.blocks > 1 ? Count(report.blocks, "block") + ", " : "",
      Count(report.instructions, "instruction"), ", ", Count(report.edges, "edge"), "\n           ",
      Count(report.pairs, "pair"), " of accesses to ", Count(report.variables, "variable"), " and ",
      Count(report.shared_storages, "shared storage"));
  if (report.pairs_between_runs > 0) {
    absl::StrAppend(&text, ", ", report.pairs_between_runs, " more between two runs");
  }
  absl::StrAppend(&text, "\n           ", Count(report.frees, "free"), ", ",
                  Count(report.implicit_orders, "implicit order"), ", ",
                  Count(report.events, "event"), " with ", Count(report.waits, "wait"), "\n");
  return text;
}

std::string RedundancyText(const VerifyReport& report) {
  return absl::StrCat("  could go ", report.all_redundancy_found ? "" : "at least ",
                      Count(report.redundant_edges, "edge"), ", ",
                      Count(report.redundant_waits, "wait"), "\n");
}

constexpr absl::string_view kKindNames[] = {
    "read after write", "write after read", "write after write", "read of an overwritten value",
    "use after free",   "wrong free",       "wrong count",       "wrong trace order",
    "implicit order",   "wrong place",      "wrong event",       "hidden use",
};

void WriteViolation(const Plan& plan, const Violation& violation, JsonWriter& json) {
  json.BeginObject();
  json.Field("kind", Name(violation.kind));
  if (violation.block > 0) json.Field("block", violation.block);
  if (violation.first >= 0) json.Field("first", violation.first);
  if (violation.second >= 0) json.Field("second", violation.second);
  if (violation.var >= 0) json.Field("var", absl::string_view(plan.vars[violation.var].name));
  if (violation.next_run) json.Field("next_run", true);
  json.Field("detail", absl::string_view(violation.detail));
  json.EndObject();
}

}  // namespace

absl::string_view Name(ViolationKind kind) { return kKindNames[static_cast<int>(kind)]; }

std::string ToText(absl::Span<const Plan> plans, const VerifyReport& report) {
  if (!report.structure.ok()) {
    return absl::StrCat("not proved: ", report.structure.message(), "\n");
  }
  if (report.proved()) return "proved\n" + CheckedText(report) + RedundancyText(report);
  std::string text = absl::StrCat("not proved: ", Count(report.num_violations, "violation"), "\n");
  for (const Violation& violation : report.violations) text += ViolationText(plans, violation);
  const auto more = report.num_violations - static_cast<int64_t>(report.violations.size());
  if (more > 0) absl::StrAppend(&text, "  and ", more, " more\n");
  return text + CheckedText(report);
}

std::string ToJson(absl::Span<const Plan> plans, const VerifyReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Field("proved", report.proved());
  if (!report.structure.ok()) {
    json.Field("structure", absl::string_view(report.structure.message()));
  }
  json.Field("num_violations", report.num_violations);
  json.Array("violations", report.violations, [&](const Violation& violation) {
    WriteViolation(plans[violation.block], violation, json);
  });
  const std::pair<absl::string_view, int64_t> counts[] = {
      {"blocks", report.blocks},
      {"instructions", report.instructions},
      {"edges", report.edges},
      {"pairs", report.pairs},
      {"pairs_between_runs", report.pairs_between_runs},
      {"variables", report.variables},
      {"shared_storages", report.shared_storages},
      {"frees", report.frees},
      {"implicit_orders", report.implicit_orders},
      {"events", report.events},
      {"waits", report.waits},
      {"redundant_edges", report.redundant_edges},
      {"redundant_waits", report.redundant_waits}};
  for (const auto& [name, count] : counts) json.Field(name, count);
  json.Field("all_redundancy_found", report.all_redundancy_found);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace interp
