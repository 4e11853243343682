// What `interp train` and `interp dump` tell of steps in micro-batches: text, JSON and a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_writer.h"
#include "interpreter/inspect/job_times.h"
#include "passes/train/job_schedule.h"

namespace interp {

struct PipelineReport {
  JobSchedule schedule;
  std::vector<std::vector<Job>> jobs;  // by stage, in its order
  // Of the last step, where stages are on simulated devices.
  std::optional<PipelineTimes> times;
};
PipelineReport ReportPipeline(const JobSchedule& schedule, std::optional<PipelineTimes> times);

// A line.
std::string ToText(const PipelineReport& report);
// A line for each stage: its jobs in their order.
std::string StagesToText(const PipelineReport& report);
// An object.
void WriteJson(const PipelineReport& report, JsonWriter& json);

// A page that is complete in itself: a row for each stage with its jobs over simulated time. What
// stays empty is the bubble. REQUIRES: there are times.
std::string ToPage(const PipelineReport& report, const std::string& title);

}  // namespace interp
