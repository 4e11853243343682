// Second gradients of ops that are linear in their one tensor: the op itself, of X@GRAD@GRAD.
// Padding adds zeros there, whatever it adds to X: Paddle adds `value`, which is no derivative.
#include <string>

#include "core/base/quoted.h"
#include "core/expansion.h"

namespace interp {
namespace {

absl::Status ExpandPool(Expansion& ops) {
  const std::string kind = ops.attrs().String("pooling_type", "max");
  if (kind != "avg") {
    return Unimplemented("attribute 'pooling_type' is ", Quoted(kind),
                         ", expected \"avg\": of other pools the second gradient needs X");
  }
  ops.Set("grad_out@GRAD", ops.Add("pool2d", {{"X", ops.Input("grad_x@GRAD")}}));
  return absl::OkStatus();
}

absl::Status ExpandPad(Expansion& ops) {
  const VarId x = ops.Input("grad_x@GRAD");
  const VarId paddings = ops.Input("Paddings");
  const VarId out = paddings == Expansion::kAbsent
                        ? ops.Add("pad3d", {{"X", x}})
                        : ops.Add("pad3d", {{"X", x}, {"Paddings", paddings}});
  if (out != Expansion::kAbsent) ops.SetAttr("value", 0.0F);
  ops.Set("grad_out@GRAD", out);
  return absl::OkStatus();
}

// reshape_grad gives its Out@GRAD the shape of X.
absl::Status ExpandReshape(Expansion& ops) {
  ops.Set("DDOut", ops.Add("reshape_grad",
                           {{"X", ops.Input("DOut")}, {"Out@GRAD", ops.Input("DDX")}}, "X@GRAD"));
  return absl::OkStatus();
}

INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "pool2d_double_grad",
                                       .inputs = {{"grad_x@GRAD"}},
                                       .outputs = {{"grad_out@GRAD"}},
                                       .expand = ExpandPool});
INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "pad3d_double_grad",
                                       .inputs = {{"grad_x@GRAD"}, {"Paddings", kOptional}},
                                       .outputs = {{"grad_out@GRAD"}},
                                       .expand = ExpandPad});
INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "reshape2_grad_grad",
                                       .inputs = {{"DOut"}, {"DDX"}},
                                       .outputs = {{"DDOut"}},
                                       .expand = ExpandReshape});

}  // namespace
}  // namespace interp
