#include "passes/fuse/fuse_fc.h"

#include <algorithm>
#include <utility>

#include "core/attr_reader.h"
#include "core/dtype.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/uncertain_ranks.h"
#include "passes/make_op.h"

namespace interp {
namespace {

constexpr absl::string_view kInt8Fc = "int8_fc";  // which is its own fused form
constexpr absl::string_view kFusedProducts[] = {"mul", "matmul", "matmul_v2", kInt8Fc};
constexpr absl::string_view kFusedFc = "fc";

// A product that fc can compute: Out[.., n] = sum_k X[.., k] Y[k, n].
struct Product {
  VarId x = -1;
  VarId w = -1;
  int32_t row_dims = 1;  // leading dims of X that make up the rows
  int64_t columns = 0;
};

class FcFuser {
 public:
  FcFuser(Program program, const OpRegistry& ops)
      : fuser_(std::move(program), ops),
        uncertain_(FindUncertainRanks(fuser_.program())),
        fused_def_(*ops.Find(kFusedFc)) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) TryFuse(i);
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  void TryFuse(int index) {
    const bool int8 = op(index).type == kInt8Fc;
    const std::optional<Product> product = int8 ? MatchInt8(index) : MatchProduct(index);
    if (!product.has_value()) return;
    const std::optional<int> add = fuser_.OnlyReaderOfValues(index, "Out");
    if (!add.has_value()) return;
    const std::optional<VarId> bias = MatchBias(index, *add, *product);
    if (!bias.has_value()) return;
    std::vector<int> chain = {index, *add};
    FusedActivation activation;
    if (const std::optional<int> next = fuser_.OnlyReaderOfValues(*add, "Out")) {
      if (const std::optional<FusedActivation> matched = MatchActivation(op(*next))) {
        activation = *matched;
        chain.push_back(*next);
      }
    }
    const std::optional<int> grid = int8 ? GridBehind(chain.back()) : std::nullopt;
    if (grid.has_value()) chain.push_back(*grid);
    const VarId out = *Fuser::Argument(op(chain.back()).outputs, "Out");
    if (!fuser_.CanReplace(chain, out, {product->w, *bias})) return;
    if (int8) {
      Op fused = WithBias(op(index), *bias, activation, op(chain.back()));
      if (grid.has_value()) StoreOnGrid(op(*grid), fused);
      return fuser_.Replace(chain, std::move(fused));
    }
    Op fused = MakeFused(*product, *bias, activation, op(chain.back()));
    // matmul_v2 gives no LoD, and elementwise_add has that of its first input.
    if (op(index).type == "matmul_v2") SetAttr(fused, "keeps_lod", false);
    fuser_.Replace(chain, std::move(fused));
  }

  std::optional<Product> MatchInt8(int index) const {
    const Op& product = op(index);
    const std::optional<VarId> w = Fuser::Argument(product.inputs, "W");
    const Var* weight = fuser_.Parameter(w);
    const bool plain = weight != nullptr && weight->dims.size() == 2 &&
                       !Fuser::Argument(product.inputs, "Bias").has_value();
    if (!plain) return std::nullopt;
    AttrReader attrs(product);
    return Product{
        .w = *w, .row_dims = attrs.Int("in_num_col_dims", 1), .columns = weight->dims[1]};
  }

  std::optional<Product> MatchProduct(int index) const {
    const Op& product = op(index);
    const std::optional<VarId> x = Fuser::Argument(product.inputs, "X");
    const std::optional<VarId> w = Fuser::Argument(product.inputs, "Y");
    const Var* weight = fuser_.ConstantUntil(index, w);
    if (!x.has_value() || weight == nullptr || weight->dims.size() != 2) return std::nullopt;
    const std::optional<int32_t> rows =
        RowDimsOfProduct(product, fuser_.uses()[*x], uncertain_[*x]);
    if (!rows.has_value() || !fuser_.IsStable(*x, index) || !HasKernel(*w)) return std::nullopt;
    const Var* const rows_of = fuser_.uses()[*x].var;
    if (rows_of != nullptr && IsComplex(rows_of->dtype)) return std::nullopt;
    return Product{*x, *w, *rows, weight->dims[1]};
  }

