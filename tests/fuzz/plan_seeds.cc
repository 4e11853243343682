// plan_seeds FOLDER: writes plan files of small random programs, which plan_fuzz starts from.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/random_graph.h"

namespace {

// A value for each parameter, and one for each variable that is folded.
void AddConstants(interp::CompiledProgram& compiled) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  auto packed = std::make_shared<PackedConstants>();
  packed->machine = MachineFingerprint();
  for (const ParamDecl& param : ParamsOf(compiled.program)) {
    if (param.dtype != DType::kInt64) continue;
    packed->parameters.emplace_back(param.name, Tensor::Of<int64_t>({2}, {1, 2}));
    packed->parameter_checksums.push_back(ChecksumOf(packed->parameters.back().second));
  }
  PackedEntry folded{.instruction = -1, .key = kFoldedKey};
  const Plan& plan = compiled.main();
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    if (!plan.vars[id].folded || plan.vars[id].dtype != DType::kInt64) continue;
    folded.vars.push_back(static_cast<VarId>(id));
    folded.tensors.push_back(Tensor::Of<int64_t>({2}, {3, 4}));
    folded.checksums.push_back(ChecksumOf(folded.tensors.back()));
  }
  if (!folded.vars.empty()) packed->entries.push_back(std::move(folded));
  compiled.packed = std::move(packed);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace interp;  // NOLINT(google-build-using-namespace): this file is only main
  if (argc != 2) return 2;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const PlanOptions options{.place = {seed % 2 == 0 ? PlaceKind::kSim : PlaceKind::kCpu, 0}};
    const testing::RandomGraph graph =
        testing::MakeRandomGraph(seed, {.num_ops = static_cast<int>(seed % 8) + 1});
    absl::StatusOr<CompiledProgram> compiled =
        Compile(graph.program, {}, {}, {}, options, testing::ProbeOps());
    if (compiled.ok() && seed % 4 == 1) AddConstants(*compiled);
    const std::string path = absl::StrCat(argv[1], "/random-", seed, ".plan");
    const absl::Status saved = compiled.ok() ? SavePlan(*compiled, path) : compiled.status();
    if (saved.ok()) continue;
    std::fprintf(stderr, "seed %d: %s\n", static_cast<int>(seed), saved.ToString().c_str());
    return 1;
  }
  return 0;
}
