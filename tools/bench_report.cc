#include "tools/bench_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/json_writer.h"
#include "tools/sizes.h"
#include "tools/table.h"

namespace interp {
namespace {

std::string FormatResults(const BenchReport& report) {
  std::vector<std::vector<std::string>> rows = {{"streams", "threads", "batch", "runs", "items/s",
                                                 "p50 ms", "p90 ms", "p95 ms", "p99 ms", "max ms",
                                                 "mean ms", "first ms"}};
  const auto ms = [](double value) { return absl::StrFormat("%.3f", value); };
  for (const BenchResult& result : report.results) {
    const LatencySummary& latency = result.latency;
    rows.push_back({absl::StrCat(result.streams), absl::StrCat(result.threads),
                    absl::StrCat(result.items), absl::StrCat(latency.count),
                    absl::StrFormat("%.2f", result.items_per_s()), ms(latency.p50_ms),
                    ms(latency.p90_ms), ms(latency.p95_ms), ms(latency.p99_ms), ms(latency.max_ms),
                    ms(latency.mean_ms), ms(result.first_ms)});
  }
  return FormatTable(rows);
}

void WriteResult(const BenchResult& result, JsonWriter& json) {
  const LatencySummary& latency = result.latency;
  json.BeginObject();
  json.Field("streams", result.streams);
  json.Field("threads", result.threads);
  json.Field("batch", result.items);
  json.Field("runs", latency.count);
  json.Field("late", result.num_late);
  json.Field("elapsed_ms", result.elapsed_ms);
  json.Field("first_ms", result.first_ms);
  json.Field("runs_per_s", result.runs_per_s());
  json.Field("items_per_s", result.items_per_s());
  json.Key("latency_ms");
  json.BeginObject();
  json.Field("min", latency.min_ms);
  json.Field("mean", latency.mean_ms);
  json.Field("p50", latency.p50_ms);
  json.Field("p90", latency.p90_ms);
  json.Field("p95", latency.p95_ms);
  json.Field("p99", latency.p99_ms);
  json.Field("max", latency.max_ms);
  json.EndObject();
  json.Objects("histogram", latency.histogram, [&](const LatencyBucket& bucket) {
    json.Field("from_ms", bucket.from_ms);
    json.Field("to_ms", bucket.to_ms);
    json.Field("runs", bucket.count);
  });
  json.EndObject();
}

}  // namespace

double BenchResult::runs_per_s() const {
  return elapsed_ms > 0 ? static_cast<double>(latency.count) / elapsed_ms * 1e3 : 0;
}

double BenchResult::items_per_s() const { return runs_per_s() * static_cast<double>(items); }

const BenchResult* FindBest(const BenchReport& report) {
  const auto best = std::max_element(
      report.results.begin(), report.results.end(),
      [](const BenchResult& a, const BenchResult& b) { return a.items_per_s() < b.items_per_s(); });
  return best == report.results.end() ? nullptr : &*best;
}

std::string ToText(const BenchReport& report) {
  std::string text = absl::StrFormat("%s: scheduler %s, %g s each", report.model, report.scheduler,
                                     report.duration_s);
  if (report.rate.has_value()) absl::StrAppendFormat(&text, ", %g runs/s arrive", *report.rate);
  absl::StrAppend(&text, "\n\n", FormatResults(report));
  for (const BenchResult& result : report.results) {
    if (result.num_late == 0) continue;
    absl::StrAppend(&text, Counted(result.streams, "stream"), ", batch ", result.items, ": ",
                    Counted(result.num_late, "run"), " due that never began\n");
  }
  const BenchResult* const best = FindBest(report);
  if (best == nullptr || best->latency.count == 0) return text;
  absl::StrAppendFormat(&text, "\nbest: %.2f items/s with %s x %s, batch %d\n\n",
                        best->items_per_s(), Counted(best->streams, "stream"),
                        Counted(best->threads, "thread"), best->items);
  absl::StrAppend(&text, FormatHistogram(best->latency.histogram));
  return text;
}

std::string ToJson(const BenchReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Field("model", report.model);
  json.Field("scheduler", report.scheduler);
  json.Field("duration_s", report.duration_s);
  json.Field("rate", report.rate);
  json.Field("interrupted", report.interrupted);
  json.Array("results", report.results, [&](const BenchResult& result) {
    json.Line();
    WriteResult(result, json);
  });
  const BenchResult* const best = FindBest(report);
  json.Field("best", best == nullptr ? std::nullopt : std::optional(best - report.results.data()));
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace interp
