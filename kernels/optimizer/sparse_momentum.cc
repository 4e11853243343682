// sparse_momentum: momentum by some rows, or with axis 1 columns, of the gradient: Index says which
// of the parameter they are. Those that repeat add up; for all others the gradient is zero.
#include <vector>

#include "kernels/optimizer/momentum.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp::optimizer {
namespace {

constexpr Form<1> kMomentum = {.states = {{{"Velocity", "VelocityOut"}}}};
constexpr int kIndex = kMomentum.kFirstOther;
constexpr int kAxis = kIndex + 1;

struct Attrs {
  MomentumAttrs momentum;
  float decay = 0;
  float rescale = 1;
  int64_t axis = 0;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {.momentum = ReadMomentum(reader),
          .decay = DecayOf(reader.String("regularization_method", ""),
                           reader.Float("regularization_coeff", 0)),
          .rescale = reader.Float("rescale_grad", 1),
          .axis = reader.Int("axis", 0)};
}

// 0 or 1.
absl::StatusOr<int64_t> AxisOf(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t axis,
                          ReadInteger(ctx, kAxis, "axis", ctx.attrs<Attrs>().axis));
  if (axis == 0 || axis == 1) return axis;
  return InvalidArgument("'axis' is ", axis, ", expected 0 or 1");
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(ctx));
  const Tensor& index = ctx.input(kIndex);
  if ((index.dtype != DType::kInt32 && index.dtype != DType::kInt64) || index.shape.rank() != 1) {
    return InvalidArgument("input 'Index' is ", DescribeType(index),
                           ", expected int32 or int64[n]");
  }
  const Shape& param = ctx.input(kParam).shape;
  if (param.rank() != 2) {
    return InvalidArgument("input 'Param' has shape ", ToString(param), ", expected two dims");
  }
  Shape expected = param;
  expected[static_cast<int>(axis)] = index.shape[0];
  const Tensor& grad = ctx.input(kGrad);
  if (!IsFloating(grad.dtype) || !(grad.shape == expected)) {
    return InvalidArgument("input 'Grad' is ", DescribeType(grad), ", expected floats of shape ",
                           ToString(expected));
  }
  return InferUpdateButGrad<kMomentum>(ctx);
}

// Adds Grad to `sum`, which has the shape of the parameter.
template <typename M>
void AddGradient(const Tensor& grad, const std::vector<int64_t>& index, int64_t axis,
                 int64_t columns, M* sum) {
  const int64_t width = grad.shape[1];
  std::vector<M> row(static_cast<size_t>(width));
  for (int64_t i = 0; i < grad.shape[0]; ++i) {
    const M* const from = LoadChunk(grad, i * width, width, row.data());
    for (int64_t j = 0; j < width; ++j) {
      sum[axis == 0 ? index[i] * columns + j : i * columns + index[j]] += from[j];
    }
  }
}

template <typename M>
absl::Status SparseMomentum(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(ctx));
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Shape& shape = ctx.input(kParam).shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> index,
                          InferContext::Integers(ctx.input(kIndex)));
  for (const int64_t i : index) {
    if (i >= 0 && i < shape[static_cast<int>(axis)]) continue;
    return InvalidArgument("input 'Index' has ", i, ", expected less than ",
                           shape[static_cast<int>(axis)]);
  }
  const auto count = static_cast<size_t>(shape.numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(count * sizeof(M)));
  std::fill_n(work.data<M>(), count, M{0});
  AddGradient<M>(ctx.input(kGrad), index, axis, shape[1], work.data<M>());
  const Tensor sum = Tensor::Borrow(DTypeOf<M>, shape, work.data<M>());
  INTERP_ASSIGN_OR_RETURN(auto update, (CollectUpdate<M, kMomentum>(ctx)));
  update.gradient = Gradient<M>(sum);
  const M rate = LearningRate<M>(ctx);
  const auto run = [&](auto rule) {
    RunUpdates<M, 1, decltype(rule)>(ctx.num_threads(), {{std::move(update), rule}});
  };
  const M mu = attrs.momentum.mu;
  if (attrs.momentum.nesterov) {
    run(MomentumRule<M, true>{rate, mu, attrs.decay, attrs.rescale});
  } else {
    run(MomentumRule<M, false>{rate, mu, attrs.decay, attrs.rescale});
  }
  return absl::OkStatus();
}

OpDef SparseMomentumDef() {
  OpDef def = UpdateDef<kMomentum>("sparse_momentum",
                                   UpdateKernels(SparseMomentum<float>, SparseMomentum<double>));
  def.inputs.push_back({"Index", kAnyDType});
  def.inputs.push_back({"Axis", kAnyDType | kOptional | kValueInInfer});
  def.infer = Infer;
  def.parse = ParseAttrs<Attrs, ReadAttrs>;
  return def;
}

INTERP_REGISTER_OP(SparseMomentumDef());

}  // namespace
}  // namespace interp::optimizer
