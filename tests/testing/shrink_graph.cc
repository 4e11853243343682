#include "tests/testing/shrink_graph.h"

#include <algorithm>
#include <utility>

#include "core/each_argument.h"

namespace interp::testing {
namespace {

template <typename Fn>
void ForEachArgument(const std::vector<Slot>& slots, Fn fn) {
  for (const VarId id : EachArgument(slots)) fn(id);
}

// Ops in order without those that read what neither is persistable nor was written before.
std::vector<Op> OnlyReady(const Program& program, std::vector<Op> ops) {
  std::vector<bool> ready(program.names.size(), false);
  for (const Var& var : program.blocks[0].vars) ready[var.id] = var.persistable;
  std::erase_if(ops, [&](const Op& op) {
    bool reads_nothing_else = true;
    ForEachArgument(op.inputs, [&](VarId id) { reads_nothing_else &= ready[id]; });
    if (!reads_nothing_else) return true;
    ForEachArgument(op.outputs, [&](VarId id) { ready[id] = true; });
    return false;
  });
  return ops;
}

void DropUnusedVars(Program& program) {
  std::vector<bool> used(program.names.size(), false);
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      ForEachArgument(op.inputs, [&](VarId id) { used[id] = true; });
      ForEachArgument(op.outputs, [&](VarId id) { used[id] = true; });
    }
  }
  std::erase_if(program.blocks[0].vars, [&](const Var& var) { return !used[var.id]; });
}

// Ops in order without that at `position`: what read its first output reads its first input
// instead. Empty when these are different kinds of values.
std::vector<Op> Bypass(const Program& program, std::vector<Op> ops, size_t position) {
  const Op op = ops[position];
  if (op.inputs.empty() || op.outputs.empty()) return {};
  if (op.inputs[0].args.empty() || op.outputs[0].args.empty()) return {};
  const VarId from = op.outputs[0].args[0];
  const VarId to = op.inputs[0].args[0];
  const std::vector<int32_t> positions = VarPositions(program, program.blocks[0]);
  if (positions[from] < 0 || positions[to] < 0) return {};
  const Var& old_var = program.blocks[0].vars[positions[from]];
  const Var& new_var = program.blocks[0].vars[positions[to]];
  if (old_var.kind != new_var.kind || old_var.dtype != new_var.dtype) return {};
  if (old_var.dims.size() != new_var.dims.size()) return {};
  ops.erase(ops.begin() + static_cast<ptrdiff_t>(position));
  for (size_t i = position; i < ops.size(); ++i) {
    for (Slot& slot : ops[i].inputs) std::replace(slot.args.begin(), slot.args.end(), from, to);
    bool written = false;
    ForEachArgument(ops[i].outputs, [&](VarId id) { written |= id == from; });
    if (written) break;
  }
  return ops;
}

// The program with these ops; feed and fetch columns are counted anew.
ShrunkProgram WithOps(const Program& original, std::vector<Op> ops) {
  ShrunkProgram result{.program = original, .feeds = {}};
  Block& block = result.program.blocks[0];
  block.ops = OnlyReady(original, std::move(ops));
  int32_t num_fetches = 0;
  for (Op& op : block.ops) {
    if (op.type != "feed" && op.type != "fetch") continue;
    for (Attr& attr : op.attrs) {
      if (attr.name != "col") continue;
      const int32_t column = std::get<int32_t>(attr.value);
      if (op.type == "fetch") {
        attr.value = num_fetches++;
      } else {
        attr.value = static_cast<int32_t>(result.feeds.size());
        result.feeds.push_back(column);
      }
    }
  }
  DropUnusedVars(result.program);
  return result;
}

class Shrinker {
 public:
  Shrinker(const Program& program, const std::function<bool(const ShrunkProgram&)>& fails,
           int max_tries)
      : original_(program),
        fails_(fails),
        tries_left_(max_tries),
        ops_(program.blocks[0].ops),
        best_(WithOps(program, ops_)) {}

  ShrunkProgram Run() {
    for (size_t chunk = std::max<size_t>(1, ops_.size() / 2); chunk > 1; chunk /= 2) {
      RemoveChunks(chunk);
    }
    while (tries_left_ > 0 &&
           (RemoveChunks(1) || RemoveNested() || BypassOps() || RemoveArguments())) {
    }
    return std::move(best_);
  }

 private:
  // Columns are those of the original in ops_, so `ops` are kept as they came.
  bool Try(std::vector<Op> ops) {
    if (tries_left_-- <= 0) return false;
    ops = OnlyReady(original_, std::move(ops));
    ShrunkProgram candidate = WithOps(original_, ops);
    if (!fails_(candidate)) return false;
    ops_ = std::move(ops);
    best_ = std::move(candidate);
    return true;
  }

  // From the end, where whatever reads a result comes before what made it.
  bool RemoveChunks(size_t chunk) {
    bool any = false;
    for (size_t end = ops_.size(); end > 0;) {
      const size_t begin = end > chunk ? end - chunk : 0;
      std::vector<Op> ops = ops_;
      ops.erase(ops.begin() + static_cast<ptrdiff_t>(begin),
                ops.begin() + static_cast<ptrdiff_t>(end));
      any |= Try(std::move(ops));
      end = std::min(begin, ops_.size());
    }
    return any;
  }

  // Ops of blocks that others run, one by one.
  bool RemoveNested() {
    bool any = false;
    for (size_t block = 1; block < original_.blocks.size(); ++block) {
      for (size_t op = original_.blocks[block].ops.size(); op-- > 0;) {
        std::vector<Op> before = original_.blocks[block].ops;
        original_.blocks[block].ops.erase(original_.blocks[block].ops.begin() +
                                          static_cast<ptrdiff_t>(op));
        if (Try(ops_)) {
          any = true;
        } else {
          original_.blocks[block].ops = std::move(before);
        }
      }
    }
    return any;
  }

  bool BypassOps() {
    bool any = false;
    for (size_t op = ops_.size(); op-- > 0;) {
      if (op >= ops_.size()) continue;
      std::vector<Op> ops = Bypass(original_, ops_, op);
      if (!ops.empty()) any |= Try(std::move(ops));
    }
    return any;
  }

  bool RemoveArguments() {
    bool any = false;
    for (size_t op = 0; op < ops_.size(); ++op) {
      for (size_t slot = 0; slot < ops_[op].inputs.size(); ++slot) {
        for (size_t arg = ops_[op].inputs[slot].args.size(); arg-- > 0;) {
          if (ops_[op].inputs[slot].args.size() < 2) break;
          std::vector<Op> ops = ops_;
          ArgIds& args = ops[op].inputs[slot].args;
          args.erase(args.begin() + static_cast<ptrdiff_t>(arg));
          any |= Try(std::move(ops));
        }
      }
    }
    return any;
  }

  Program original_;  // but for what was removed from nested blocks
  const std::function<bool(const ShrunkProgram&)>& fails_;
  int tries_left_;
  std::vector<Op> ops_;  // of `best_`, with the original's columns
  ShrunkProgram best_;
};

}  // namespace

ShrunkProgram Shrink(const Program& program, const std::function<bool(const ShrunkProgram&)>& fails,
                     int max_tries) {
  return Shrinker(program, fails, max_tries).Run();
}

}  // namespace interp::testing
