#include "passes/copy_beside.h"

#include <string>

#include "core/edit_op.h"
#include "core/op_role.h"

namespace interp {

Op CopyBeside(const Op& op, absl::string_view type, VarId from, VarId to) {
  Op copy;
  copy.type = std::string(type);
  AddInput(copy, "X", {from});
  AddOutput(copy, "Out", {to});
  for (const absl::string_view name : {absl::string_view("op_role"), kDeviceAttr}) {
    if (const Attr* const attr = op.FindAttr(name)) copy.attrs.push_back(*attr);
  }
  return copy;
}

}  // namespace interp
