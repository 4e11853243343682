#include "core/edit_op.h"

#include <string>
#include <utility>

namespace interp {

void AddInput(Op& op, absl::string_view slot, ArgIds args) {
  if (!args.empty()) op.inputs.push_back({.name = std::string(slot), .args = std::move(args)});
}

void AddOutput(Op& op, absl::string_view slot, ArgIds args) {
  if (!args.empty()) op.outputs.push_back({.name = std::string(slot), .args = std::move(args)});
}

void SetAttr(Op& op, absl::string_view name, AttrValue value) {
  for (Attr& attr : op.attrs) {
    if (attr.name != name) continue;
    attr = {.name = attr.name, .value = std::move(value)};
    return;
  }
  op.attrs.push_back({.name = std::string(name), .value = std::move(value)});
}

}  // namespace interp
