#include "tools/train_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "core/base/terminal_text.h"
#include "tools/run_report.h"
#include "tools/sizes.h"
#include "tools/train_log.h"

namespace interp {
namespace {

// Without the first step, in which kernels make their primitives, where there are others.
std::optional<double> MedianMs(const TrainReport& report) {
  if (report.steps_ms.empty()) return std::nullopt;
  std::vector<double> steps = report.steps_ms;
  if (steps.size() > 1) steps.erase(steps.begin());
  return Statistics(std::move(steps)).median_ms;
}

int64_t StepsInAll(const TrainReport& report) {
  return report.first_step + std::ssize(report.steps_ms);
}

double SamplesPerSecond(const TrainReport& report) {
  return report.total_ms > 0 ? static_cast<double>(report.num_samples) / report.total_ms * 1e3 : 0;
}

std::optional<double> FirstMs(const TrainReport& report) {
  return report.steps_ms.empty() ? std::nullopt : std::optional(report.steps_ms[0]);
}

std::string ValuesText(const std::vector<NamedTensor>& values) {
  std::string text;
  for (const auto& [name, tensor] : values) {
    absl::StrAppendFormat(&text, "%s%s %.6g", text.empty() ? "" : ", ", name, ValueOf(tensor));
  }
  return text;
}

void WriteSummaries(absl::string_view key, const std::vector<NamedTensor>& values,
                    JsonWriter& json) {
  json.Array(key, values, [&](const NamedTensor& value) { WriteJson(Summarize(value), json); });
}

std::string Duration(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string ToText(const TrainReport& report) {
  std::string text = absl::StrFormat("%s: %s, %s, %.1f samples/s\n", report.program,
                                     Counted(StepsInAll(report), "step"),
                                     Counted(report.epochs, "epoch"), SamplesPerSecond(report));
  if (report.steps_ms.empty()) {
    text += "step      none was left to do\n";
  } else {
    absl::StrAppendFormat(&text,
                          "step      %.3f ms median, first %.1f ms; waited %.1f ms for data\n"
                          "memory    peak %.1f KiB beside parameters and feeds\n",
                          *MedianMs(report), *FirstMs(report), report.data_wait_ms,
                          static_cast<double>(report.peak_bytes) / 1024);
  }
  if (report.pipeline.has_value()) absl::StrAppend(&text, ToText(*report.pipeline));
  if (report.num_skipped > 0) {
    absl::StrAppend(&text, "skipped   ", Counted(report.num_skipped, "damaged sample"), "\n");
  }
  if (!report.fetches.empty()) {
    absl::StrAppend(&text, "last      ", ValuesText(report.fetches), "\n");
  }
  if (!report.evaluation.empty()) {
    absl::StrAppend(&text, "evaluated ", ValuesText(report.evaluation), "\n");
  }
  if (report.num_evaluation_skipped > 0) {
    absl::StrAppend(&text, "skipped   ", report.num_evaluation_skipped,
                    " damaged samples of the evaluation\n");
  }
  if (report.profile != nullptr) absl::StrAppend(&text, report.profile->ToText());
  return text;
}

std::string ToJson(const TrainReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Field("program", report.program);
  json.Field("steps", StepsInAll(report));
  json.Field("epochs", report.epochs);
  json.Field("step_median_ms", MedianMs(report));
  json.Field("first_ms", FirstMs(report));
  json.Field("total_ms", report.total_ms);
  json.Field("samples_per_s", SamplesPerSecond(report));
  json.Field("data_wait_ms", report.data_wait_ms);
  json.Field("skipped_samples", report.num_skipped);
  json.Field("skipped_evaluation_samples", report.num_evaluation_skipped);
  json.Field("peak_bytes", report.peak_bytes);
  if (report.pipeline.has_value()) {
    json.Key("pipeline");
    WriteJson(*report.pipeline, json);
  }
  WriteSummaries("fetches", report.fetches, json);
  WriteSummaries("evaluation", report.evaluation, json);
  if (report.profile != nullptr) {
    json.Key("profile");
    report.profile->WriteJson(json);
  }
  json.EndObject();
  return std::move(json).Take() + "\n";
}

TrainProgress::TrainProgress(int64_t first, int64_t last, bool quiet)
    : first_(first), last_(last), quiet_(quiet), line_(/*wanted=*/!quiet) {}

void TrainProgress::Show(int64_t step, int64_t num_samples, const std::vector<std::string>& names,
                         const std::vector<Tensor>& fetched) {
  if (!line_.IsDue(/*is_last=*/step >= last_)) return;
  const double seconds = line_.seconds();
  const double done = static_cast<double>(step - first_);
  const double left = done > 0 ? seconds / done * static_cast<double>(last_ - step) : 0;
  std::string values;
  for (size_t i = 0; i < fetched.size(); ++i) {
    absl::StrAppendFormat(&values, " %s %.4g", TerminalLine(names[i]), ValueOf(fetched[i]));
  }
  line_.Show(absl::StrFormat("%s step %d/%d%s, %.0f samples/s, %s left",
                             ProgressBar(step - first_, last_ - first_), step, last_, values,
                             num_samples / seconds, Duration(left)));
}

void TrainProgress::Say(const std::string& line) {
  if (quiet_) return;
  line_.Wipe();
  std::fprintf(stderr, "%s\n", TerminalLine(line).c_str());
}

}  // namespace interp
