// scatter: Out = X with row Ids[i] taken from Updates[i]. With `overwrite` the last update of a row
// wins; without, the rows are zeroed first and their updates added up.
#include "kernels/tensor/scatter.h"

#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/copy.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kIds = 1;
constexpr int kUpdates = 2;
constexpr int kOut = 0;

absl::Status InferScatter(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& ids = ctx.input(kIds).shape;
  const Shape& updates = ctx.input(kUpdates).shape;
  if (ids.rank() > 2 || (ids.rank() == 2 && ids[1] != 1)) {
    return InvalidArgument("'Ids' has shape ", ToString(ids), ", expected rank 0 or 1, or [k,1]");
  }
  Shape expected = x;
  if (x.rank() == 0) return InvalidArgument("'X' has no rows");
  expected[0] = ids.numel();
  const bool single = ids.rank() == 0 && updates.rank() == x.rank() - 1;
  const bool rows_match = updates.rank() > 0 || single;
  if (!rows_match || updates.numel() != expected.numel() ||
      (!single && updates[0] != ids.numel())) {
    return InvalidArgument("'Updates' has shape ", ToString(updates), ", expected ",
                           ToString(expected));
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// The columns [begin, end) of all updates: threads share out columns, so that repeated ids are
// applied in order.
template <typename T, typename Index>
void ScatterColumns(bool overwrite, const Index* ids, int64_t count, const T* updates,
                    int64_t columns, int64_t begin, int64_t end, T* out) {
  if (overwrite) {
    for (int64_t i = 0; i < count; ++i) {
      const T* const from = updates + i * columns;
      std::copy(from + begin, from + end, out + ids[i] * columns + begin);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::fill(out + ids[i] * columns + begin, out + ids[i] * columns + end, T{0});
  }
  for (int64_t i = 0; i < count; ++i) {
    const T* const from = updates + i * columns;
    T* const to = out + ids[i] * columns;
    for (int64_t c = begin; c < end; ++c) to[c] += from[c];
  }
}

template <typename T>
absl::Status Scatter(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& ids = ctx.input(kIds);
  const int64_t count = ids.numel();
  const int64_t columns = x.shape.numel(1, x.shape.rank());
  const T* const updates = ctx.input(kUpdates).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  return WithIndices(ids, "Ids", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, count, x.shape[0], "Ids"));
    CopyUnlessShared(x, ctx.output(kOut));
    const int64_t grain = GrainFor(count);
    ParallelFor(ctx.num_threads(), columns, grain, [&](int64_t begin, int64_t end) {
      ScatterColumns(ctx.attrs<ScatterAttrs>().overwrite, values, count, updates, columns, begin,
                     end, out);
    });
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "scatter",
    .inputs = {{"X"}, {"Ids", kAnyDType}, {"Updates"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ScatterAttrs, ReadScatterAttrs>,
    .infer = InferScatter,
    .kernels = {{DType::kFloat32, Scatter<float>},
                {DType::kFloat64, Scatter<double>},
                {DType::kInt32, Scatter<int32_t>},
                {DType::kInt64, Scatter<int64_t>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Ids", "Updates", "Out@GRAD"}, .outputs = {"X@GRAD", "Updates@GRAD"}},
});

}  // namespace
}  // namespace interp
