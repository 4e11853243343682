// linspace: Out = Num values evenly from Start to Stop, both included, of attribute `dtype`.
#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kStart = 0;
constexpr int kStop = 1;
constexpr int kNum = 2;
constexpr int kOut = 0;

struct LinspaceAttrs {
  DType dtype = DType::kFloat32;
};

LinspaceAttrs ReadLinspaceAttrs(AttrReader& reader) {
  return {reader.Type("dtype", DType::kFloat32)};
}

DType LinspaceDType(const DTypeContext& ctx) { return ctx.attrs<LinspaceAttrs>().dtype; }

absl::Status InferLinspace(InferContext& ctx) {
  for (const int slot : {kStart, kStop}) {
    if (ctx.input(slot).shape.CheckedNumel() != 1) {
      return InvalidArgument(slot == kStart ? "'Start' is " : "'Stop' is ",
                             DescribeType(ctx.input(slot)), ", expected one element");
    }
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t num, ReadInteger(ctx, kNum, "Num", 0));
  if (num <= 0) return InvalidArgument("'Num' is ", num, ", expected at least 1");
  ctx.SetShape(kOut, {num});
  return absl::OkStatus();
}

// Counts from both ends, as Paddle does, so that the last value is exactly Stop.
template <typename T>
absl::Status Linspace(KernelContext& ctx) {
  const double start = static_cast<double>(*ctx.input(kStart).data<T>());
  const double stop = static_cast<double>(*ctx.input(kStop).data<T>());
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t num = ctx.output(kOut).numel();
  if (num == 1) {
    out[0] = static_cast<T>(start);
    return absl::OkStatus();
  }
  const double step = (stop - start) / static_cast<double>(num - 1);
  const int64_t half = num / 2;
  for (int64_t i = 0; i < half; ++i) {
    out[i] = static_cast<T>(start + step * static_cast<double>(i));
  }
  for (int64_t i = half; i < num; ++i) {
    out[i] = static_cast<T>(stop - step * static_cast<double>(num - i - 1));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "linspace",
    .inputs = {{"Start"}, {"Stop"}, {"Num", kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<LinspaceAttrs, ReadLinspaceAttrs>,
    .kernel_dtype = LinspaceDType,
    .infer = InferLinspace,
    .kernels = {{DType::kFloat32, Linspace<float>},
                {DType::kFloat64, Linspace<double>},
                {DType::kInt32, Linspace<int32_t>},
                {DType::kInt64, Linspace<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
