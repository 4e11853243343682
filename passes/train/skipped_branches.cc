#include "passes/train/skipped_branches.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/op_role.h"
#include "passes/make_op.h"

namespace interp {
namespace {

// What says whether an op runs its block: a tensor of one element. Nothing for other ops.
std::optional<VarId> ConditionOf(const Op& op) {
  const Attr* const scalar = op.FindAttr("is_scalar_condition");
  if (op.type != "conditional_block" || scalar == nullptr) return std::nullopt;
  const bool* const said = std::get_if<bool>(&scalar->value);
  const int32_t* const number = std::get_if<int32_t>(&scalar->value);  // of old programs
  if (!(said != nullptr && *said) && !(number != nullptr && *number != 0)) return std::nullopt;
  for (const absl::string_view slot : {"Cond", "X"}) {
    const Slot* const condition = op.FindInput(slot);
    if (condition != nullptr && condition->args.size() == 1) return condition->args[0];
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<VarId>> SkippedBranches::Kept(const Op& op, size_t index,
                                                         const std::vector<VarId>& outputs) {
  std::vector<VarId> kept;
  if (!ConditionOf(op).has_value()) return kept;
  for (const VarId id : outputs) {
    if (!sums_.Has(id) || !context_.Wants(id) || !context_.IsTensor(block_, id)) continue;
    if (!versions_.HasValueBefore(id, index)) continue;
    sums_.AddUp(id);
    if (sums_.rows().contains(context_.GradientOf(id))) {
      return Unimplemented("a branch writes '", context_.program.NameOf(id),
                           "', whose gradient is sparse: set is_sparse to false where it is read");
    }
    kept.push_back(id);
  }
  return kept;
}

GradientSums::Part SkippedBranches::PassAround(const Op& op, size_t index, VarId var) {
  return Select(op, index, var, /*if_taken=*/false);
}

GradientSums::Part SkippedBranches::PassTaken(const Op& op, size_t index, VarId var) {
  return Select(op, index, var, /*if_taken=*/true);
}

GradientSums::Part SkippedBranches::Select(const Op& op, size_t index, VarId var, bool if_taken) {
  const VarId condition = *ConditionOf(op);
  const VarId gradient = context_.GradientOf(var);
  const std::string name = context_.program.NameOf(gradient);
  const VarId zeros = context_.program.Intern(absl::StrCat(name, "@ZERO"));
  const VarId taken = NoteTaken(condition, index);
  // Before the branch the variable may have another shape.
  Op zero = GradientSums::MakeZerosOp(if_taken ? gradient : versions_.ShapeAt(var, index), zeros);
  const ArgIds choices = if_taken ? ArgIds{zeros, gradient} : ArgIds{gradient, zeros};
  Op select = MakeOp("select_input", {{"X", choices}, {"Mask", {taken}}}, {{"Out", {gradient}}});
  SetRole(select, kBackwardRole);
  sums_.Push(std::move(zero));
  return sums_.Push(std::move(select));
}

// The condition of op `index` as a number, computed before it.
VarId SkippedBranches::NoteTaken(VarId condition, size_t index) {
  const VarId taken =
      context_.program.Intern(absl::StrCat(context_.program.NameOf(condition), "@TAKEN@", index));
  if (context_.declarations.FindLocal(block_, taken) != nullptr) return taken;
  Var declared = {.id = taken, .dtype = DType::kInt32, .dims = {1}, .stop_gradient = true};
  const Var* const like = context_.declarations.Find(block_, condition);
  if (like != nullptr) declared.dims = like->dims;
  context_.declarations.Add(block_, std::move(declared));
  Op cast = MakeCastOp(condition, taken, DType::kBool, DType::kInt32);
  SetRole(cast, kForwardRole);
  noted_.AddBefore(index, std::move(cast));
  return taken;
}

}  // namespace interp
