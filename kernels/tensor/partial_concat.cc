// partial_concat: the columns from start_index on, `length` of them, of all X side by side.
// partial_sum: their sum.
#include <algorithm>

#include "kernels/tensor/partial_columns.h"
#include "kernels/util/arithmetic.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status InferConcat(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PartialColumns part, ResolvePartial(ctx));
  ctx.SetShape(kOut, {part.rows, part.inputs * part.count});
  ctx.output(kOut).lod = ctx.inputs(kX)[0]->lod;
  return absl::OkStatus();
}

absl::Status InferSum(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PartialColumns part, ResolvePartial(ctx));
  ctx.SetShape(kOut, {part.rows, part.count});
  ctx.output(kOut).lod = ctx.inputs(kX)[0]->lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status Concat(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PartialColumns part, ResolvePartial(ctx));
  T* out = ctx.output(kOut).mutable_data<T>();
  for (int64_t row = 0; row < part.rows; ++row) {
    for (const Tensor* const x : ctx.inputs(kX)) {
      out = std::copy_n(x->data<T>() + row * part.width + part.begin, part.count, out);
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Sum(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const PartialColumns part, ResolvePartial(ctx));
  T* const out = ctx.output(kOut).mutable_data<T>();
  std::fill_n(out, part.rows * part.count, T{0});
  for (const Tensor* const x : ctx.inputs(kX)) {
    for (int64_t row = 0; row < part.rows; ++row) {
      const T* const from = x->data<T>() + row * part.width + part.begin;
      T* const to = out + row * part.count;
      for (int64_t i = 0; i < part.count; ++i) to[i] = WrapAdd(to[i], from[i]);
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "partial_concat",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PartialAttrs, ReadPartialAttrs>,
    .infer = InferConcat,
    .kernels = {{DType::kFloat32, Concat<float>},
                {DType::kFloat64, Concat<double>},
                {DType::kInt32, Concat<int32_t>},
                {DType::kInt64, Concat<int64_t>}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "partial_sum",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PartialAttrs, ReadPartialAttrs>,
    .infer = InferSum,
    .kernels = {{DType::kFloat32, Sum<float>},
                {DType::kFloat64, Sum<double>},
                {DType::kInt32, Sum<int32_t>},
                {DType::kInt64, Sum<int64_t>}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
