#include "core/op_role.h"

#include "core/edit_op.h"

namespace interp {
namespace {

constexpr absl::string_view kRoleAttr = "op_role";

}  // namespace

int32_t RoleOf(const Op& op) {
  const Attr* attr = op.FindAttr(kRoleAttr);
  const int32_t* role = attr == nullptr ? nullptr : std::get_if<int32_t>(&attr->value);
  return role == nullptr ? int32_t{kForwardRole} : *role;
}

// Paddle's ModelAverage gives its op no role.
bool IsUpdate(const Op& op) {
  return (RoleOf(op) & (kOptimizeRole | kLearningRateRole)) != 0 ||
         op.type == "average_accumulates";
}

bool IsBackward(const Op& op) { return (RoleOf(op) & kBackwardRole) != 0; }

void SetRole(Op& op, int32_t role) { SetAttr(op, kRoleAttr, role); }

}  // namespace interp
