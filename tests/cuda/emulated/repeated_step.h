// A training program of Paddle on a GPU, whose first step runs again and again.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/program_load.h"
#include "tests/testing/golden_steps.h"
#include "tests/testing/matchers.h"

namespace interp::cuda_test {

// A training program of Paddle on cuda:0, whose first step may be run again and again.
class Steps {
 public:
  explicit Steps(const std::string& name, bool graphs = false) {
    for (const std::string& folder : testing::AllGoldenPrograms()) {
      if (!absl::EndsWith(folder, absl::StrCat("/", name))) continue;
      absl::StatusOr<testing::GoldenProgram> golden = testing::ReadGoldenProgram(folder);
      EXPECT_THAT(golden, testing::IsOk());
      golden_ = *std::move(golden);
    }
    for (const std::string& feed : golden_.feed_order) {
      feeds_.push_back(testing::FindValue(golden_.steps[0].feeds, feed));
    }
    absl::StatusOr<Program> program = LoadProgram(golden_.program);
    EXPECT_THAT(program, testing::IsOk());
    CoreOptions options;
    options.passes.disable = {"prune"};
    options.plan.place = {PlaceKind::kCuda, 0};
    options.cuda_graphs = graphs;
    auto core = InterpreterCore::Create(*std::move(program), golden_.feed_order,
                                        golden_.fetch_order, scope_, options);
    status_ = core.status();
    if (core.ok()) core_ = *std::move(core);
  }

  // Runs the first step from the initial parameters.
  absl::Status Run() {
    INTERP_RETURN_IF_ERROR(status_);
    INTERP_RETURN_IF_ERROR(testing::FillScope(golden_.initial, *scope_));
    return RunAgain();
  }
  // From what the run before has left.
  absl::Status RunAgain() {
    INTERP_ASSIGN_OR_RETURN(results_, core_->Run(feeds_));
    return absl::OkStatus();
  }

  GraphStats graph_stats() const { return core_->graph_stats().value_or(GraphStats{}); }

  // What the last run gave that Paddle did not; empty when all is right.
  std::vector<std::string> Wrong() const {
    std::vector<std::string> wrong;
    for (size_t i = 0; i < results_.size(); ++i) {
      const Tensor want = testing::FindValue(golden_.steps[0].fetches, golden_.fetch_order[i]);
      std::string difference = testing::Difference(results_[i], want, golden_.rtol, golden_.atol);
      if (!difference.empty()) wrong.push_back(std::move(difference));
    }
    return wrong;
  }

 private:
  testing::GoldenProgram golden_;
  std::vector<Tensor> feeds_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  absl::Status status_;
  std::unique_ptr<InterpreterCore> core_;
  std::vector<Tensor> results_;
};

}  // namespace interp::cuda_test
