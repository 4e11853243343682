#include "passes/fuse_swish.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/edit_op.h"
#include "core/fused_forms.h"
#include "passes/fusion.h"

namespace interp {
namespace {

constexpr absl::string_view kSigmoid = "sigmoid";
constexpr absl::string_view kSwish = "swish";

class SwishFuser {
 public:
  SwishFuser(Program program, const OpRegistry& ops)
      : fuser_(std::move(program), ops), swish_(*ops.Find(kSwish)) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (fuser_.IsGone(i)) continue;
      if (op(i).type == kSigmoid) TryFuse({i}, 1);
      if (const std::optional<float> factor = FactorOf(op(i))) TryScaled(i, *factor);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  // A factor of 0 means "default" to the kernels of fused ops.
  void TryScaled(int scale, float factor) {
    const std::optional<int> next = fuser_.OnlyReader(scale, "Out");
    if (next.has_value() && op(*next).type == kSigmoid && factor != 0) {
      TryFuse({scale, *next}, factor);
    }
  }

  // `chain` ends with the sigmoid.
  void TryFuse(std::vector<int> chain, float beta) {
    const std::optional<VarId> x = Fuser::Argument(op(chain.front()).inputs, "X");
    const std::optional<int> product = fuser_.OnlyReader(chain.back(), "Out");
    if (!x.has_value() || !product.has_value() || !IsComputed(*x)) return;
    if (op(*product).type != "elementwise_mul" || !CheckNothingFused(op(*product)).ok()) return;
    const std::optional<VarId> left = Fuser::Argument(op(*product).inputs, "X");
    const std::optional<VarId> right = Fuser::Argument(op(*product).inputs, "Y");
    const std::optional<VarId> out = Fuser::Argument(op(*product).outputs, "Out");
    if ((left != x && right != x) || !out.has_value()) return;
    if (!fuser_.IsStable(*x, chain.front())) return;
    chain.push_back(*product);
    fuser_.Replace(chain, Swish(*product, *x, *out, beta));
  }

  // Whether there is a kernel for it: there is none for complex numbers.
  bool IsComputed(VarId x) const {
    const Var* const var = fuser_.uses()[x].var;
    return var != nullptr && HasKernelOf(swish_, var->dtype);
  }

  // The product's place and what it says of where it was made stay.
  Op Swish(int product, VarId x, VarId out, float beta) {
    Op swish = fuser_.TakeForFusion(product);
    swish.type = std::string(kSwish);
    std::erase_if(swish.attrs, [](const Attr& attr) { return attr.name == "axis"; });
    AddInput(swish, "X", {x});
    AddOutput(swish, "Out", {out});
    SetAttr(swish, "beta", beta);
    return swish;
  }

  Fuser fuser_;
  const OpDef& swish_;
};

}  // namespace

absl::StatusOr<Program> FuseSwish(Program program, const PassContext& context) {
  if (!HasOpOf(program, {kSigmoid}) || !CanMake(kSwish, context)) return program;
  return SwishFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
