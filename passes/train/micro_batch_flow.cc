#include "passes/train/micro_batch_flow.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "core/gradient.h"
#include "core/op_role.h"
#include "core/sub_blocks.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

// Their results are multiples of the weight only where all inputs are.
bool IsAdditive(const Op& op) {
  constexpr absl::string_view kTypes[] = {
      "sum",  "elementwise_add", "elementwise_sub", "elementwise_max", "elementwise_min", "concat",
      "stack"};
  return absl::c_linear_search(kTypes, op.type);
}

bool MakesZeros(const Op& op) {
  if (op.type == "fill_zeros_like") return true;
  if (op.type != "fill_constant" && op.type != "fill_any_like") return false;
  for (const Slot& slot : op.inputs) {
    if (slot.name == "ValueTensor" && !slot.args.empty()) return false;
  }
  const Attr* const text = op.FindAttr("str_value");
  if (text != nullptr) {
    const auto* const digits = std::get_if<std::string>(&text->value);
    if (digits == nullptr || (!digits->empty() && *digits != "0" && *digits != "0.0")) return false;
  }
  const Attr* const attr = op.FindAttr("value");
  const auto* const value = attr == nullptr ? nullptr : std::get_if<float>(&attr->value);
  return value != nullptr && *value == 0;
}

class JobFollower {
 public:
  JobFollower(const Program& main, const std::vector<VarId>& samples,
              const std::vector<VarId>& states)
      : main_(main) {
    const size_t num_vars = main.names.size();
    flow_.starts.assign(main.blocks[0].ops.size(), false);
    flow_.weighting.assign(num_vars, Weighting::kNone);
    flow_.of_samples.assign(num_vars, false);
    flow_.of_states.assign(num_vars, false);
    for (const VarId id : samples) flow_.of_samples[id] = true;
    for (const VarId id : states) {
      flow_.of_states[id] = true;
      flow_.weighting[id] = Weighting::kZero;  // a sum over micro-batches begins with anything
    }
    states_ = flow_.of_states;
  }

  MicroBatchFlow Run(const std::vector<int32_t>& job_of) {
    for (size_t i = 0; i < job_of.size(); ++i) {
      if (job_of[i] >= 0) Follow(i);
    }
    return std::move(flow_);
  }

 private:
  void Follow(size_t i) {
    const Op& op = main_.blocks[0].ops[i];
    // Of an op that runs a block: what the block uses. It may leave what it writes as it was.
    const OpUses inner = HasSubBlock(op) ? UsesOf(main_, op) : OpUses();
    bool of_samples = false;
    bool of_states = false;
    for (const Slot& slot : op.inputs) {
      const bool unused = MovesAverages(op) && IsAverage(slot);
      for (const VarId id : slot.args) {
        of_samples = of_samples || flow_.of_samples[id];
        of_states = of_states || (flow_.of_states[id] && !unused);
      }
    }
    for (const std::vector<VarId>* const ids : {&inner.reads, &inner.writes}) {
      for (const VarId id : *ids) {
        of_samples = of_samples || flow_.of_samples[id];
        of_states = of_states || flow_.of_states[id];
      }
    }
    Weighting weighting = WeightingOf(op);
    if (RoleOf(op) == (kBackwardRole | kLossRole) && weighting != Weighting::kOnce) {
      flow_.starts[i] = true;
      weighting = Weighting::kOnce;
    }
    const auto note = [&](VarId id) {
      flow_.of_samples[id] = of_samples;
      flow_.of_states[id] = of_states || states_[id];
      flow_.weighting[id] = weighting;
    };
    for (const Slot& slot : op.outputs) std::for_each(slot.args.begin(), slot.args.end(), note);
    std::for_each(inner.writes.begin(), inner.writes.end(), note);
  }

  Weighting WeightingOf(const Op& op) const {
    if (MakesZeros(op)) return Weighting::kZero;
    const bool gradient = absl::EndsWith(op.type, "_grad");
    const bool additive = gradient || IsAdditive(op);
    bool has[4] = {false, false, false, false};
    for (const Slot& slot : op.inputs) {
      // A gradient is a multiple of those that it is given.
      if (gradient && !absl::EndsWith(slot.name, kGradientSuffix)) continue;
      for (const VarId id : slot.args) {
        if (main_.NameOf(id) != kEmptyVarName) has[static_cast<int>(flow_.weighting[id])] = true;
      }
    }
    const bool none = has[static_cast<int>(Weighting::kNone)];
    const bool once = has[static_cast<int>(Weighting::kOnce)];
    if (has[static_cast<int>(Weighting::kMixed)]) return Weighting::kMixed;
    if (once) return additive && none ? Weighting::kMixed : Weighting::kOnce;
    const bool zero = has[static_cast<int>(Weighting::kZero)];
    return additive && zero && !none ? Weighting::kZero : Weighting::kNone;
  }

  const Program& main_;
  std::vector<bool> states_;  // by VarId
  MicroBatchFlow flow_;
};

}  // namespace

MicroBatchFlow FlowOfMicroBatch(const Program& main, const std::vector<int32_t>& job_of,
                                const std::vector<VarId>& samples,
                                const std::vector<VarId>& states) {
  return JobFollower(main, samples, states).Run(job_of);
}

bool MovesAverages(const Op& op) { return op.type == "batch_norm" || op.type == "sync_batch_norm"; }

bool IsAverage(const Slot& slot) {
  return slot.name == "Mean" || slot.name == "Variance" || slot.name == "MeanOut" ||
         slot.name == "VarianceOut";
}

bool OnlyMoves(const Op& op, const Slot& input) {
  const bool gradient = op.type == "batch_norm_grad" || op.type == "sync_batch_norm_grad";
  return (gradient || MovesAverages(op)) && IsAverage(input) && !IsInTestMode(op);
}

}  // namespace interp
