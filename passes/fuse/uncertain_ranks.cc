#include "passes/fuse/uncertain_ranks.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"

namespace interp {
namespace {

// Their result has the rank that attributes say, or they refuse any other input.
constexpr absl::string_view kOwnRank[] = {
    "conv2d", "depthwise_conv2d", "fc",       "flatten", "flatten2",  "mul",
    "pool2d", "reshape",          "reshape2", "shape",   "transpose", "transpose2"};

using DeclaredDims = std::vector<const std::vector<int64_t>*>;  // by VarId; null: not declared

DeclaredDims DimsOf(const Program& program) {
  DeclaredDims dims(program.names.size());
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) dims[var.id] = &var.dims;
  }
  return dims;
}

// A squeeze drops only what has length 1 in a run: any dimension where it lists no axes.
bool MayDropOthers(const Op& op, const DeclaredDims& declared) {
  if (op.type != "squeeze" && op.type != "squeeze2") return false;
  AttrReader attrs(op);
  const std::vector<int64_t> axes = attrs.Ints("axes");
  const Slot* const x = op.FindInput("X");
  if (axes.empty()) return true;
  if (x == nullptr || x->args.size() != 1 || declared[x->args[0]] == nullptr) return false;
  const std::vector<int64_t>& dims = *declared[x->args[0]];
  const auto rank = std::ssize(dims);
  return std::any_of(axes.begin(), axes.end(), [&](int64_t axis) {
    const int64_t at = axis < 0 ? axis + rank : axis;
    return at >= 0 && at < rank && dims[at] != 1;
  });
}

// Whether one more variable is uncertain. `none` stands for no argument.
bool AddResults(const Op& op, VarId none, const DeclaredDims& declared,
                std::vector<bool>& uncertain) {
  if (absl::c_linear_search(kOwnRank, op.type)) {
    return false;
  }
  bool any = MayDropOthers(op, declared);
  for (const VarId id : EachArgument(op.inputs)) any |= uncertain[id];
  if (!any) return false;
  bool more = false;
  for (const VarId id : EachArgument(op.outputs)) {
    if (id == none) continue;
    more |= !uncertain[id];
    uncertain[id] = true;
  }
  return more;
}

}  // namespace

std::vector<bool> FindUncertainRanks(const Program& program) {
  std::vector<bool> uncertain(program.names.size());
  const VarId none = program.Find(kEmptyVarName);
  const DeclaredDims declared = DimsOf(program);
  // Blocks come behind the ops that run them, and loops hand results on to their next round.
  for (bool more = true; more;) {
    more = false;
    for (const Block& block : program.blocks) {
      for (const Op& op : block.ops) more |= AddResults(op, none, declared, uncertain);
    }
  }
  return uncertain;
}

}  // namespace interp
