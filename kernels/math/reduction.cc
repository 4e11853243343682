#include "kernels/math/reduction.h"

#include <utility>

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kAxisTensor = 1;
constexpr int kAxisTensorList = 2;
constexpr int kOut = 0;

}  // namespace

absl::Status InferReduction(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const DimSet reduced, DimsOf(ctx));
  SetReducedShape(ctx, reduced, ctx.attrs<ReductionAttrs>().keep_dim);
  return absl::OkStatus();
}

ReductionAttrs ReadReductionAttrs(AttrReader& attrs) {
  ReductionAttrs parsed;
  parsed.dims = attrs.Ints("dim", {0});
  parsed.keep_dim = attrs.Bool("keep_dim", false);
  parsed.out_dtype = attrs.Type("out_dtype", DType::kUndefined);
  if (attrs.Bool("reduce_all", false)) parsed.dims.clear();
  return parsed;
}

OpDef ReductionDef(absl::string_view type, std::vector<KernelDef> kernels) {
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"AxisTensor", kOptional | kAnyDType | kValueInInfer, "dim"},
                 {"AxisTensorList", kOptional | kVariadic | kAnyDType | kValueInInfer, "dim"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<ReductionAttrs, ReadReductionAttrs>,
      .infer = InferReduction,
      .kernels = std::move(kernels),
      .layout = LayoutRule::kFollows};
}

GradientDef ReductionGradient(bool of_out) {
  GradientDef def = {.inputs = {"X", "Out@GRAD", "AxisTensor", "AxisTensorList"},
                     .outputs = {"X@GRAD"}};
  if (of_out) def.inputs.emplace_back("Out");
  return def;
}

void SetReducedShape(InferContext& ctx, const DimSet& reduced, bool keep_dim) {
  ctx.SetShape(kOut, ReducedShape(ctx.input(kX).shape, reduced, keep_dim));
}

absl::StatusOr<DimSet> DimsOf(const OpContext& ctx) {
  const int rank = ctx.input(kX).shape.rank();
  const std::vector<int64_t>& attr = ctx.attrs<ReductionAttrs>().dims;
  if (attr.empty()) return ReducedDims({}, rank);
  if (const Tensor* axes = ctx.optional_input(kAxisTensor)) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> values, InferContext::Integers(*axes));
    return ReducedDims(values, rank);
  }
  std::vector<int64_t> values;
  for (const Tensor* axis : ctx.inputs(kAxisTensorList)) {
    if (axis == nullptr) continue;
    INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> value, InferContext::Integers(*axis));
    values.insert(values.end(), value.begin(), value.end());
  }
  if (values.empty()) return ReducedDims(attr, rank);
  return ReducedDims(values, rank);
}

int64_t ReducedCount(const Shape& x, const DimSet& reduced) {
  int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i) count *= reduced[i] ? x[i] : 1;
  return count;
}

}  // namespace interp
