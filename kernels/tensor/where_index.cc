// where_index: Out[k] = the coordinates (int64) of the k-th element of Condition that is not 0.
#include <algorithm>

#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kCondition = 0;
constexpr int kOut = 0;

void WhereIndexOutput(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt64); }

// Writes the coordinates of each non-zero element; advances them like an odometer.
template <typename T>
void WriteCoordinates(const T* condition, const Shape& shape, int64_t* out) {
  const int rank = shape.rank();
  const int64_t count = shape.numel();
  std::array<int64_t, kMaxRank> at = {};
  for (int64_t i = 0; i < count; ++i) {
    if (condition[i] != T{0}) out = std::copy(at.begin(), at.begin() + rank, out);
    for (int d = rank - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
  }
}

template <typename T>
absl::Status WhereIndex(KernelContext& ctx) {
  const Tensor& condition = ctx.input(kCondition);
  const T* const data = static_cast<const T*>(condition.raw_data());
  const int64_t count = condition.numel();
  Tensor& out = ctx.output(kOut);
  out.shape = {count - std::count(data, data + count, T{0}), condition.shape.rank()};
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  WriteCoordinates(data, condition.shape, out.mutable_data<int64_t>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "where_index",
    .inputs = {{"Condition"}},
    .outputs = {{"Out"}},
    .infer_dtype = WhereIndexOutput,
    .kernels = {{DType::kBool, WhereIndex<uint8_t>},
                {DType::kUInt8, WhereIndex<uint8_t>},
                {DType::kInt16, WhereIndex<int16_t>},
                {DType::kInt32, WhereIndex<int32_t>},
                {DType::kInt64, WhereIndex<int64_t>},
                {DType::kFloat32, WhereIndex<float>},
                {DType::kFloat64, WhereIndex<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
