// Second gradients of sums, differences and quotients of two tensors, and the third one of sums.
// With a = X@GRAD@GRAD and b = Y@GRAD@GRAD
//
//   add   DDOut = a + b         sub   DDOut = a - b
//   div   DDOut = (a - Out b) / Y    DOut = -DX b    Y@GRAD = -DX DDOut
//
// (Paddle: phi/kernels/impl/elementwise_grad_kernel_impl.h.) DX is the first gradient.
#include <string>

#include "absl/strings/str_cat.h"
#include "core/expansion.h"

namespace interp {
namespace {

// Zeros of the shape of `like` where the value is absent.
VarId OrZeros(Expansion& ops, VarId value, VarId like) {
  return value == Expansion::kAbsent ? ops.Add("fill_zeros_like", {{"X", like}}) : value;
}

absl::Status ExpandSum(Expansion& ops, absl::string_view type) {
  const VarId a = OrZeros(ops, ops.Input("DDX"), ops.Input("DOut"));
  const VarId b = OrZeros(ops, ops.Input("DDY"), ops.Input("Y"));
  ops.Set("DDOut", ops.Add(type, {{"X", a}, {"Y", b}}));
  return absl::OkStatus();
}
absl::Status ExpandAdd(Expansion& ops) { return ExpandSum(ops, "elementwise_add"); }
absl::Status ExpandSub(Expansion& ops) { return ExpandSum(ops, "elementwise_sub"); }

absl::Status ExpandDiv(Expansion& ops) {
  const VarId y = ops.Input("Y");
  const VarId out = ops.Input("Out");
  const VarId dx = ops.Input("DX");
  const VarId b = ops.Input("DDY");
  const auto product = [&ops](VarId p, VarId q) {
    return ops.Add("elementwise_mul", {{"X", p}, {"Y", q}});
  };
  VarId numerator = ops.Scale(product(out, b), -1);
  if (const VarId a = ops.Input("DDX"); a != Expansion::kAbsent) {
    numerator = numerator == Expansion::kAbsent
                    ? ops.Add("elementwise_add", {{"X", a}, {"Y", OrZeros(ops, b, y)}})
                    : ops.Add("elementwise_add", {{"X", numerator}, {"Y", a}});
  }
  const VarId quotient = ops.Add("elementwise_div", {{"X", numerator}, {"Y", y}});
  ops.Set("DDOut", quotient);
  if (ops.Wants("DOut")) ops.SetOrZeros("DOut", ops.Scale(product(dx, b), -1), out);
  if (!ops.Wants("Y@GRAD")) return absl::OkStatus();
  // What elementwise_mul_grad adds up to the shape of Y.
  const VarId sum =
      ops.Add("elementwise_mul_grad", {{"X", dx}, {"Y", y}, {"Out@GRAD", quotient}}, "Y@GRAD");
  ops.Set("Y@GRAD", ops.Scale(sum, -1));
  return absl::OkStatus();
}

absl::Status ExpandAddThird(Expansion& ops) {
  for (const absl::string_view of : {"X", "Y"}) {
    const std::string slot = absl::StrCat("D_DD", of);
    if (!ops.Wants(slot)) continue;
    ops.Set(slot, ops.Add("elementwise_add_grad",
                          {{"X", ops.Input("DDX")},
                           {"Y", ops.Input("DDY")},
                           {"Out@GRAD", ops.Input("D_DDOut")}},
                          absl::StrCat(of, "@GRAD")));
  }
  return absl::OkStatus();
}

ExpansionDef SumDef(absl::string_view type, absl::Status (*expand)(Expansion&)) {
  return {.type = type,
          .inputs = {{"Y"}, {"DOut"}, {"DDX", kOptional}, {"DDY", kOptional}},
          .outputs = {{"DDOut"}},
          .expand = expand};
}

INTERP_REGISTER_EXPANSION(SumDef("elementwise_add_grad_grad", ExpandAdd));
INTERP_REGISTER_EXPANSION(SumDef("elementwise_sub_grad_grad", ExpandSub));
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "elementwise_div_grad_grad",
    .inputs = {{"Y"}, {"Out"}, {"DX"}, {"DDX", kOptional}, {"DDY", kOptional}},
    .outputs = {{"Y@GRAD", kOptional}, {"DOut", kOptional}, {"DDOut", kOptional}},
    .expand = ExpandDiv});
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "elementwise_add_triple_grad",
    .inputs = {{"DDX", kOptional}, {"DDY", kOptional}, {"D_DDOut"}},
    .outputs = {{"D_DDX", kOptional}, {"D_DDY", kOptional}},
    .expand = ExpandAddThird});

}  // namespace
}  // namespace interp
