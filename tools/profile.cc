#include "tools/profile.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_format.h"
#include "tools/table.h"

namespace interp {
namespace {

constexpr size_t kMaxInstructionRows = 40;  // --json has them all

std::string Share(int64_t part_ns, int64_t all_ns) {
  return absl::StrFormat("%.1f%%", all_ns > 0 ? 100.0 * part_ns / all_ns : 0.0);
}

double MeanUs(int64_t total_ns, int64_t calls) { return calls > 0 ? total_ns * 1e-3 / calls : 0.0; }

// The name of the first output, which tells a reader what an instruction is for.
std::string FirstOutput(const Plan& plan, const Instruction& instruction) {
  for (const VarId id : instruction.outputs) {
    if (id >= 0) return plan.vars[id].name;
  }
  return "";
}

}  // namespace

Profile::Profile(const Plan& plan) : plan_(plan), totals_(plan.instructions.size()) {}

void Profile::OnInstruction(InstrId instruction, int /*worker*/, int64_t start_ns, int64_t end_ns) {
  ++totals_[instruction].calls;
  totals_[instruction].total_ns += end_ns - start_ns;
}

void Profile::Reset() { std::fill(totals_.begin(), totals_.end(), Total()); }

int64_t Profile::AllNs() const {
  return std::accumulate(totals_.begin(), totals_.end(), int64_t{0},
                         [](int64_t sum, const Total& total) { return sum + total.total_ns; });
}

std::vector<Profile::Row> Profile::ByOpType() const {
  std::map<std::string, Total> by_type;
  for (size_t i = 0; i < totals_.size(); ++i) {
    Total& total = by_type[plan_.instructions[i].op_type];
    total.calls += totals_[i].calls;
    total.total_ns += totals_[i].total_ns;
  }
  std::vector<Row> rows;
  for (const auto& [type, total] : by_type) rows.push_back({type, total});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.total.total_ns > b.total.total_ns; });
  return rows;
}

std::vector<InstrId> Profile::ByTime() const {
  std::vector<InstrId> ids(totals_.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](InstrId a, InstrId b) { return totals_[a].total_ns > totals_[b].total_ns; });
  return ids;
}

std::vector<std::string> Profile::InstructionCells(InstrId id, int64_t all_ns) const {
  const Instruction& instruction = plan_.instructions[id];
  const Total& total = totals_[id];
  return {Share(total.total_ns, all_ns),
          absl::StrFormat("%.2f", MeanUs(total.total_ns, total.calls)),
          instruction.op_index >= 0 ? absl::StrCat(instruction.op_index) : "-",
          instruction.op_type,
          std::string(Name(instruction.dtype)),
          FirstOutput(plan_, instruction)};
}

std::string Profile::ToText() const {
  const int64_t all_ns = AllNs();
  std::vector<std::vector<std::string>> types = {{"share", "ms", "calls", "mean us", "op"}};
  for (const Row& row : ByOpType()) {
    types.push_back(
        {Share(row.total.total_ns, all_ns), absl::StrFormat("%.3f", row.total.total_ns * 1e-6),
         absl::StrCat(row.total.calls),
         absl::StrFormat("%.2f", MeanUs(row.total.total_ns, row.total.calls)), row.op_type});
  }
  std::vector<std::vector<std::string>> rows = {
      {"share", "mean us", "op #", "op", "dtype", "first output"}};
  const std::vector<InstrId> ids = ByTime();
  for (size_t i = 0; i < std::min(ids.size(), kMaxInstructionRows); ++i) {
    rows.push_back(InstructionCells(ids[i], all_ns));
  }
  std::string text = absl::StrCat(FormatTable(types), "\n", FormatTable(rows));
  if (ids.size() > kMaxInstructionRows) {
    absl::StrAppend(&text, "... and ", ids.size() - kMaxInstructionRows,
                    " more (--json lists all)\n");
  }
  return text;
}

void Profile::WriteJson(JsonWriter& json) const {
  json.BeginObject();
  json.Key("op_types");
  json.BeginArray();
  for (const Row& row : ByOpType()) {
    json.Line();
    json.BeginObject();
    json.Field("op", row.op_type);
    json.Field("calls", row.total.calls);
    json.Field("total_ms", row.total.total_ns * 1e-6);
    json.EndObject();
  }
  json.EndArray();
  json.Key("instructions");
  json.BeginArray();
  for (size_t i = 0; i < totals_.size(); ++i) {
    const Instruction& instruction = plan_.instructions[i];
    json.Line();
    json.BeginObject();
    json.Field("op", instruction.op_type);
    json.Field("op_index", instruction.op_index);
    json.Field("output", FirstOutput(plan_, instruction));
    json.Field("calls", totals_[i].calls);
    json.Field("total_ms", totals_[i].total_ns * 1e-6);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace interp