  // Attributes of activations are of float32: products of float64 would lose digits.
  bool HasKernel(VarId id) const {
    const Var* var = fuser_.uses()[id].var;
    return var != nullptr && var->dtype != DType::kFloat64 && HasKernelOf(fused_def_, var->dtype);
  }

  std::optional<VarId> MatchBias(int index, int add, const Product& product) const {
    if (op(add).type != "elementwise_add" || !CheckNothingFused(op(add)).ok() ||
        Fuser::Argument(op(add).inputs, "X") != Fuser::Argument(op(index).outputs, "Out")) {
      return std::nullopt;
    }
    const std::optional<VarId> y = Fuser::Argument(op(add).inputs, "Y");
    const Var* bias = fuser_.ParameterUntil(add, y);
    AttrReader attrs(op(add));
    const int64_t axis = attrs.Int("axis", -1);
    const bool int8 = op(index).type == kInt8Fc;
    const DType dtype = int8 ? DType::kFloat32 : fuser_.uses()[product.w].var->dtype;
    if (bias == nullptr || bias->dtype != dtype) return std::nullopt;
    const bool fits = IsPerChannel(bias->dims, axis, /*rank=*/product.row_dims + 1,
                                   /*channel_axis=*/product.row_dims, product.columns);
    return fits ? y : std::nullopt;
  }

  static void SetActivation(const FusedActivation& activation, Op& fused) {
    SetAttr(fused, "activation_type", activation.name);
    SetAttr(fused, "fuse_alpha", activation.alpha);
    SetAttr(fused, "fuse_beta", activation.beta);
  }

  static Op WithBias(Op product, VarId bias, const FusedActivation& activation, const Op& last) {
    AddInput(product, "Bias", {bias});
    product.outputs.clear();
    AddOutput(product, "Out", {*Fuser::Argument(last.outputs, "Out")});
    SetActivation(activation, product);
    return product;
  }

  // The op that alone reads what the op at `last` makes, when it puts that onto a constant grid.
  std::optional<int> GridBehind(int last) const {
    const std::optional<int> next = fuser_.OnlyReaderOfValues(last, "Out");
    if (!next.has_value() || op(*next).type != "quantize_int8") return std::nullopt;
    const Var* const scale = fuser_.Parameter(Fuser::Argument(op(*next).inputs, "Scale"));
    const bool constant =
        scale != nullptr && !Fuser::Argument(op(*next).outputs, "OutScale").has_value();
    return constant ? next : std::nullopt;
  }

  static void StoreOnGrid(const Op& quantize, Op& fused) {
    AddInput(fused, "OutputScale", {*Fuser::Argument(quantize.inputs, "Scale")});
    AttrReader attrs(quantize);
    SetAttr(fused, "out_bits", attrs.Int("bit_length", 8));
    SetAttr(fused, "out_round_type", attrs.Int("round_type", 0));
  }

  static Op MakeFused(const Product& product, VarId bias, const FusedActivation& activation,
                      const Op& last) {
    Op fused = MakeOp(kFusedFc, {{"Input", {product.x}}, {"W", {product.w}}, {"Bias", {bias}}},
                      {{"Out", {*Fuser::Argument(last.outputs, "Out")}}});
    SetAttr(fused, "in_num_col_dims", product.row_dims);
    SetActivation(activation, fused);
    return fused;
  }

  Fuser fuser_;
  const std::vector<bool> uncertain_;  // by VarId
  const OpDef& fused_def_;
};

}  // namespace

absl::StatusOr<Program> FuseFc(Program program, const PassContext& context) {
  if (!CanMake(kFusedFc, context) || !HasOpOf(program, kFusedProducts)) return program;
  return FcFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
