#include "interpreter/analysis/storage.h"

#include <algorithm>
#include <numeric>

namespace interp {
namespace {

int32_t Root(std::vector<int32_t>& parents, int32_t id) {
  while (parents[id] != id) {
    parents[id] = parents[parents[id]];
    id = parents[id];
  }
  return id;
}

}  // namespace

void AnalyzeStorage(const std::vector<Instruction>& instructions, std::vector<PlanVar>& vars) {
  std::vector<int32_t> parents(vars.size());
  std::iota(parents.begin(), parents.end(), 0);
  for (const Instruction& instruction : instructions) {
    for (const InplacePair& pair : instruction.share) {
      const int32_t a = Root(parents, instruction.inputs[pair.input]);
      const int32_t b = Root(parents, instruction.outputs[pair.output]);
      parents[std::max(a, b)] = std::min(a, b);
    }
  }
  for (size_t id = 0; id < vars.size(); ++id) {
    vars[id].storage = Root(parents, static_cast<int32_t>(id));
  }
}

}  // namespace interp
