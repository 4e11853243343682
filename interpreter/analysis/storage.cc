#include "interpreter/analysis/storage.h"

#include <algorithm>

#include "core/base/disjoint_sets.h"

namespace interp {

void AnalyzeStorage(const std::vector<Instruction>& instructions, std::vector<PlanVar>& vars) {
  DisjointSets storages(vars.size());
  for (const Instruction& instruction : instructions) {
    for (const InplacePair& pair : instruction.share) {
      const int32_t a = storages.Root(instruction.inputs[pair.input]);
      const int32_t b = storages.Root(instruction.outputs[pair.output]);
      storages.Join(std::min(a, b), std::max(a, b));
    }
  }
  for (size_t id = 0; id < vars.size(); ++id) {
    vars[id].storage = storages.Root(static_cast<int32_t>(id));
  }
}

}  // namespace interp
