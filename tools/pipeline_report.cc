#include "tools/pipeline_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/sizes.h"
#include "tools/xml_text.h"

namespace interp {
namespace {

constexpr double kChartWidth = 1080;
constexpr double kChartLeft = 120;
constexpr double kRowHeight = 34;
constexpr double kRowGap = 8;
constexpr double kAxisHeight = 28;

std::string JobsText(const PipelineReport& report, size_t stage) {
  return absl::StrJoin(report.jobs[stage], " ", [&](std::string* out, const Job& job) {
    absl::StrAppend(out, NameOf(report.schedule, job));
  });
}

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string StagesText(const JobSchedule& schedule) {
  std::string text = Counted(schedule.stages, "stage");
  if (schedule.chunks > 1) absl::StrAppend(&text, " of ", Counted(schedule.chunks, "chunk"));
  return text;
}

// Jobs as boxes, stages as rows, time to the right.
class Chart {
 public:
  explicit Chart(const PipelineTimes& times)
      : times_(times),
        height_(kAxisHeight + static_cast<double>(times.stages.size()) * (kRowHeight + kRowGap)) {}

  std::string Draw() {
    absl::StrAppendFormat(&svg_,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
                          "font-family=\"sans-serif\" font-size=\"12\">\n",
                          kChartWidth, height_);
    for (size_t stage = 0; stage < times_.stages.size(); ++stage) DrawRow(stage);
    for (const JobTime& job : times_.jobs) DrawJob(job);
    DrawAxis();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  double X(int64_t ns) const {
    const auto all = static_cast<double>(std::max<int64_t>(times_.end_ns - times_.start_ns, 1));
    return kChartLeft +
           (kChartWidth - kChartLeft - 8) * static_cast<double>(ns - times_.start_ns) / all;
  }
  static double Y(int32_t stage) { return stage * (kRowHeight + kRowGap); }

  void DrawRow(size_t stage) {
    const double y = Y(static_cast<int32_t>(stage));
    absl::StrAppendFormat(&svg_,
                          "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#f1f1f1\"/>\n"
                          "<text x=\"4\" y=\"%g\">stage %d, %s</text>\n",
                          kChartLeft, y, X(times_.end_ns) - kChartLeft, kRowHeight, y + 21,
                          static_cast<int>(stage), Name(times_.stages[stage].place));
  }

  void DrawJob(const JobTime& job) {
    constexpr double kWidthOfLetter = 8;
    const double x = X(job.start_ns);
    const double width = X(job.end_ns) - x;
    const bool forward = absl::StartsWith(job.name, "F");
    absl::StrAppendFormat(
        &svg_,
        "<rect x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%g\" fill=\"%s\" stroke=\"#fff\" "
        "stroke-width=\"0.6\"><title>%s: %.1f to %.1f us</title></rect>\n",
        x, Y(job.stage), width, kRowHeight, forward ? "#8fbde0" : "#e2a47f", XmlText(job.name),
        1e-3 * static_cast<double>(job.start_ns), 1e-3 * static_cast<double>(job.end_ns));
    if (width < kWidthOfLetter * static_cast<double>(job.name.size())) return;
    absl::StrAppendFormat(&svg_, "<text x=\"%.2f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
                          x + width / 2, Y(job.stage) + 21, XmlText(job.name));
  }

  void DrawAxis() {
    constexpr int kTicks = 8;
    for (int i = 0; i <= kTicks; ++i) {
      const int64_t ns = times_.start_ns + (times_.end_ns - times_.start_ns) * i / kTicks;
      absl::StrAppendFormat(
          &svg_, "<text x=\"%.2f\" y=\"%g\" fill=\"#666\" text-anchor=\"%s\">%.0f us</text>\n",
          X(ns), height_ - 8,
          i == 0        ? "start"
          : i == kTicks ? "end"
                        : "middle",
          1e-3 * static_cast<double>(ns - times_.start_ns));
    }
  }

  const PipelineTimes& times_;
  const double height_;
  std::string svg_;
};

}  // namespace

PipelineReport ReportPipeline(const JobSchedule& schedule, std::optional<PipelineTimes> times) {
  PipelineReport report{.schedule = schedule, .jobs = {}, .times = {}};
  for (int32_t stage = 0; stage < schedule.stages; ++stage) {
    report.jobs.push_back(JobsOfStage(schedule, stage));
  }
  if (times.has_value() && times->simulated) report.times = std::move(times);
  return report;
}

std::string ToText(const PipelineReport& report) {
  const JobSchedule& schedule = report.schedule;
  if (schedule.segments() == 1) {
    return absl::StrCat("batches   in ", schedule.micro_batches, " micro-batches\n");
  }
  const std::string formula = Percent(BubbleByFormula(schedule));
  return absl::StrCat("pipeline  ", Name(schedule.kind), ", ", schedule.micro_batches,
                      " micro-batches through ", StagesText(schedule), "; bubble ",
                      report.times.has_value()
                          ? absl::StrCat(Percent(report.times->bubble), ", by formula ", formula)
                          : absl::StrCat("by formula ", formula),
                      "\n");
}

std::string StagesToText(const PipelineReport& report) {
  std::string text;
  for (size_t stage = 0; stage < report.jobs.size(); ++stage) {
    absl::StrAppend(&text, "stage ", stage, "  keeps ", MostInFlight(report.jobs[stage]),
                    " at most: ", JobsText(report, stage), "\n");
  }
  return text;
}

void WriteJson(const PipelineReport& report, JsonWriter& json) {
  const JobSchedule& schedule = report.schedule;
  const std::optional<PipelineTimes>& times = report.times;
  json.BeginObject();
  json.Field("schedule", Name(schedule.kind));
  json.Field("micro_batches", schedule.micro_batches);
  json.Field("chunks", schedule.chunks);
  json.Field("bubble_by_formula", BubbleByFormula(schedule));
  json.Field("bubble", times.has_value() ? std::optional<double>(times->bubble) : std::nullopt);
  json.Key("stages");
  json.BeginArray();
  for (size_t stage = 0; stage < report.jobs.size(); ++stage) {
    const bool timed = times.has_value() && stage < times->stages.size();
    json.BeginObject();
    json.Field("jobs", JobsText(report, stage));
    json.Field("most_in_flight", MostInFlight(report.jobs[stage]));
    json.Field("place",
               timed ? std::optional<std::string>(Name(times->stages[stage].place)) : std::nullopt);
    json.Field("busy_ns",
               timed ? std::optional<int64_t>(times->stages[stage].busy_ns) : std::nullopt);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

std::string ToPage(const PipelineReport& report, const std::string& title) {
  const PipelineTimes& times = *report.times;
  std::string page = absl::StrFormat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>%s</title>\n"
      "<style>body{font-family:sans-serif;margin:24px}td{padding:2px 14px 2px 0;"
      "vertical-align:top}</style></head>\n<body>\n<h1>%s</h1>\n<p>%s, %d micro-batches through "
      "%s. The stages wait %s of the time between the first job and the last; by the formula, for "
      "jobs that all take the same time and messages that take none, %s.</p>\n",
      XmlText(title), XmlText(title), Name(report.schedule.kind), report.schedule.micro_batches,
      StagesText(report.schedule), Percent(times.bubble),
      Percent(BubbleByFormula(report.schedule)));
  page += Chart(times).Draw();
  page += "<table><tr><td>stage</td><td>busy</td><td>most in flight</td><td>jobs</td></tr>\n";
  const auto all = static_cast<double>(std::max<int64_t>(times.end_ns - times.start_ns, 1));
  for (size_t stage = 0; stage < std::min(report.jobs.size(), times.stages.size()); ++stage) {
    absl::StrAppendFormat(&page, "<tr><td>%d</td><td>%s</td><td>%d</td><td>%s</td></tr>\n",
                          static_cast<int>(stage),
                          Percent(static_cast<double>(times.stages[stage].busy_ns) / all),
                          MostInFlight(report.jobs[stage]), JobsText(report, stage));
  }
  page += "</table>\n</body>\n</html>\n";
  return page;
}

}  // namespace interp
