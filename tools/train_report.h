// What `interp train` measured, how it prints it, and its progress on a terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "tools/pipeline_report.h"
#include "tools/profile.h"
#include "tools/progress.h"

namespace interp {

struct TrainReport {
  std::string program;
  int64_t first_step = 0;  // steps that were done before this process began
  int64_t epochs = 0;      // finished ones, in all
  std::vector<double> steps_ms;
  double total_ms = 0;                  // of all steps and what lies between them
  double data_wait_ms = 0;              // of it, waiting for data
  int64_t num_samples = 0;              // that were trained on
  int64_t num_skipped = 0;              // samples that were damaged and left out of these steps
  uint64_t peak_bytes = 0;              // most that a step took at once, parameters and feeds apart
  std::vector<NamedTensor> fetches;     // of the last step
  std::vector<NamedTensor> evaluation;  // of the last evaluation; empty: none
  int64_t num_evaluation_skipped = 0;   // damaged samples that it left out
  const Profile* profile = nullptr;
  std::optional<PipelineReport> pipeline;  // with micro-batches
};

std::string ToText(const TrainReport& report);
std::string ToJson(const TrainReport& report);

// One line on a terminal: how far, losses, speed, time left. Nothing where standard error is none.
class TrainProgress {
 public:
  // Steps from `first` to `last`.
  TrainProgress(int64_t first, int64_t last, bool quiet);

  void Show(int64_t step, int64_t num_samples, const std::vector<std::string>& names,
            const std::vector<Tensor>& fetched);
  // Puts a line above the progress.
  void Say(const std::string& line);

 private:
  const int64_t first_;
  const int64_t last_;
  const bool quiet_;
  ProgressLine line_;
};

}  // namespace interp
