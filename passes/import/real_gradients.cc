#include "passes/import/real_gradients.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/any_op.h"
#include "core/edit_op.h"
#include "core/gradient.h"
#include "core/op_role.h"
#include "passes/declarations.h"
#include "passes/fresh_var.h"
#include "passes/make_op.h"
#include "passes/verify.h"

namespace interp {
namespace {

bool IsEigGrad(const Op& op) { return op.type == "eig_grad"; }

// The argument that holds X@GRAD, or null.
VarId* GradientOf(Op& op) {
  if (!IsEigGrad(op)) return nullptr;
  for (Slot& slot : op.outputs) {
    if (slot.name == "X@GRAD" && slot.args.size() == 1) return slot.args.data();
  }
  return nullptr;
}

// Whether ops of `block` see the variable as real whose gradient `gradient` is. Parts of a sum have
// @RENAME@ and more behind the suffix; what this step has made has something else.
bool IsOfReal(int32_t block, VarId gradient, Declarations& declarations, const Program& program) {
  const absl::string_view name = program.NameOf(gradient);
  const size_t suffix = name.find(kGradientSuffix);
  if (suffix == absl::string_view::npos) return false;
  const absl::string_view behind = name.substr(suffix + kGradientSuffix.size());
  if (!behind.empty() && behind[0] != '@') return false;
  const VarId id = program.Find(name.substr(0, suffix));
  const Var* const value = id < 0 ? nullptr : declarations.Find(block, id);
  return value != nullptr && IsFloating(value->dtype);
}

Op MakeReal(const Op& gradient_op, VarId from, VarId to) {
  Op op = MakeOp("real", {{"X", {from}}}, {{"Out", {to}}});
  SetRole(op, RoleOf(gradient_op));
  if (const Attr* const device = gradient_op.FindAttr(kDeviceAttr)) {
    SetAttr(op, kDeviceAttr, device->value);
  }
  return op;
}

}  // namespace

absl::StatusOr<Program> TakeRealGradients(Program program) {
  if (!AnyOp(program, IsEigGrad)) return program;
  INTERP_RETURN_IF_ERROR(VerifyStructure(program));
  Declarations declarations(program);
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    std::vector<Op> ops;
    for (Op& op : program.blocks[b].ops) {
      VarId* const gradient = GradientOf(op);
      const auto block = static_cast<int32_t>(b);
      if (gradient == nullptr || !IsOfReal(block, *gradient, declarations, program)) {
        ops.push_back(std::move(op));
        continue;
      }
      const VarId real = *gradient;
      *gradient = FreshVar(program, absl::StrCat(program.NameOf(real), ".complex"));
      Var complex;
      complex.id = *gradient;
      declarations.Add(block, std::move(complex));
      Op take = MakeReal(op, *gradient, real);
      ops.push_back(std::move(op));
      ops.push_back(std::move(take));
    }
    program.blocks[b].ops = std::move(ops);
  }
  return program;
}

}  // namespace interp
