// logspace: Out = Base to the power of Num values evenly from Start to Stop, both included, as
// attribute `dtype`.
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kStart = 0;
constexpr int kStop = 1;
constexpr int kNum = 2;
constexpr int kBase = 3;
constexpr int kOut = 0;

struct LogspaceAttrs {
  DType dtype = DType::kFloat32;
};

LogspaceAttrs ReadLogspaceAttrs(AttrReader& reader) {
  return {reader.Type("dtype", DType::kFloat32)};
}

absl::Status InferLogspace(InferContext& ctx) {
  for (const auto& [slot, name] : {std::pair(kStart, "Start"), {kStop, "Stop"}, {kBase, "Base"}}) {
    if (ctx.input(slot).shape.CheckedNumel() != 1) {
      return InvalidArgument("'", name, "' is ", DescribeType(ctx.input(slot)),
                             ", expected one element");
    }
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t num, ReadInteger(ctx, kNum, "Num", 0));
  if (num <= 0) return InvalidArgument("'Num' is ", num, ", expected at least 1");
  ctx.SetShape(kOut, {num});
  return absl::OkStatus();
}

// Counts from both ends, as Paddle does, so that the last exponent is exactly Stop.
template <typename T>
absl::Status Logspace(KernelContext& ctx) {
  const double start = static_cast<double>(*ctx.input(kStart).data<T>());
  const double stop = static_cast<double>(*ctx.input(kStop).data<T>());
  const double base = static_cast<double>(*ctx.input(kBase).data<T>());
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t num = ctx.output(kOut).numel();
  const double step = num == 1 ? 0 : (stop - start) / static_cast<double>(num - 1);
  for (int64_t i = 0; i < num; ++i) {
    const double exponent = i < num / 2 || num == 1
                                ? start + step * static_cast<double>(i)
                                : stop - step * static_cast<double>(num - i - 1);
    out[i] = Convert<T>(std::pow(base, exponent));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "logspace",
    .inputs = {{"Start"}, {"Stop"}, {"Num", kAnyDType | kValueInInfer}, {"Base"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<LogspaceAttrs, ReadLogspaceAttrs>,
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.attrs<LogspaceAttrs>().dtype; },
    .infer = InferLogspace,
    .kernels = {{DType::kFloat32, Logspace<float>},
                {DType::kFloat64, Logspace<double>},
                {DType::kInt32, Logspace<int32_t>},
                {DType::kInt64, Logspace<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
