// Second and third gradients of products: of Out = f(X, Y), linear in X and in Y. With fX and fY
// for the two gradients that the first one gives, a = X@GRAD@GRAD, b = Y@GRAD@GRAD and d = Out@GRAD
//
//   d@GRAD = f(a, Y) + f(X, b)    X@GRAD = fX(X, b, d)    Y@GRAD = fY(a, Y, d)
//
// and with u, v, w for the gradients of these three
//
//   X@GRAD = fX(X, b, u)          Y@GRAD = fY(a, Y, u)    d@GRAD = f(v, b) + f(a, w)
//   a@GRAD = fX(a, Y, u) + fX(a, w, d)                    b@GRAD = fY(X, b, u) + fY(v, b, d)
#include <string>

#include "absl/strings/str_cat.h"
#include "core/expansion.h"

namespace interp {
namespace {

// A product and the slots of its own.
struct Factors {
  absl::string_view type;
  absl::string_view x = "X";
  absl::string_view y = "Y";
  absl::string_view out = "Out";
};

struct SecondNames {
  absl::string_view type;
  absl::string_view d, a, b;
  absl::string_view x_grad, y_grad, d_grad;
};
struct ThirdNames {
  absl::string_view type;
  absl::string_view d, a, b, u, v, w;
  absl::string_view x_grad, y_grad, d_grad, a_grad, b_grad;
};

// What f, fX and fY add.
class Terms {
 public:
  Terms(Expansion& ops, const Factors& f)
      : ops_(ops), f_(f), gradient_(absl::StrCat(f.type, "_grad")) {}

  VarId Of(VarId x, VarId y) const { return ops_.Add(f_.type, {{f_.x, x}, {f_.y, y}}, f_.out); }
  VarId OfX(VarId x, VarId y, VarId d) const { return Gradient(x, y, d, f_.x); }
  VarId OfY(VarId x, VarId y, VarId d) const { return Gradient(x, y, d, f_.y); }

 private:
  VarId Gradient(VarId x, VarId y, VarId d, absl::string_view of) const {
    return ops_.Add(gradient_, {{f_.x, x}, {f_.y, y}, {absl::StrCat(f_.out, "@GRAD"), d}},
                    absl::StrCat(of, "@GRAD"));
  }

