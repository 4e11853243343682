#include "interpreter/inspect/memory_estimate.h"

#include <algorithm>
#include <vector>

#include "interpreter/analysis/variable_table.h"

namespace interp {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 62;  // sums of damaged programs end here

uint64_t SaturatingAdd(uint64_t a, uint64_t b) { return std::min(kMaxBytes, a + b); }

// Walks a plan in its trace order and keeps account of what is alive. Variables that share memory
// count once, with the size of the largest.
class MemoryAccount {
 public:
  MemoryAccount(const Plan& plan, const Program& program)
      : plan_(plan),
        elements_(plan.vars.size(), 0),
        live_(plan.vars.size(), false),
        storage_bytes_(plan.vars.size(), 0),
        storage_users_(plan.vars.size(), 0) {
    ReadDeclaredShapes(program);
  }

  MemoryEstimate Walk() {
    for (const InstrId id : plan_.order) {
      for (size_t arg = 0; arg < plan_.instructions[id].outputs.size(); ++arg) {
        Write(plan_.instructions[id], arg);
      }
      for (const VarId dead : plan_.frees_in_order[id]) Free(dead);
    }
    return estimate_;
  }

 private:
  void ReadDeclaredShapes(const Program& program) {
    unknown_.resize(plan_.vars.size(), false);
    for (const Var& var : program.blocks[plan_.block].vars) {
      const VarId id = FindVar(plan_, var.id);
      if (id < 0) continue;
      uint64_t count = 1;
      for (const int64_t dim : var.dims) {
        if (dim < 0) unknown_[id] = true;
        const auto factor = static_cast<uint64_t>(dim < 0 ? 1 : dim);
        count = factor != 0 && count > kMaxBytes / 16 / factor ? kMaxBytes / 16 : count * factor;
      }
      elements_[id] = count;
    }
  }

  // Feeds lie in memory of the caller, parameters in the root scope.
  bool Counts(const Instruction& instruction, VarId id) const {
    const PlanVar& var = plan_.vars[id];
    return var.kind == VarKind::kLodTensor && !var.persistable && instruction.op_type != "feed";
  }

  void Write(const Instruction& instruction, size_t arg) {
    const VarId id = instruction.outputs[arg];
    if (id < 0 || !Counts(instruction, id) || live_[id]) return;
    if (instruction.op_index < 0 && instruction.inputs[0] >= 0) {
      elements_[id] = elements_[instruction.inputs[0]];  // a transfer keeps the shape
    } else if (unknown_[id]) {
      ++estimate_.num_unknown_shapes;
    }
    const uint64_t bytes = elements_[id] * SizeOf(instruction.output_dtypes[arg]);
    live_[id] = true;
    estimate_.total_bytes = SaturatingAdd(estimate_.total_bytes, bytes);
    const int32_t storage = plan_.vars[id].storage;
    ++storage_users_[storage];
    const uint64_t grown = std::max(storage_bytes_[storage], bytes) - storage_bytes_[storage];
    storage_bytes_[storage] += grown;
    current_bytes_ = SaturatingAdd(current_bytes_, grown);
    estimate_.peak_bytes = std::max(estimate_.peak_bytes, current_bytes_);
  }

  void Free(VarId id) {
    if (!live_[id]) return;
    live_[id] = false;
    const int32_t storage = plan_.vars[id].storage;
    if (--storage_users_[storage] > 0) return;
    current_bytes_ -= std::min(current_bytes_, storage_bytes_[storage]);
    storage_bytes_[storage] = 0;
  }

  const Plan& plan_;
  std::vector<uint64_t> elements_;       // by VarId
  std::vector<bool> unknown_;            // by VarId: declared with unknown dims
  std::vector<bool> live_;               // by VarId
  std::vector<uint64_t> storage_bytes_;  // by storage id
  std::vector<int32_t> storage_users_;   // by storage id: live variables
  uint64_t current_bytes_ = 0;
  MemoryEstimate estimate_;
};

}  // namespace

MemoryEstimate EstimateMemory(const Plan& plan, const Program& program) {
  return MemoryAccount(plan, program).Walk();
}

}  // namespace interp
