// weight_quantize: out = the weights x [rows, columns] as whole numbers, in the order of
// WeightOrder; scale = by column, what brings them back.
// weight_dequantize: out = those weights again, [rows, columns] of `out_dtype`.
#include <algorithm>
#include <cmath>

#include "kernels/quant/weight_only.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/parallel_for.h"

namespace interp::weight_quantize {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kOut = 0;
constexpr int kOutScale = 1;

struct Attrs {
  WeightOrder order;
  DType out_dtype = DType::kFloat16;
};

Attrs Read(AttrReader& reader) {
  if (reader.Int("group_size", -1) > 0) {
    reader.Fail("attribute 'group_size' is set, expected one scale for each column");
  }
  return {.order = ReadWeightOrder(reader, reader.String("algo", "weight_only_int8")),
          .out_dtype = reader.Type("out_dtype", DType::kFloat16)};
}

absl::Status InferQuantize(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  WeightOrder order = ctx.attrs<Attrs>().order;
  if (x.rank() != 2) {
    return InvalidArgument("input 'x' has shape ", ToString(x), ", expected a matrix");
  }
  order.rows = x[0];
  order.columns = x[1];
  INTERP_RETURN_IF_ERROR(CheckTiles(order));
  ctx.SetShape(kOut, {x[1] * order.bits / 8, x[0]});
  ctx.SetShape(kOutScale, {x[1]});
  return absl::OkStatus();
}

void InferQuantizeDTypes(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt8); }

// Of a column of zeros, whose scale is 0, Paddle's conversion of NaN makes these.
int32_t OnGrid(const WeightOrder& order, float value) {
  if (std::isnan(value)) return order.bits == 8 ? 127 : -7;
  const auto most = static_cast<float>(order.most());
  return static_cast<int32_t>(std::clamp(std::round(value), -most, most));
}

// Columns that lie side by side: no byte of the result has weights of two such blocks.
constexpr int64_t kBlock = 16;

template <typename T>
void QuantizeBlock(const WeightOrder& order, const T* x, int64_t first, int8_t* out, T* scales) {
  float most[kBlock] = {};
  for (int64_t row = 0; row < order.rows; ++row) {
    const T* const from = x + row * order.columns + first;
    for (int64_t i = 0; i < kBlock; ++i) {
      most[i] = std::max(most[i], std::abs(static_cast<float>(from[i])));
    }
  }
  float steps[kBlock];
  for (int64_t i = 0; i < kBlock; ++i) {
    scales[first + i] = static_cast<T>(most[i] / static_cast<float>(order.most()));
    steps[i] = static_cast<float>(scales[first + i]);
  }
  for (int64_t row = 0; row < order.rows; ++row) {
    const T* const from = x + row * order.columns + first;
    for (int64_t i = 0; i < kBlock; ++i) {
      order.Write(OnGrid(order, static_cast<float>(from[i]) / steps[i]), row, first + i, out);
    }
  }
}

template <typename T>
void Quantize(const KernelContext& ctx, const WeightOrder& order) {
  const T* const x = ctx.input(kX).data<T>();
  auto* const out = ctx.output(kOut).mutable_data<int8_t>();
  auto* const scales = ctx.output(kOutScale).mutable_data<T>();
  FillZero(ctx.num_threads(), ctx.output(kOut));
  ParallelFor(ctx.num_threads(), order.columns / kBlock,
              kElementwiseGrain / (8 * kBlock * std::max<int64_t>(1, order.rows)) + 1,
              [=, &order](int64_t begin, int64_t end) {
                for (int64_t block = begin; block < end; ++block) {
                  QuantizeBlock(order, x, block * kBlock, out, scales);
                }
              });
}

template <typename T>
absl::Status RunQuantize(KernelContext& ctx) {
  WeightOrder order = ctx.attrs<Attrs>().order;
  order.rows = ctx.input(kX).shape[0];
  order.columns = ctx.input(kX).shape[1];
  Quantize<T>(ctx, order);
  return absl::OkStatus();
}

absl::Status InferDequantize(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const WeightOrder order,
                          OrderOfWeights(ctx.attrs<Attrs>().order, ctx.input(kX)));
  const Tensor& scale = ctx.input(kScale);
  if (scale.numel() != order.columns) {
    return InvalidArgument("input 'scale' is ", DescribeType(scale), ", expected ", order.columns,
                           " elements");
  }
  ctx.SetShape(kOut, {order.rows, order.columns});
  return absl::OkStatus();
}

// The kernel computes in the dtype of the scales; the weights are bytes.
DType DequantizeDType(const DTypeContext& ctx) { return ctx.attrs<Attrs>().out_dtype; }

template <typename T>
absl::Status RunDequantize(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const WeightOrder order,
                          OrderOfWeights(ctx.attrs<Attrs>().order, ctx.input(kX)));
  const auto* const x = ctx.input(kX).data<int8_t>();
  const T* const scales = ctx.input(kScale).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ParallelFor(ctx.num_threads(), order.rows,
              kElementwiseGrain / std::max<int64_t>(1, order.columns),
              [=](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  for (int64_t column = 0; column < order.columns; ++column) {
                    const auto value = static_cast<float>(order.Read(x, row, column));
                    out[row * order.columns + column] =
                        static_cast<T>(value * static_cast<float>(scales[column]));
                  }
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "weight_quantize",
    .inputs = {{"x"}},
    .outputs = {{"out"}, {"scale"}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer_dtype = InferQuantizeDTypes,
    .infer = InferQuantize,
    .kernels = {{DType::kFloat16, RunQuantize<float16>}, {DType::kBFloat16, RunQuantize<bfloat16>}},
    .precision = PrecisionRule::kFull,
    .gradient = {.none = true},
});
INTERP_REGISTER_OP(OpDef{
    .type = "weight_dequantize",
    .inputs = {{"x", kAnyDType}, {"scale"}},
    .outputs = {{"out"}},
    .parse = ParseAttrs<Attrs, Read>,
    .kernel_dtype = DequantizeDType,
    .infer = InferDequantize,
    .kernels = {{DType::kFloat32, RunDequantize<float>},
                {DType::kFloat16, RunDequantize<float16>},
                {DType::kBFloat16, RunDequantize<bfloat16>}},
    .precision = PrecisionRule::kFull,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::weight_quantize
