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

// Of the machine's limit, "-" when that is unknown.
std::string ShareOfLimit(double least_ns, int64_t total_ns) {
  if (least_ns <= 0 || total_ns <= 0) return "-";
  return absl::StrFormat("%.0f%%", 100 * least_ns / static_cast<double>(total_ns));
}

double MeanUs(int64_t total_ns, int64_t calls) { return calls > 0 ? total_ns * 1e-3 / calls : 0.0; }

// Of an amount per nanosecond, which is 10^9 per second; "-" when the amount is unknown.
std::string Rate(double amount, int64_t total_ns) {
  if (amount <= 0 || total_ns <= 0) return "-";
  return absl::StrFormat("%.2f", amount / static_cast<double>(total_ns));
}

// Bytes per call, in units a reader can compare.
std::string Megabytes(double bytes, int64_t calls) {
  if (bytes <= 0 || calls <= 0) return "-";
  return absl::StrFormat("%.3f", bytes / static_cast<double>(calls) * 1e-6);
}

void WriteLimit(const MachineLimit& limit, JsonWriter& json) {
  json.Key("limit");
  json.BeginObject();
  json.Field("threads", limit.num_threads);
  json.ObjectLines("products", limit.products, [&](const MachineLimit::Products& products) {
    json.Field("dtype", Name(products.dtype));
    json.Field("gflop_per_s", products.flops_per_ns);
  });
  json.ObjectLines("copies", limit.copies, [&](const MachineLimit::Copies& copies) {
    json.Field("bytes", copies.bytes);
    json.Field("gb_per_s", copies.bytes_per_ns);
  });
  json.EndObject();
}

// The name of the first output, which tells a reader what an instruction is for.
std::string FirstOutput(const Plan& plan, const Instruction& instruction) {
  for (const VarId id : instruction.outputs) {
    if (id >= 0) return plan.vars[id].name;
  }
  return "";
}

}  // namespace

Profile::Profile(absl::Span<const Plan> plans)
    : plans_(plans), totals_(static_cast<size_t>(CountInstructions(plans))) {
  for (int32_t number = 0; number < CountInstructions(plans); ++number) {
    instructions_.push_back(FindInstruction(plans, number));
  }
}

const Instruction& Profile::InstructionOf(int32_t number) const {
  return instructions_[number].plan->instructions[instructions_[number].id];
}

void Profile::OnInstruction(int32_t instruction, int /*worker*/, int64_t start_ns, int64_t end_ns) {
  ++totals_[instruction].calls;
  totals_[instruction].total_ns += end_ns - start_ns;
}

void Profile::Reset() { std::fill(totals_.begin(), totals_.end(), Total()); }

std::vector<DType> Profile::DTypes() const {
  std::vector<DType> dtypes;
  for (int32_t number = 0; number < static_cast<int32_t>(totals_.size()); ++number) {
    const Instruction& instruction = InstructionOf(number);
    const DType dtype = instruction.dtype;
    if (!instruction.place.on_host() || costs_.empty() || costs_[number].flops == 0) continue;
    if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) dtypes.push_back(dtype);
  }
  return dtypes;
}

Profile::Total& Profile::Total::operator+=(const Total& other) {
  calls += other.calls;
  total_ns += other.total_ns;
  bytes += other.bytes;
  flops += other.flops;
  least_ns += other.least_ns;
  return *this;
}

Profile::Total Profile::TotalOf(int32_t number) const {
  Total total = totals_[number];
  const Instruction& instruction = InstructionOf(number);
  if (instruction.sub_block >= 0) {
    const Plan& within = plans_[instruction.sub_block];
    for (size_t i = 0; i < within.instructions.size(); ++i) {
      total.total_ns -= totals_[within.first_number + i].total_ns;
    }
    total.total_ns = std::max<int64_t>(0, total.total_ns);  // other threads may have helped
  }
  // Of an op on a device the time is that of its launch.
  if (costs_.empty() || !instruction.place.on_host()) return total;
  const auto calls = static_cast<double>(total.calls);
  const auto bytes = static_cast<double>(costs_[number].bytes);
  const auto flops = static_cast<double>(costs_[number].flops);
  total.bytes = bytes * calls;
  total.flops = flops * calls;
  total.least_ns = LeastNs(limit_, instruction.dtype, flops, bytes) * calls;
  return total;
}

int64_t Profile::AllNs() const {
  int64_t sum = 0;
  for (int32_t number = 0; number < static_cast<int32_t>(totals_.size()); ++number) {
    sum += TotalOf(number).total_ns;
  }
  return sum;
}

// "17", of another block than the main one "2:17".
std::string Profile::OpIndexText(int32_t number) const {
  const Instruction& instruction = InstructionOf(number);
  if (instruction.op_index < 0) return "-";
  const int32_t block = instructions_[number].plan->block;
  return block == 0 ? absl::StrCat(instruction.op_index)
                    : absl::StrCat(block, ":", instruction.op_index);
}

