// RankTeam: ranks as threads of the test, joined in rings.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/comm/rings.h"
#include "core/comm/thread_ranks.h"

namespace interp::testing {

// Runs `body` for each rank on a thread of its own, and returns what each has returned. Ranks join
// before any of them starts.
inline std::vector<absl::Status> OnAllRanks(
    const ThreadRanksOptions& options, const CommOptions& comm,
    const std::function<absl::Status(const std::shared_ptr<Rings>&, ThreadRanks&)>& body) {
  ThreadRanks ranks(options);
  std::vector<std::shared_ptr<Rings>> rings;
  for (int rank = 0; rank < options.size; ++rank) {
    rings.push_back(*Rings::Join(ranks.Of(rank), comm));
  }
  std::vector<absl::Status> statuses(options.size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.size; ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = body(rings[rank], ranks); });
  }
  for (std::thread& thread : threads) thread.join();
  rings.clear();  // before `ranks`
  return statuses;
}

}  // namespace interp::testing
