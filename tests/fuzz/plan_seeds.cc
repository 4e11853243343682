// plan_seeds FOLDER: writes plan files of small random programs, which plan_fuzz starts from.
#include <cstdio>
#include <string>

#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/random_graph.h"

int main(int argc, char** argv) {
  using namespace interp;  // NOLINT(google-build-using-namespace): this file is only main
  if (argc != 2) return 2;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const PlanOptions options{.place = {seed % 2 == 0 ? PlaceKind::kSim : PlaceKind::kCpu, 0}};
    const testing::RandomGraph graph =
        testing::MakeRandomGraph(seed, {.num_ops = static_cast<int>(seed % 8) + 1});
    const absl::StatusOr<CompiledProgram> compiled =
        Compile(graph.program, {}, {}, {}, options, testing::ProbeOps());
    const std::string path = absl::StrCat(argv[1], "/random-", seed, ".plan");
    const absl::Status saved = compiled.ok() ? SavePlan(*compiled, path) : compiled.status();
    if (saved.ok()) continue;
    std::fprintf(stderr, "seed %d: %s\n", static_cast<int>(seed), saved.ToString().c_str());
    return 1;
  }
  return 0;
}
