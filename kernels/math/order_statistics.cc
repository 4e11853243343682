// kthvalue: the k-th smallest element of each line along `axis`, and where it is. NaN is larger
// than all numbers.
// mode: the element that is there most often, the smallest of several, and where it is last.

#include "core/op_def.h"
#include "kernels/math/sorting.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kIndices = 1;

struct StatisticAttrs {
  int64_t axis = -1;
  bool keep_dim = false;
  int64_t k = 1;  // of kthvalue
};

StatisticAttrs ReadStatisticAttrs(AttrReader& reader) {
  return {reader.Long("axis", -1), reader.Bool("keepdim", false), reader.Long("k", 1)};
}

absl::Status InferStatistic(InferContext& ctx) {
  const StatisticAttrs& attrs = ctx.attrs<StatisticAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckAxis(attrs.axis, x, "X"));
  const int axis = AxisOf(attrs.axis, x);
  const int64_t length = LinesAlong(x, axis).length;
  if (length == 0) return InvalidArgument("input 'X' ", ToString(x), " has no element to choose");
  if (attrs.k < 1 || attrs.k > length) {
    return InvalidArgument("attribute 'k' is ", attrs.k, " for 'X' ", ToString(x),
                           ", expected 1 to ", length);
  }
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis || attrs.keep_dim) out.push_back(i == axis ? 1 : x[i]);
  }
  ctx.SetShape(kOut, out);
  ctx.SetShape(kIndices, out);
  ShareLod(ctx.input(kX), ctx.output(kOut));
  if (Tensor* const indices = ctx.optional_output(kIndices)) ShareLod(ctx.input(kX), *indices);
  return absl::OkStatus();
}

struct Kth {
  int64_t k;
  template <typename T>
  Ranked<T> operator()(Ranked<T>* line, int64_t length) const {
    SelectFirst</*kDescending=*/false>(line, line + length, k, /*sorted=*/false);
    return line[k - 1];
  }
};

struct Mode {
  template <typename T>
  Ranked<T> operator()(Ranked<T>* line, int64_t length) const {
    std::sort(line, line + length, RankedBefore<T, /*kDescending=*/false>());
    Ranked<T> best = line[0];
    int64_t most = 0;
    int64_t begin = 0;
    for (int64_t i = 0; i < length; ++i) {
      if (i + 1 < length && line[i + 1].value == line[i].value) continue;
      if (i + 1 - begin > most) {
        most = i + 1 - begin;
        best = line[i];
      }
      begin = i + 1;
    }
    return best;
  }
};

template <typename T, typename Choose>
absl::Status ChooseInLines(KernelContext& ctx, const Choose& choose) {
  const Tensor& x = ctx.input(kX);
  const Lines lines = LinesAlong(x.shape, ctx.attrs<StatisticAttrs>().axis);
  if (lines.count() == 0) return absl::OkStatus();
  const int tasks = LineTasks(lines, ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(
      const Workspace scratch,
      ctx.workspace(static_cast<size_t>(tasks * lines.length) * sizeof(Ranked<T>)));
  auto* const entries = scratch.data<Ranked<T>>();
  const T* const in = x.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  int64_t* const indices = ctx.output(kIndices).mutable_data<int64_t>();
  ForEachLine(lines, tasks, [=](int64_t task, int64_t line) {
    Ranked<T>* const entry = entries + task * lines.length;
    const T* const from = in + lines.Start(line);
    for (int64_t i = 0; i < lines.length; ++i) entry[i] = {from[i * lines.inner], i};
    const Ranked<T> chosen = choose(entry, lines.length);
    out[line] = chosen.value;
    indices[line] = chosen.index;
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status KthValue(KernelContext& ctx) {
  return ChooseInLines<T>(ctx, Kth{ctx.attrs<StatisticAttrs>().k});
}

template <typename T>
absl::Status ModeOfLines(KernelContext& ctx) {
  return ChooseInLines<T>(ctx, Mode());
}

OpDef StatisticDef(absl::string_view type, std::vector<KernelDef> kernels) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}, {"Indices"}},
      .parse = ParseAttrs<StatisticAttrs, ReadStatisticAttrs>,
      .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kIndices, DType::kInt64); },
      .infer = InferStatistic,
      .kernels = std::move(kernels),
      .gradient = {.inputs = {"X", "Indices", "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(StatisticDef("kthvalue", {{DType::kFloat32, KthValue<float>},
                                             {DType::kFloat64, KthValue<double>},
                                             {DType::kInt32, KthValue<int32_t>},
                                             {DType::kInt64, KthValue<int64_t>}}));
INTERP_REGISTER_OP(StatisticDef("mode", {{DType::kFloat32, ModeOfLines<float>},
                                         {DType::kFloat64, ModeOfLines<double>},
                                         {DType::kInt32, ModeOfLines<int32_t>},
                                         {DType::kInt64, ModeOfLines<int64_t>}}));

}  // namespace
}  // namespace interp
