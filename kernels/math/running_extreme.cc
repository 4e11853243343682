// cummax, cummin: out[i] = the largest or smallest of x[0], ..., x[i] along `axis`, and where it is
// last. From the first NaN on the result is NaN.
#include <functional>
#include <limits>

#include "core/op_def.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kIndices = 1;

struct RunningAttrs {
  int64_t axis = -1;
  DType dtype = DType::kInt64;
};

RunningAttrs ReadRunningAttrs(AttrReader& reader) {
  const RunningAttrs attrs = {reader.Long("axis", -1), reader.Type("dtype", DType::kInt64)};
  if (attrs.dtype != DType::kInt32 && attrs.dtype != DType::kInt64) {
    reader.Fail(
        absl::StrCat("attribute 'dtype' is ", Name(attrs.dtype), ", expected int32 or int64"));
  }
  return attrs;
}

absl::Status InferRunning(InferContext& ctx) {
  const RunningAttrs& attrs = ctx.attrs<RunningAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckAxis(attrs.axis, x, "X"));
  const int64_t length = LinesAlong(x, attrs.axis).length;
  if (attrs.dtype == DType::kInt32 && length > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("positions up to ", length, " do not fit into int32");
  }
  ctx.ShareShape(kX, kOut);
  ctx.ShareShape(kX, kIndices);
  return absl::OkStatus();
}

template <typename T, typename I, typename Better>
void Run(KernelContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  const Lines lines = LinesAlong(shape, ctx.attrs<RunningAttrs>().axis);
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  I* const indices = ctx.output(kIndices).mutable_data<I>();
  ForEachLine(lines, LineTasks(lines, ctx.num_threads()), [=](int64_t, int64_t line) {
    int64_t at = lines.Start(line);
    T best = lines.length > 0 ? x[at] : T{0};
    I where = 0;
    for (int64_t i = 0; i < lines.length; ++i, at += lines.inner) {
      const T value = x[at];
      if (value != value || (best == best && Better()(value, best))) {
        best = value;
        where = static_cast<I>(i);
      }
      out[at] = best;
      indices[at] = where;
    }
  });
}

template <typename T, typename Better>
absl::Status Running(KernelContext& ctx) {
  if (ctx.attrs<RunningAttrs>().dtype == DType::kInt32) {
    Run<T, int32_t, Better>(ctx);
  } else {
    Run<T, int64_t, Better>(ctx);
  }
  return absl::OkStatus();
}

template <typename Better>
OpDef RunningDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"x"}},
      .outputs = {{"out"}, {"indices"}},
      .parse = ParseAttrs<RunningAttrs, ReadRunningAttrs>,
      .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kIndices, ctx.attrs<RunningAttrs>().dtype); },
      .infer = InferRunning,
      .kernels = {{DType::kFloat32, Running<float, Better>},
                  {DType::kFloat64, Running<double, Better>},
                  {DType::kInt32, Running<int32_t, Better>},
                  {DType::kInt64, Running<int64_t, Better>}},
      .gradient = {.inputs = {"x", "indices", "out@GRAD"}, .outputs = {"x@GRAD"}},
  };
}

INTERP_REGISTER_OP(RunningDef<std::greater_equal<>>("cummax"));
INTERP_REGISTER_OP(RunningDef<std::less_equal<>>("cummin"));

}  // namespace
}  // namespace interp
