#include "passes/copy_beside.h"

#include "core/op_role.h"
#include "passes/make_op.h"

namespace interp {

Op CopyBeside(const Op& op, absl::string_view type, VarId from, VarId to) {
  Op copy = MakeUnaryOp(type, from, to);
  for (const absl::string_view name : {absl::string_view("op_role"), kDeviceAttr}) {
    if (const Attr* const attr = op.FindAttr(name)) copy.attrs.push_back(*attr);
  }
  return copy;
}

}  // namespace interp
