#include "passes/fuse_fc.h"

#include <algorithm>
#include <utility>

#include "core/attr_reader.h"
#include "passes/fusion.h"

namespace interp {
namespace {

constexpr absl::string_view kProducts[] = {"mul", "matmul", "matmul_v2"};
constexpr absl::string_view kFused = "fc";

// A product that fc can compute: Out[.., n] = sum_k X[.., k] Y[k, n].
struct Product {
  VarId x = -1;
  VarId w = -1;
  int32_t row_dims = 1;  // leading dims of X that make up the rows
  int64_t columns = 0;
};

// The number of row dims when `op` is a product without transposition or factor.
std::optional<int32_t> RowDims(const Op& op, const Var* x) {
  AttrReader attrs(op);
  const int32_t rank = x == nullptr ? 0 : static_cast<int32_t>(x->dims.size());
  std::optional<int32_t> rows;
  if (op.type == "mul" && attrs.Int("y_num_col_dims", 1) == 1) {
    rows = attrs.Int("x_num_col_dims", 1);
  } else if (op.type == "matmul_v2" && !attrs.Bool("trans_x", false) &&
             !attrs.Bool("trans_y", false)) {
    rows = rank - 1;
  } else if (op.type == "matmul" && !attrs.Bool("transpose_X", false) &&
             !attrs.Bool("transpose_Y", false) && attrs.Float("alpha", 1) == 1 &&
             attrs.Int("head_number", 1) == 1) {
    rows = rank - 1;
  }
  return attrs.status().ok() && rows.value_or(0) >= 1 ? rows : std::nullopt;
}

class FcFuser {
 public:
  FcFuser(Program program, const OpRegistry& ops)
      : fuser_(std::move(program), ops), fused_def_(*ops.Find(kFused)) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) TryFuse(i);
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  void TryFuse(int index) {
    const std::optional<Product> product = MatchProduct(index);
    if (!product.has_value()) return;
    const std::optional<int> add = fuser_.OnlyReader(index, "Out");
    if (!add.has_value()) return;
    const std::optional<VarId> bias = MatchBias(index, *add, *product);
    if (!bias.has_value()) return;
    std::vector<int> chain = {index, *add};
    FusedActivation activation;
    if (const std::optional<int> next = fuser_.OnlyReader(*add, "Out")) {
      if (const std::optional<FusedActivation> matched = MatchActivation(op(*next))) {
        activation = *matched;
        chain.push_back(*next);
      }
    }
    Op fused = MakeFused(*product, *bias, activation, op(chain.back()));
    // matmul_v2 gives no LoD, and elementwise_add has that of its first input.
    if (op(index).type == "matmul_v2") SetAttr(fused, "keeps_lod", false);
    fuser_.Replace(chain, std::move(fused));
  }

  std::optional<Product> MatchProduct(int index) const {
    const Op& product = op(index);
    const std::optional<VarId> x = Fuser::Argument(product.inputs, "X");
    const std::optional<VarId> w = Fuser::Argument(product.inputs, "Y");
    const Var* weight = fuser_.Parameter(w);
    if (!x.has_value() || weight == nullptr || weight->dims.size() != 2) return std::nullopt;
    const std::optional<int32_t> rows = RowDims(product, fuser_.uses()[*x].var);
    if (!rows.has_value() || !fuser_.IsStable(*x, index) || !HasKernel(*w)) return std::nullopt;
    return Product{*x, *w, *rows, weight->dims[1]};
  }

  bool HasKernel(VarId id) const {
    const Var* var = fuser_.uses()[id].var;
    return var != nullptr &&
           std::any_of(fused_def_.kernels.begin(), fused_def_.kernels.end(),
                       [var](const KernelDef& kernel) { return kernel.dtype == var->dtype; });
  }

  std::optional<VarId> MatchBias(int index, int add, const Product& product) const {
    if (op(add).type != "elementwise_add" ||
        Fuser::Argument(op(add).inputs, "X") != Fuser::Argument(op(index).outputs, "Out")) {
      return std::nullopt;
    }
    const std::optional<VarId> y = Fuser::Argument(op(add).inputs, "Y");
    const Var* bias = fuser_.Parameter(y);
    AttrReader attrs(op(add));
    const int64_t axis = attrs.Int("axis", -1);
    if (bias == nullptr || bias->dtype != fuser_.uses()[product.w].var->dtype) return std::nullopt;
    const bool fits = IsPerChannel(bias->dims, axis, /*rank=*/product.row_dims + 1,
                                   /*channel_axis=*/product.row_dims, product.columns);
    return fits ? y : std::nullopt;
  }

  static Op MakeFused(const Product& product, VarId bias, const FusedActivation& activation,
                      const Op& last) {
    Op fused;
    fused.type = std::string(kFused);
    AddInput(fused, "Input", {product.x});
    AddInput(fused, "W", {product.w});
    AddInput(fused, "Bias", {bias});
    AddOutput(fused, "Out", {*Fuser::Argument(last.outputs, "Out")});
    SetAttr(fused, "in_num_col_dims", product.row_dims);
    SetAttr(fused, "activation_type", activation.name);
    SetAttr(fused, "fuse_alpha", activation.alpha);
    SetAttr(fused, "fuse_beta", activation.beta);
    return fused;
  }

  Fuser fuser_;
  const OpDef& fused_def_;
};

}  // namespace

absl::StatusOr<Program> FuseFc(Program program, const PassContext& context) {
  if (context.ops.Find(kFused) == nullptr || !HasOpOf(program, kProducts)) return program;
  return FcFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
