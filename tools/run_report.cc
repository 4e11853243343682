#include "tools/run_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "core/base/json_writer.h"
#include "interpreter/inspect/liveness_bound.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan/instruction_name.h"
#include "tools/sizes.h"
#include "tools/table.h"

namespace interp {
namespace {

void WriteTimes(const RunReport& report, JsonWriter& json) {
  const std::vector<double>& runs_ms = report.times.runs_ms;
  std::optional<RunStatistics> statistics;
  if (!runs_ms.empty()) statistics = Statistics(runs_ms);
  const auto field = [&](absl::string_view name, double RunStatistics::*value) {
    json.Field(name, statistics.has_value() ? std::optional(*statistics.*value) : std::nullopt);
  };
  json.Field("load_ms", report.times.load_ms);
  json.Field("prepare_ms", report.times.prepare_ms);
  json.Field("first_ms", report.times.first_ms);
  json.Field("runs", runs_ms.size());
  field("median_ms", &RunStatistics::median_ms);
  field("min_ms", &RunStatistics::min_ms);
  field("mean_ms", &RunStatistics::mean_ms);
  field("p99_ms", &RunStatistics::p99_ms);
  if (!report.times.device_ms.empty()) {
    json.Field("device_median_ms", Statistics(report.times.device_ms).median_ms);
  }
}

void WriteExpected(const Comparison& comparison, JsonWriter& json) {
  json.BeginObject();
  json.Field("name", comparison.name);
  WriteComparison(comparison, json);
  json.EndObject();
}

std::string FormatPools(const std::vector<PoolStats>& pools) {
  std::vector<std::vector<std::string>> rows = {{"pool", "kind", "peak KiB", "held KiB", "free KiB",
                                                 "allocations", "hits", "misses", "trims",
                                                 "retries"}};
  const auto kib = [](size_t bytes) {
    return absl::StrFormat("%.1f", static_cast<double>(bytes) / 1024);
  };
  for (const PoolStats& pool : pools) {
    rows.push_back(
        {pool.name, pool.kind, kib(pool.memory.peak_bytes), kib(pool.memory.reserved_bytes),
         kib(pool.cached_bytes), absl::StrCat(pool.memory.allocations), absl::StrCat(pool.hits),
         absl::StrCat(pool.misses), absl::StrCat(pool.trims), absl::StrCat(pool.retries)});
  }
  return FormatTable(rows);
}

void WritePool(const PoolStats& pool, JsonWriter& json) {
  json.BeginObject();
  json.Field("name", pool.name);
  json.Field("kind", pool.kind);
  json.Field("in_use_bytes", pool.memory.current_bytes);
  json.Field("peak_bytes", pool.memory.peak_bytes);
  json.Field("reserved_bytes", pool.memory.reserved_bytes);
  json.Field("peak_reserved_bytes", pool.peak_reserved_bytes);
  json.Field("cached_bytes", pool.cached_bytes);
  json.Field("allocations", pool.memory.allocations);
  json.Field("hits", pool.hits);
  json.Field("misses", pool.misses);
  json.Field("trims", pool.trims);
  json.Field("retries", pool.retries);
  json.Field("failures", pool.failures);
  json.EndObject();
}

// An array with a line for each item.
template <typename T, typename Write>
void WriteArray(absl::string_view key, const std::vector<T>& items, const Write& write,
                JsonWriter& json) {
  json.Array(key, items, [&](const T& item) {
    json.Line();
    write(item, json);
  });
}

std::string FormatGraphs(const GraphStats& graphs) {
  std::string text =
      absl::StrFormat("CUDA graphs: %d with %d ops, captured %d times, enqueued again %d times\n",
                      graphs.graphs, graphs.instructions, graphs.captures, graphs.replays);
  for (const std::string& refused : graphs.refused) {
    absl::StrAppend(&text, "in no graph: ", refused, "\n");
  }
  return text;
}

void WriteJson(const GraphStats& graphs, JsonWriter& json) {
  json.BeginObject();
  json.Field("graphs", graphs.graphs);
  json.Field("ops", graphs.instructions);
  json.Field("captures", graphs.captures);
  json.Field("replays", graphs.replays);
  json.Values("refused", graphs.refused);
  json.EndObject();
}

double PeakRatio(const RunReport& report) {
  return static_cast<double>(report.peak_variable_bytes) /
         static_cast<double>(report.liveness_bound_bytes);
}

std::string FormatMemory(const RunReport& report) {
  std::string text = absl::StrCat("peak memory ", FormatBytes(report.peak_bytes));
  if (report.peak_variable_bytes != report.peak_bytes) {
    absl::StrAppend(&text, ", without workspace ", FormatBytes(report.peak_variable_bytes));
  }
  if (report.liveness_bound_bytes > 0) {
    absl::StrAppendFormat(&text, " (%.3fx of what is alive at %s)", PeakRatio(report),
                          report.bound_at);
  }
  absl::StrAppend(&text, ", parameters ", FormatBytes(report.parameter_bytes), "\n");
  if (report.device_peak_bytes > 0) {
    absl::StrAppend(&text, "on devices: peak memory ", FormatBytes(report.device_peak_bytes), "\n");
  }
  return text;
}

void WriteMemory(const RunReport& report, JsonWriter& json) {
  json.Field("peak_bytes", report.peak_bytes);
  json.Field("peak_variable_bytes", report.peak_variable_bytes);
  if (report.liveness_bound_bytes > 0) {
    json.Field("liveness_bound_bytes", report.liveness_bound_bytes);
    json.Field("liveness_bound_at", report.bound_at);
    json.Field("peak_ratio", PeakRatio(report));
  }
  json.Field("parameter_bytes", report.parameter_bytes);
  if (report.device_peak_bytes > 0) json.Field("device_peak_bytes", report.device_peak_bytes);
}

}  // namespace

RunStatistics Statistics(std::vector<double> runs_ms) {
  std::sort(runs_ms.begin(), runs_ms.end());
  const size_t n = runs_ms.size();
  const auto rank = static_cast<size_t>(std::ceil(0.99 * static_cast<double>(n)));
  return {.median_ms = (runs_ms[(n - 1) / 2] + runs_ms[n / 2]) / 2,
          .min_ms = runs_ms.front(),
          .mean_ms = std::accumulate(runs_ms.begin(), runs_ms.end(), 0.0) / static_cast<double>(n),
          .p99_ms = runs_ms[rank - 1]};
}

RunReport MakeReport(const std::string& model, const InterpreterCore& core,
                     uint64_t parameter_bytes, const std::vector<NamedTensor>& fetched) {
  RunReport report;
  report.model = model;
  report.num_ops = core.plan().instructions.size();
  report.scheduler = std::string(Name(core.scheduler()));
  report.num_workers = core.num_workers();
  report.num_threads = core.num_threads();
  report.peak_bytes = core.memory().peak_bytes;
  report.peak_variable_bytes = core.memory().peak_variable_bytes;
  // With devices little is on the host, and most of that is scratch of kernels.
  const LivenessBound bound = core.devices().empty() ? FindLivenessBound(core) : LivenessBound();
  report.liveness_bound_bytes = bound.bytes;
  if (bound.at >= 0) report.bound_at = NameOf(core.plan().instructions[bound.at]);
  report.parameter_bytes = parameter_bytes;
  report.device_peak_bytes = core.device_memory().peak_bytes;
  report.graphs = core.graph_stats();
  report.pools = core.pool_stats();
  for (const NamedTensor& tensor : fetched) report.fetches.push_back(Summarize(tensor));
  return report;
}

std::string ToText(const RunReport& report) {
  std::string text;
  absl::StrAppend(&text, report.model, ": ", Counted(report.num_ops, "op"), ", scheduler ",
                  report.scheduler, ", ", Counted(report.num_workers, "worker"), ", ",
                  Counted(report.num_threads, "thread"), " per op\n");
  absl::StrAppendFormat(&text, "load %.2f ms, prepare %.2f ms, first run %.2f ms\n",
                        report.times.load_ms, report.times.prepare_ms, report.times.first_ms);
  if (const std::vector<double>& runs_ms = report.times.runs_ms; !runs_ms.empty()) {
    const RunStatistics statistics = Statistics(runs_ms);
    absl::StrAppendFormat(&text, "%s: median %.3f ms, min %.3f ms, p99 %.3f ms\n",
                          Counted(std::ssize(runs_ms), "run"), statistics.median_ms,
                          statistics.min_ms, statistics.p99_ms);
  }
  if (!report.times.device_ms.empty()) {
    const RunStatistics statistics = Statistics(report.times.device_ms);
    absl::StrAppendFormat(&text, "by the devices' clock: median %.4f ms, min %.4f ms\n",
                          statistics.median_ms, statistics.min_ms);
  }
  absl::StrAppend(&text, FormatMemory(report));
  if (report.graphs.has_value()) absl::StrAppend(&text, FormatGraphs(*report.graphs));
  if (!report.fetches.empty()) absl::StrAppend(&text, "\n", FormatSummaries(report.fetches));
  if (!report.top.empty()) absl::StrAppend(&text, "\n", FormatTop(report.top));
  if (report.boxes.has_value()) {
    absl::StrAppend(&text, "\n", FormatBoxes(*report.boxes), "\n");
  }
  if (!report.comparisons.empty()) absl::StrAppend(&text, "\n");
  for (const Comparison& comparison : report.comparisons) {
    absl::StrAppend(&text, FormatComparison(comparison), "\n");
  }
  if (report.profile != nullptr) {
    absl::StrAppend(&text, "\n", FormatPools(report.pools), "\n", report.profile->ToText());
  }
  return text;
}

std::string ToJson(const RunReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Field("model", report.model);
  json.Field("ops", report.num_ops);
  json.Field("scheduler", report.scheduler);
  json.Field("workers", report.num_workers);
  json.Field("threads", report.num_threads);
  WriteTimes(report, json);
  if (report.interrupted) json.Field("interrupted", true);
  WriteMemory(report, json);
  if (report.graphs.has_value()) {
    json.Key("graphs");
    WriteJson(*report.graphs, json);
  }
  const auto write = [](const auto& item, JsonWriter& to) { WriteJson(item, to); };
  WriteArray("pools", report.pools, WritePool, json);
  WriteArray("fetches", report.fetches, write, json);
  if (!report.top.empty()) WriteArray("top", report.top, write, json);
  if (report.boxes.has_value()) {
    json.Key("boxes");
    WriteJson(*report.boxes, json);
  }
  if (!report.comparisons.empty()) {
    WriteArray("expect", report.comparisons, WriteExpected, json);
  }
  if (report.profile != nullptr) {
    json.Key("profile");
    report.profile->WriteJson(json);
  }
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace interp
