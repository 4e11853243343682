#include "passes/train/loss_scaling.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "passes/make_op.h"
#include "passes/train/state_writer.h"

namespace interp {
namespace {

bool IsOptimizerOp(const Op& op) { return (RoleOf(op) & kOptimizeRole) != 0; }

class LossScaler {
 public:
  LossScaler(Program& main, Program& startup, const LossScalingOptions& options,
             const OpRegistry& ops)
      : main_(main), writer_(main, startup), options_(options), registry_(ops) {}

  absl::Status Run() {
    INTERP_RETURN_IF_ERROR(FindParts());
    INTERP_RETURN_IF_ERROR(FindGradients());
    DeclareStates();
    for (size_t i = update_; i < ops().size(); ++i) SkipWhereItCan(ops()[i]);
    std::vector<Op> before_update = {CheckAndUnscale()};
    if (options_.dynamic) before_update.push_back(UpdateScale());
    ops().insert(ops().begin() + static_cast<std::ptrdiff_t>(update_), before_update.begin(),
                 before_update.end());
    ops().insert(ops().begin() + static_cast<std::ptrdiff_t>(seed_) + 1, ScaleSeed());
    return absl::OkStatus();
  }

 private:
  std::vector<Op>& ops() { return main_.blocks[0].ops; }

  absl::Status FindParts() {
    const auto seed = std::find_if(ops().begin(), ops().end(), [](const Op& op) {
      return RoleOf(op) == (kBackwardRole | kLossRole) && op.inputs.empty();
    });
    if (seed == ops().end() || seed->outputs.empty() || seed->outputs[0].args.size() != 1) {
      return InvalidArgument(
          "no op starts the backward part (op_role 257, fill_constant of the loss's gradient)");
    }
    seed_ = static_cast<size_t>(seed - ops().begin());
    const auto update = std::find_if(seed, ops().end(), IsOptimizerOp);
    if (update == ops().end()) return InvalidArgument("no op updates a parameter (op_role 2)");
    update_ = static_cast<size_t>(update - ops().begin());
    for (size_t i = update_; i < ops().size(); ++i) {
      if ((RoleOf(ops()[i]) & kBackwardRole) == 0) continue;
      return InvalidArgument(DescribeOp(main_, 0, static_cast<int>(i)),
                             ": is of the backward part, but the update begins at op #", update_,
                             " ", ops()[update_].type,
                             "; a scaled loss needs all gradients before the first update");
    }
    return absl::OkStatus();
  }

  // What the backward part writes and the update reads, in the order of reading.
  absl::Status FindGradients() {
    absl::flat_hash_set<VarId> made;
    for (size_t i = seed_; i < update_; ++i) {
      if ((RoleOf(ops()[i]) & kBackwardRole) == 0) continue;
      for (const Slot& slot : ops()[i].outputs) made.insert(slot.args.begin(), slot.args.end());
    }
    if (const VarId empty = main_.Find(kEmptyVarName); empty >= 0) made.erase(empty);
    for (size_t i = update_; i < ops().size(); ++i) {
      for (const VarId id : EachArgument(ops()[i].inputs)) {
        if (made.erase(id) == 0) continue;
        INTERP_RETURN_IF_ERROR(CheckGradient(id));
        gradients_.push_back(id);
      }
    }
    if (gradients_.empty()) return InvalidArgument("no update reads a gradient");
    return absl::OkStatus();
  }

  absl::Status CheckGradient(VarId id) {
    const Var* var = writer_.Find(id);
    if (var != nullptr && var->kind == VarKind::kLodTensor && var->dtype == DType::kFloat32) {
      return absl::OkStatus();
    }
    return InvalidArgument("gradient '", main_.NameOf(id),
                           "' is not declared as a tensor of float32, which scaling the loss takes "
                           "(embeddings: is_sparse=false)");
  }

  void DeclareStates() {
    const Var one{.dtype = DType::kFloat32, .dims = {}};
    scale_ = writer_.DeclareState(writer_.FreshName("loss_scaling"), one, options_.initial).id;
    found_ = writer_
                 .Declare(writer_.FreshName("find_infinite_scale", ".tmp_0"),
                          {.dtype = DType::kBool, .dims = {1}})
                 .id;
    if (!options_.dynamic) return;
    const Var count{.dtype = DType::kInt32, .dims = {1}};
    good_ = writer_.DeclareState(writer_.FreshName("num_good_steps"), count, 0).id;
    bad_ = writer_.DeclareState(writer_.FreshName("num_bad_steps"), count, 0).id;
  }

  void SkipWhereItCan(Op& op) const {
    const OpDef* def = IsOptimizerOp(op) ? registry_.Find(op.type) : nullptr;
    if (def == nullptr || def->InputIndex("SkipUpdate") < 0) return;
    if (op.FindInput("SkipUpdate") == nullptr) AddInput(op, "SkipUpdate", {found_});
  }

  Op ScaleSeed() {
    const VarId seed = ops()[seed_].outputs[0].args[0];
    Op op = MakeBinaryOp("elementwise_mul", seed, scale_, seed);
    SetRole(op, kBackwardRole);
    return op;
  }

  Op CheckAndUnscale() const {
    Op op = MakeOp("check_finite_and_unscale", {{"X", gradients_}, {"Scale", {scale_}}},
                   {{"Out", gradients_}, {"FoundInfinite", {found_}}});
    SetRole(op, kOptimizeRole);
    return op;
  }

  Op UpdateScale() const {
    Op op = MakeOp("update_loss_scaling",
                   {{"X", gradients_},
                    {"FoundInfinite", {found_}},
                    {"PrevLossScaling", {scale_}},
                    {"InGoodSteps", {good_}},
                    {"InBadSteps", {bad_}}},
                   {{"Out", gradients_},
                    {"LossScaling", {scale_}},
                    {"OutGoodSteps", {good_}},
                    {"OutBadSteps", {bad_}}});
    SetAttr(op, "incr_every_n_steps", int32_t{options_.grow_after});
    SetAttr(op, "decr_every_n_nan_or_inf", int32_t{options_.shrink_after});
    SetAttr(op, "incr_ratio", static_cast<float>(options_.grow));
    SetAttr(op, "decr_ratio", static_cast<float>(options_.shrink));
    SetAttr(op, "stop_update", false);
    SetRole(op, kOptimizeRole);
    return op;
  }

  Program& main_;
  StateWriter writer_;
  const LossScalingOptions options_;
  const OpRegistry& registry_;
  size_t seed_ = 0;    // the op that writes the gradient of the loss
  size_t update_ = 0;  // the first op of the update
  ArgIds gradients_;
  VarId scale_ = -1;
  VarId found_ = -1;
  VarId good_ = -1;
  VarId bad_ = -1;
};

}  // namespace

absl::Status AddLossScaling(Program& main, Program& startup, const LossScalingOptions& options,
                            const OpRegistry& ops) {
  if (startup.blocks.empty()) startup.blocks.emplace_back();
  return LossScaler(main, startup, options, ops).Run();
}

}  // namespace interp