  Expansion& ops_;
  const Factors& f_;
  const std::string gradient_;
};

template <const Factors& kOf, const SecondNames& kNames>
absl::Status ExpandSecond(Expansion& ops) {
  const Terms f(ops, kOf);
  const VarId x = ops.Input(kOf.x);
  const VarId y = ops.Input(kOf.y);
  const VarId d = ops.Input(kNames.d);
  const VarId a = ops.Input(kNames.a);
  const VarId b = ops.Input(kNames.b);
  if (ops.Wants(kNames.d_grad)) {
    ops.SetOrZeros(kNames.d_grad, ops.Sum({f.Of(a, y), f.Of(x, b)}), d);
  }
  if (ops.Wants(kNames.x_grad)) ops.SetOrZeros(kNames.x_grad, f.OfX(x, b, d), x);
  if (ops.Wants(kNames.y_grad)) ops.SetOrZeros(kNames.y_grad, f.OfY(a, y, d), y);
  return absl::OkStatus();
}

template <const Factors& kOf, const ThirdNames& kNames>
absl::Status ExpandThird(Expansion& ops) {
  const Terms f(ops, kOf);
  const VarId x = ops.Input(kOf.x);
  const VarId y = ops.Input(kOf.y);
  const VarId d = ops.Input(kNames.d);
  const VarId a = ops.Input(kNames.a);
  const VarId b = ops.Input(kNames.b);
  const VarId u = ops.Input(kNames.u);
  const VarId v = ops.Input(kNames.v);
  const VarId w = ops.Input(kNames.w);
  if (ops.Wants(kNames.x_grad)) ops.SetOrZeros(kNames.x_grad, f.OfX(x, b, u), x);
  if (ops.Wants(kNames.y_grad)) ops.SetOrZeros(kNames.y_grad, f.OfY(a, y, u), y);
  if (ops.Wants(kNames.d_grad)) {
    ops.SetOrZeros(kNames.d_grad, ops.Sum({f.Of(v, b), f.Of(a, w)}), d);
  }
  if (ops.Wants(kNames.a_grad)) {
    ops.SetOrZeros(kNames.a_grad, ops.Sum({f.OfX(a, y, u), f.OfX(a, w, d)}), x);
  }
  if (ops.Wants(kNames.b_grad)) {
    ops.SetOrZeros(kNames.b_grad, ops.Sum({f.OfY(x, b, u), f.OfY(v, b, d)}), y);
  }
  return absl::OkStatus();
}

template <const Factors& kOf, const SecondNames& kNames>
ExpansionDef SecondDef() {
  return {.type = kNames.type,
          .inputs = {{kOf.x},
                     {kOf.y},
                     {kNames.d, kOptional},
                     {kNames.a, kOptional},
                     {kNames.b, kOptional}},
          .outputs = {{kNames.d_grad, kOptional},
                      {kNames.x_grad, kOptional},
                      {kNames.y_grad, kOptional}},
          .expand = ExpandSecond<kOf, kNames>};
}

template <const Factors& kOf, const ThirdNames& kNames>
ExpansionDef ThirdDef() {
  ExpansionDef def{.type = kNames.type,
                   .inputs = {{kOf.x}, {kOf.y}},
                   .outputs = {},
                   .expand = ExpandThird<kOf, kNames>};
  for (const absl::string_view slot :
       {kNames.d, kNames.a, kNames.b, kNames.u, kNames.v, kNames.w}) {
    def.inputs.push_back({slot, kOptional});
  }
  for (const absl::string_view slot :
       {kNames.x_grad, kNames.y_grad, kNames.d_grad, kNames.a_grad, kNames.b_grad}) {
    def.outputs.push_back({slot, kOptional});
  }
  return def;
}

constexpr Factors kElementwiseMul = {.type = "elementwise_mul"};
constexpr Factors kMatmul = {.type = "matmul"};
constexpr Factors kMatmulV2 = {.type = "matmul_v2"};
constexpr Factors kMul = {.type = "mul"};
constexpr Factors kConv2d = {"conv2d", "Input", "Filter", "Output"};
constexpr Factors kConv3d = {"conv3d", "Input", "Filter", "Output"};

constexpr SecondNames kElementwiseMulSecond = {
    "elementwise_mul_grad_grad", "DOut", "DDX", "DDY", "X@GRAD", "Y@GRAD", "DDOut"};
constexpr SecondNames kMatmulSecond = {
    "matmul_grad_grad", "DOut", "DDX", "DDY", "DX", "DY", "DDOut"};
constexpr SecondNames kMulSecond = {"mul_grad_grad", "DOut", "DDX", "DDY", "DX", "DY", "DDOut"};
constexpr SecondNames kMatmulV2Second = {"matmul_v2_grad_grad", "grad_out", "grad_x@GRAD",
                                         "grad_y@GRAD",         "X@GRAD",   "Y@GRAD",
                                         "grad_out@GRAD"};

constexpr SecondNames OfConvolution(absl::string_view type) {
  return {type,         "grad_out",    "grad_input@GRAD", "grad_filter@GRAD",
          "Input@GRAD", "Filter@GRAD", "grad_out@GRAD"};
}
constexpr SecondNames kConv2dSecond = OfConvolution("conv2d_grad_grad");
constexpr SecondNames kConv3dSecond = OfConvolution("conv3d_grad_grad");

constexpr ThirdNames kElementwiseMulThird = {"elementwise_mul_triple_grad",
                                             "DOut",
                                             "DDX",
                                             "DDY",
                                             "D_DDOut",
                                             "D_DX",
                                             "D_DY",
                                             "D_X",
                                             "D_Y",
                                             "D_DOut",
                                             "D_DDX",
                                             "D_DDY"};
constexpr ThirdNames kMatmulV2Third = {
    "matmul_v2_triple_grad", "grad_out",        "grad_grad_x", "grad_grad_y", "grad_grad_out@GRAD",
    "grad_x@GRAD",           "grad_y@GRAD",     "X@GRAD",      "Y@GRAD",      "grad_out@GRAD",
    "grad_grad_x@GRAD",      "grad_grad_y@GRAD"};

INTERP_REGISTER_EXPANSION(SecondDef<kElementwiseMul, kElementwiseMulSecond>());
INTERP_REGISTER_EXPANSION(SecondDef<kMatmul, kMatmulSecond>());
INTERP_REGISTER_EXPANSION(SecondDef<kMatmulV2, kMatmulV2Second>());
INTERP_REGISTER_EXPANSION(SecondDef<kMul, kMulSecond>());
INTERP_REGISTER_EXPANSION(SecondDef<kConv2d, kConv2dSecond>());
INTERP_REGISTER_EXPANSION(SecondDef<kConv3d, kConv3dSecond>());
INTERP_REGISTER_EXPANSION(ThirdDef<kElementwiseMul, kElementwiseMulThird>());
INTERP_REGISTER_EXPANSION(ThirdDef<kMatmulV2, kMatmulV2Third>());

}  // namespace
}  // namespace interp
