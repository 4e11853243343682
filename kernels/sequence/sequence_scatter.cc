// sequence_scatter: Out = X, but for each k in sequence i of Ids: Out[i][Ids[k]] += Updates[k].
#include <cstring>
#include <type_traits>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/copy.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kIds = 1;
constexpr int kUpdates = 2;
constexpr int kOut = 0;

absl::Status InferSequenceScatter(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& ids = ctx.input(kIds);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(ids, "Ids"));
  if (x.shape.rank() == 0 || SequenceCount(offsets) > x.shape[0]) {
    return InvalidArgument("input 'Ids' has ", SequenceCount(offsets),
                           " sequences, but input 'X' has shape ", ToString(x.shape),
                           ", expected a row for each of them");
  }
  const int64_t updates = ctx.input(kUpdates).numel();
  if (ids.numel() != offsets.back() || updates != offsets.back()) {
    return InvalidArgument("inputs 'Ids' and 'Updates' have ", ids.numel(), " and ", updates,
                           " elements, expected ", offsets.back(), ", the rows of 'Ids'");
  }
  const Shape shape = x.shape;
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

// Integers wrap around.
template <typename T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <typename T>
absl::Status SequenceScatter(KernelContext& ctx) {
  const Tensor& ids = ctx.input(kIds);
  Tensor& out_tensor = ctx.output(kOut);
  CopyUnlessShared(ctx.input(kX), out_tensor);
  const Offsets offsets = ids.lod.back();
  const int64_t row_size = RowSize(out_tensor);
  const T* const updates = ctx.input(kUpdates).data<T>();
  T* const out = out_tensor.mutable_data<T>();
  return WithIndices(ids, "Ids", [&](const auto* columns) {
    INTERP_RETURN_IF_ERROR(CheckIndices(columns, offsets.back(), row_size, "Ids"));
    for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
      T* const row = out + i * row_size;
      for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) {
        row[columns[k]] = Sum(row[columns[k]], updates[k]);
      }
    }
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_scatter",
    .inputs = {{"X"}, {"Ids", kAnyDType}, {"Updates"}},
    .outputs = {{"Out"}},
    .infer = InferSequenceScatter,
    .kernels = {{DType::kFloat32, SequenceScatter<float>},
                {DType::kFloat64, SequenceScatter<double>},
                {DType::kInt64, SequenceScatter<int64_t>},
                {DType::kInt32, SequenceScatter<int32_t>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Ids", "Updates", "Out@GRAD"}, .outputs = {"X@GRAD", "Updates@GRAD"}},
});

}  // namespace
}  // namespace interp
