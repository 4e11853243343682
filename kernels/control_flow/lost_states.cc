#include "kernels/control_flow/lost_states.h"

#include <algorithm>
#include <limits>
#include <set>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/attr_reader.h"
#include "core/sub_blocks.h"
#include "kernels/control_flow/block_op.h"

namespace interp::control_flow {
namespace {

constexpr int kUnreached = std::numeric_limits<int>::max();

const Var* Declaration(const Program& program, int32_t block, VarId id) {
  for (const Var& var : program.blocks[block].vars) {
    if (var.id == id) return &var;
  }
  return nullptr;
}

// Dims of -1 fit any.
bool MayBeAlike(const Var* a, const Var* b) {
  if (a == nullptr || b == nullptr) return true;
  if (a->dtype != b->dtype || a->dims.size() != b->dims.size()) return false;
  return std::equal(a->dims.begin(), a->dims.end(), b->dims.begin(),
                    [](int64_t m, int64_t n) { return m == n || m < 0 || n < 0; });
}

// What the ops of `block`, and of the blocks that they run, write.
void CollectWritten(const Program& program, int32_t block, std::set<int32_t>& seen,
                    absl::flat_hash_set<VarId>& written) {
  if (block < 0 || block >= std::ssize(program.blocks) || !seen.insert(block).second) return;
  for (const Op& op : program.blocks[block].ops) {
    for (const Slot& slot : op.outputs) written.insert(slot.args.begin(), slot.args.end());
    ForEachSubBlock(op, [&](int32_t inner) { CollectWritten(program, inner, seen, written); });
  }
}

// The fewest ops of the block that lead from `start` to each variable. Ops are in order.
absl::flat_hash_map<VarId, int> Distances(const Block& block, VarId start) {
  absl::flat_hash_map<VarId, int> distances = {{start, 0}};
  for (const Op& op : block.ops) {
    int nearest = kUnreached;
    for (const Slot& slot : op.inputs) {
      for (const VarId id : slot.args) {
        const auto it = distances.find(id);
        if (it != distances.end()) nearest = std::min(nearest, it->second);
      }
    }
    if (nearest == kUnreached) continue;
    for (const Slot& slot : op.outputs) {
      for (const VarId id : slot.args) distances.try_emplace(id, nearest + 1);
    }
  }
  return distances;
}

class StateFinder {
 public:
  StateFinder(const Program& program, const Op& op, int32_t block)
      : program_(program), block_(block) {
    std::set<int32_t> seen;
    CollectWritten(program, block, seen, written_);
    if (const Slot* outputs = op.FindOutput("outputs")) outputs_ = outputs->args;
  }

  // Whether a step leaves a value of that name, or may find one outside the block.
  bool Has(const std::string& name) const {
    const VarId id = program_.Find(name);
    if (id < 0) return false;
    if (written_.contains(id)) return true;
    for (int32_t b = 0; b < std::ssize(program_.blocks); ++b) {
      if (b != block_ && Declaration(program_, b, id) != nullptr) return true;
    }
    return false;
  }

  // The output that the state `before` goes on as; -1 where that cannot be told.
  VarId Nearest(const std::string& before) const {
    const VarId start = program_.Find(before);
    if (start < 0) return -1;
    const absl::flat_hash_map<VarId, int> distances = Distances(program_.blocks[block_], start);
    const Var* declared = Declaration(program_, block_, start);
    int fewest = kUnreached;
    VarId nearest = -1;
    for (const VarId output : outputs_) {
      const auto it = distances.find(output);
      if (it == distances.end() || it->second > fewest) continue;
      if (!MayBeAlike(declared, Declaration(program_, block_, output))) continue;
      nearest = it->second < fewest ? output : -1;
      fewest = it->second;
    }
    return nearest;
  }

 private:
  const Program& program_;
  const int32_t block_;
  absl::flat_hash_set<VarId> written_;
  ArgIds outputs_;
};

}  // namespace

absl::StatusOr<StateNames> ReadStates(const Op& op) {
  AttrReader attrs(op);
  StateNames states = {attrs.Strings("ex_states"), attrs.Strings("states")};
  INTERP_RETURN_IF_ERROR(attrs.status());
  const Slot* const initial = op.FindInput("initial_states");
  const size_t count = initial == nullptr ? 0 : initial->args.size();
  if (states.before.size() == count && states.after.size() == count) return states;
  return InvalidArgument("has ", count, " initial states, ", states.before.size(),
                         " names in 'ex_states' and ", states.after.size(), " in 'states'");
}

absl::StatusOr<std::vector<std::string>> FindStates(const Program& program, const Op& op,
                                                    const std::vector<std::string>& before,
                                                    std::vector<std::string> after) {
  const int32_t block = SubBlockOf(op);
  if (before.size() != after.size() || block < 0 || block >= std::ssize(program.blocks)) {
    return after;  // what is wrong is said elsewhere
  }
  const StateFinder finder(program, op, block);
  absl::flat_hash_set<std::string> taken;
  for (size_t i = 0; i < after.size(); ++i) {
    if (finder.Has(after[i])) continue;
    const VarId found = finder.Nearest(before[i]);
    if (found < 0 || !taken.insert(program.NameOf(found)).second) {
      return InvalidArgument("no op of block ", block, " makes the state '", after[i],
                             "', what the next step has as '", before[i],
                             "': pruning has removed it, and no output of the step is clearly the "
                             "same value; save the program with a newer Paddle, or unpruned");
    }
    after[i] = program.NameOf(found);
  }
  return after;
}

}  // namespace interp::control_flow
