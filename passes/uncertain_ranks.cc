#include "passes/uncertain_ranks.h"

#include <algorithm>
#include <iterator>

#include "core/attr_reader.h"

namespace interp {
namespace {

// Their result has the rank that attributes say, or they refuse any other input.
constexpr absl::string_view kOwnRank[] = {
    "conv2d", "depthwise_conv2d", "fc",       "flatten", "flatten2",  "mul",
    "pool2d", "reshape",          "reshape2", "shape",   "transpose", "transpose2"};

bool DropsAnyUnit(const Op& op) {
  if (op.type != "squeeze" && op.type != "squeeze2") return false;
  AttrReader attrs(op);
  return attrs.Ints("axes").empty();
}

// Whether one more variable is uncertain. `none` stands for no argument.
bool AddResults(const Op& op, VarId none, std::vector<bool>& uncertain) {
  if (std::find(std::begin(kOwnRank), std::end(kOwnRank), op.type) != std::end(kOwnRank)) {
    return false;
  }
  bool any = DropsAnyUnit(op);
  for (const Slot& slot : op.inputs) {
    for (const VarId id : slot.args) any |= uncertain[id];
  }
  if (!any) return false;
  bool more = false;
  for (const Slot& slot : op.outputs) {
    for (const VarId id : slot.args) {
      if (id == none) continue;
      more |= !uncertain[id];
      uncertain[id] = true;
    }
  }
  return more;
}

}  // namespace

std::vector<bool> FindUncertainRanks(const Program& program) {
  std::vector<bool> uncertain(program.names.size());
  const VarId none = program.Find(kEmptyVarName);
  // Blocks come behind the ops that run them, and loops hand results on to their next round.
  for (bool more = true; more;) {
    more = false;
    for (const Block& block : program.blocks) {
      for (const Op& op : block.ops) more |= AddResults(op, none, uncertain);
    }
  }
  return uncertain;
}

}  // namespace interp