std::string Profile::AlgorithmOf(int32_t number) const {
  return algorithms_.empty() ? "" : algorithms_[number];
}

std::vector<Profile::Row> Profile::ByOpType() const {
  std::map<std::string, Total> by_type;
  for (size_t i = 0; i < totals_.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    by_type[std::string(InstructionOf(number).op_type)] += TotalOf(number);
  }
  std::vector<Row> rows;
  for (const auto& [type, total] : by_type) rows.push_back({type, total});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.total.total_ns > b.total.total_ns; });
  return rows;
}

std::vector<int32_t> Profile::ByTime() const {
  std::vector<int64_t> own_ns;
  for (size_t i = 0; i < totals_.size(); ++i) {
    own_ns.push_back(TotalOf(static_cast<int32_t>(i)).total_ns);
  }
  std::vector<int32_t> numbers(totals_.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](int32_t a, int32_t b) { return own_ns[a] > own_ns[b]; });
  return numbers;
}

std::vector<std::string> Profile::InstructionCells(int32_t number, int64_t all_ns) const {
  const Instruction& instruction = InstructionOf(number);
  const Total total = TotalOf(number);
  return {Share(total.total_ns, all_ns),
          absl::StrFormat("%.2f", MeanUs(total.total_ns, total.calls)),
          Megabytes(total.bytes, total.calls),
          Rate(total.flops, total.total_ns),
          Rate(total.bytes, total.total_ns),
          ShareOfLimit(total.least_ns, total.total_ns),
          OpIndexText(number),
          std::string(instruction.op_type),
          std::string(Name(instruction.dtype)),
          AlgorithmOf(number),
          FirstOutput(*instructions_[number].plan, instruction)};
}

std::string Profile::ToText() const {
  const int64_t all_ns = AllNs();
  std::vector<std::vector<std::string>> types = {
      {"share", "ms", "calls", "mean us", "MB", "GFLOP/s", "GB/s", "of limit", "op"}};
  for (const Row& row : ByOpType()) {
    types.push_back(
        {Share(row.total.total_ns, all_ns), absl::StrFormat("%.3f", row.total.total_ns * 1e-6),
         absl::StrCat(row.total.calls),
         absl::StrFormat("%.2f", MeanUs(row.total.total_ns, row.total.calls)),
         Megabytes(row.total.bytes, row.total.calls), Rate(row.total.flops, row.total.total_ns),
         Rate(row.total.bytes, row.total.total_ns),
         ShareOfLimit(row.total.least_ns, row.total.total_ns), row.op_type});
  }
  std::vector<std::vector<std::string>> rows = {{"share", "mean us", "MB", "GFLOP/s", "GB/s",
                                                 "of limit", "op #", "op", "dtype", "algorithm",
                                                 "first output"}};
  const std::vector<int32_t> ids = ByTime();
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

void Profile::WriteRates(const Total& total, JsonWriter& json) {
  const auto ns = static_cast<double>(total.total_ns);
  if (total.bytes > 0) json.Field("bytes", total.bytes);
  if (total.flops > 0) json.Field("flops", total.flops);
  if (ns <= 0) return;
  if (total.bytes > 0) json.Field("gb_per_s", total.bytes / ns);
  if (total.flops > 0) json.Field("gflop_per_s", total.flops / ns);
  if (total.least_ns > 0) json.Field("share_of_limit", total.least_ns / ns);
}

void Profile::WriteJson(JsonWriter& json) const {
  json.BeginObject();
  json.ObjectLines("op_types", ByOpType(), [&](const Row& row) {
    json.Field("op", row.op_type);
    json.Field("calls", row.total.calls);
    json.Field("total_ms", row.total.total_ns * 1e-6);
    WriteRates(row.total, json);
  });
  if (limit_.num_threads > 0) WriteLimit(limit_, json);
  json.Key("instructions");
  json.BeginArray();
  for (size_t i = 0; i < totals_.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    const Instruction& instruction = InstructionOf(number);
    const Plan& plan = *instructions_[i].plan;
    json.Line();
    json.BeginObject();
    json.Field("op", instruction.op_type);
    if (plan.block != 0) json.Field("block", plan.block);
    json.Field("op_index", instruction.op_index);
    json.Field("output", FirstOutput(plan, instruction));
    if (const std::string algorithm = AlgorithmOf(number); !algorithm.empty()) {
      json.Field("algorithm", algorithm);
    }
    const Total total = TotalOf(number);
    json.Field("calls", total.calls);
    json.Field("total_ms", total.total_ns * 1e-6);
    WriteRates(total, json);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace interp
