// einsum: Out = the sum of products of the elements of one or two Operands that `equation` names
// ("bij,bjk->bik"). XShape and InnerCache carry shapes and values of the operands to the gradient,
// which sums products of Out@GRAD and the other operand.
#include "kernels/product/einsum.h"

#include <algorithm>

#include "kernels/util/check_shape.h"
#include "kernels/util/copy.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_op.h"

namespace interp::einsum {
namespace {

constexpr int kOperands = 0;
constexpr int kOut = 0;
constexpr int kInnerCache = 1;
constexpr int kXShape = 2;

struct EinsumAttrs {
  std::string equation;
};

EinsumAttrs ReadEinsumAttrs(AttrReader& reader) { return {reader.String("equation", "")}; }

absl::StatusOr<Terms> TermsOf(const OpContext& ctx, int slot) {
  std::vector<Shape> shapes;
  for (const Tensor* operand : ctx.inputs(slot)) {
    if (operand == nullptr) return InvalidArgument("an operand is absent");
    shapes.push_back(operand->shape);
  }
  if (shapes.empty() || shapes.size() > 2) {
    return InvalidArgument("there are ", shapes.size(), " operands, expected one or two");
  }
  return ParseEquation(ctx.attrs<EinsumAttrs>().equation, shapes);
}

absl::Status InferEinsum(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Terms terms, TermsOf(ctx, kOperands));
  ctx.SetShape(kOut, terms.OutShape());
  const size_t operands = ctx.inputs(kOperands).size();
  if (ctx.outputs(kInnerCache).size() > operands || ctx.outputs(kXShape).size() > operands) {
    return InvalidArgument("'InnerCache' or 'XShape' has more arguments than there are operands");
  }
  for (size_t i = 0; i < operands; ++i) {
    const Shape& shape = ctx.inputs(kOperands)[i]->shape;
    if (i < ctx.outputs(kInnerCache).size() && ctx.outputs(kInnerCache)[i] != nullptr) {
      ctx.outputs(kInnerCache)[i]->shape = shape;
      ctx.outputs(kInnerCache)[i]->lod.clear();
    }
    if (i >= ctx.outputs(kXShape).size() || ctx.outputs(kXShape)[i] == nullptr) continue;
    if (shape.rank() == kMaxRank) {
      return InvalidArgument("an operand has ", kMaxRank, " dims, expected fewer");
    }
    Shape& carried = ctx.outputs(kXShape)[i]->shape;
    ctx.outputs(kXShape)[i]->lod.clear();
    carried = {0};
    for (const int64_t dim : shape) carried.push_back(dim);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Einsum(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Terms terms, TermsOf(ctx, kOperands));
  const auto inputs = ctx.inputs(kOperands);
  for (size_t i = 0; i < inputs.size() && i < ctx.outputs(kInnerCache).size(); ++i) {
    if (Tensor* const cache = ctx.outputs(kInnerCache)[i]) CopyUnlessShared(*inputs[i], *cache);
  }
  std::vector<Operand> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back({inputs[i]->raw_data(), inputs[i]->shape, terms.operands[i],
                        ctx.input_is_constant(kOperands, static_cast<int>(i))});
  }
  return Contract<T>(ctx, terms.lengths, operands[0], operands.size() > 1 ? &operands[1] : nullptr,
                     terms.out, ctx.output(kOut).mutable_data<T>());
}

absl::Status MakeEinsumGradient(GradientMaker& maker) {
  return AddGradientOp(
      maker, "einsum_grad",
      {{"x_shape", "XShape"}, {"InnerCache", "InnerCache"}, {"Out@GRAD", "Out@GRAD"}},
      {{"Operands@GRAD", "Operands@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "einsum",
    .inputs = {{"Operands", kVariadic}},
    .outputs = {{"Out"}, {"InnerCache", kVariadic | kOptional}, {"XShape", kVariadic | kOptional}},
    .parse = ParseAttrs<EinsumAttrs, ReadEinsumAttrs>,
    .infer = InferEinsum,
    .kernels = {{DType::kFloat32, Einsum<float>}, {DType::kFloat64, Einsum<double>}},
    .view = {{kOperands, kInnerCache, /*each=*/true}},
    .gradient = {.make = MakeEinsumGradient},
});

constexpr int kCache = 0;
constexpr int kOutGrad = 2;
constexpr int kOperandsGrad = 0;

absl::Status InferEinsumGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Terms terms, TermsOf(ctx, kCache));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", terms.OutShape()));
  const auto operands = ctx.inputs(kCache);
  for (size_t i = 0; i < ctx.outputs(kOperandsGrad).size(); ++i) {
    if (i >= operands.size()) return InvalidArgument("there are more gradients than operands");
    Tensor* const grad = ctx.outputs(kOperandsGrad)[i];
    if (grad == nullptr) continue;
    grad->shape = operands[i]->shape;
    grad->lod = operands[i]->lod;
  }
  return absl::OkStatus();
}

// Labels of the dimensions along which an operand is not repeated, each once.
Labels OwnLabels(const Terms& terms, const Operand& operand) {
  Labels own;
  for (int d = 0; d < operand.shape.rank(); ++d) {
    const Label label = operand.labels[d];
    const bool repeats = operand.shape[d] == 1 && terms.lengths[label] != 1;
    if (!repeats && std::find(own.begin(), own.end(), label) == own.end()) own.push_back(label);
  }
  return own;
}

// The gradient of `operand` is compact first, and then goes to where the labels are: to a diagonal
// where one is there twice.
template <typename T>
absl::Status DifferentiateOperand(KernelContext& ctx, const Terms& terms, const Operand& operand,
                                  const Operand* other, Tensor& grad) {
  const Labels own = OwnLabels(terms, operand);
  Tensor compact;
  compact.dtype = grad.dtype;
  for (const Label label : own) compact.shape.push_back(terms.lengths[label]);
  INTERP_RETURN_IF_ERROR(ctx.Allocate(compact));
  const Tensor& out_grad = ctx.input(kOutGrad);
  const Operand source = {out_grad.raw_data(), out_grad.shape, terms.out};
  INTERP_RETURN_IF_ERROR(
      Contract<T>(ctx, terms.lengths, source, other, own, compact.mutable_data<T>()));
  FillZero(ctx.num_threads(), grad);
  if (compact.numel() == 0) return absl::OkStatus();
  const Strides from = StridesOf(compact);
  const Strides to = StridesOf(grad);
  CopyDims dims;
  for (size_t i = 0; i < own.size(); ++i) {
    int64_t step = 0;
    for (int d = 0; d < grad.shape.rank(); ++d) {
      const bool advances = grad.shape[d] != 1 || terms.lengths[own[i]] == 1;
      if (operand.labels[d] == own[i] && advances) step += to[d];
    }
    dims.push_back({compact.shape[static_cast<int>(i)], from[i], step});
  }
  CopyStrided(ctx.num_threads(), sizeof(T), dims, compact.raw_data(), grad.mutable_raw_data());
  return absl::OkStatus();
}

template <typename T>
absl::Status EinsumGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Terms terms, TermsOf(ctx, kCache));
  const auto inputs = ctx.inputs(kCache);
  std::vector<Operand> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back({inputs[i]->raw_data(), inputs[i]->shape, terms.operands[i]});
  }
  for (size_t i = 0; i < ctx.outputs(kOperandsGrad).size(); ++i) {
    Tensor* const grad = ctx.outputs(kOperandsGrad)[i];
    if (grad == nullptr) continue;
    const Operand* const other = operands.size() > 1 ? &operands[1 - i] : nullptr;
    INTERP_RETURN_IF_ERROR(DifferentiateOperand<T>(ctx, terms, operands[i], other, *grad));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "einsum_grad",
    .inputs = {{"InnerCache", kVariadic},
               {"x_shape", kVariadic | kOptional | kNoNeedBuffer | kAnyDType},
               {"Out@GRAD"}},
    .outputs = {{"Operands@GRAD", kVariadic | kOptional}},
    .parse = ParseAttrs<EinsumAttrs, ReadEinsumAttrs>,
    .infer = InferEinsumGrad,
    .kernels = {{DType::kFloat32, EinsumGrad<float>}, {DType::kFloat64, EinsumGrad<double>}},
});

}  // namespace
}  // namespace interp::einsum
