// where: Out[i] = Condition[i] ? X[i] : Y[i], all of one shape.
#include "core/op_def.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kCondition = 0;
constexpr int kX = 1;
constexpr int kY = 2;
constexpr int kOut = 0;

DType WhereDType(const DTypeContext& ctx) { return ctx.input(kX); }

absl::Status InferWhere(InferContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  if (condition.dtype != DType::kBool) {
    return InvalidArgument("'Condition' is ", DescribeType(condition), ", expected bool");
  }
  if (!(condition.shape == x.shape) || !(y.shape == x.shape)) {
    return InvalidArgument("'Condition' has shape ", ToString(condition.shape), ", 'X' ",
                           ToString(x.shape), ", 'Y' ", ToString(y.shape), ", expected one shape");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status Where(KernelContext& ctx) {
  const uint8_t* const condition = static_cast<const uint8_t*>(ctx.input(kCondition).raw_data());
  Tensor& output = ctx.output(kOut);
  WithElementSize(output.dtype, [&](auto element) {
    using Element = decltype(element);
    const Element* const x = static_cast<const Element*>(ctx.input(kX).raw_data());
    const Element* const y = static_cast<const Element*>(ctx.input(kY).raw_data());
    Element* const out = static_cast<Element*>(output.mutable_raw_data());
    ParallelFor(ctx.num_threads(), output.numel(), kElementwiseGrain,
                [=](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) out[i] = condition[i] != 0 ? x[i] : y[i];
                });
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "where",
    .inputs = {{"Condition", kAnyDType}, {"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .kernel_dtype = WhereDType,
    .infer = InferWhere,
    .kernels = {{DType::kUndefined, Where}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}, {kY, kOut}},
    .gradient = {.inputs = {"Condition", "X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

}  // namespace
}  // namespace interp
