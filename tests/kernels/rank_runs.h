// Programs run by ranks that are threads.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "interpreter/interpreter_core.h"
#include "tests/testing/rank_team.h"

namespace interp::testing {

using RankValues = std::vector<float>;

inline constexpr CommOptions kChecked{.timeout = std::chrono::seconds(60), .check = true};

inline RankValues FloatsOf(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

struct RankRun {
  std::vector<RankValues> fetched;
  std::vector<Shape> shapes;
};

// What each rank fetches when all run `program`, rank r fed feeds(r).
inline absl::StatusOr<std::vector<RankRun>> RunOnRanks(
    int size, const std::function<Program(int)>& program,
    const std::function<std::vector<Tensor>(int)>& feeds, const CoreOptions& options = {}) {
  std::vector<RankRun> runs(size);
  const ThreadRanksOptions slow{.size = size, .longest_delay = std::chrono::microseconds(200)};
  const auto statuses =
      OnAllRanks(slow, kChecked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
        CoreOptions own = options;
        own.rings = rings;
        const int rank = rings->rank();
        INTERP_ASSIGN_OR_RETURN(const auto core,
                                InterpreterCore::Create(program(rank), {}, {}, nullptr, own));
        for (int times = 0; times < 2; ++times) {  // also warm
          INTERP_ASSIGN_OR_RETURN(const auto fetched, core->Run(feeds(rank)));
          runs[rank] = {};
          for (const Tensor& tensor : fetched) {
            runs[rank].fetched.push_back(FloatsOf(tensor));
            runs[rank].shapes.push_back(tensor.shape);
          }
        }
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses) INTERP_RETURN_IF_ERROR(status);
  return runs;
}

}  // namespace interp::testing
