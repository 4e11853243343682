// What `interp train` leaves of each step.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "tools/loss_plot.h"

namespace interp {

// The one value of a fetch as a number: of a tensor of one element that, of a larger one the mean.
double ValueOf(const Tensor& fetch);

// A CSV file that grows by a line a step: `step` and one column per fetch. Lines are written as
// they come, so that a run that is killed leaves those of its steps.
class TrainLog {
 public:
  // `path` empty: no file. `after`: the steps of a run that goes on; their lines stay, later ones
  // go, and so do those that are not whole.
  static absl::StatusOr<TrainLog> Create(const std::string& path,
                                         const std::vector<std::string>& fetches, int64_t after);

  absl::Status Add(int64_t step, const std::vector<Tensor>& fetched);
  // Everything is in the file.
  absl::Status Flush();
  // All that Add was given.
  const std::vector<Curve>& curves() const { return curves_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<Curve> curves_;
};

}  // namespace interp
