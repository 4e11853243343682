// weight_only_linear: out = x W + bias, where W is what weight_quantize makes of a matrix: whole
// numbers of 8 or 4 bits, `weight`, times `weight_scale`, of each column or of each `group_size`
// rows of one. Weights stay whole numbers in memory; a part of a few columns is made real at a
// time.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/packed_arrays.h"
#include "kernels/product/gemm.h"
#include "kernels/quant/weight_only.h"
#include "kernels/util/flops.h"
#include "kernels/util/parallel_for.h"

namespace interp::weight_only_linear {
namespace {

constexpr int kX = 0;
constexpr int kWeight = 1;
constexpr int kBias = 2;
constexpr int kScale = 3;
constexpr int kOut = 0;
constexpr int64_t kWidth = nn::kPanel<float>;  // columns that are multiplied at once

struct Attrs {
  WeightOrder order;
  int64_t group_rows = 0;  // that share a scale; 0: all
};

Attrs Read(AttrReader& reader) {
  const std::string dtype = reader.String("weight_dtype", "int8");
  if (dtype != "int8" && dtype != "int4") {
    reader.Fail(absl::StrCat("attribute 'weight_dtype' is \"", dtype, "\", expected int8 or int4"));
    return {};
  }
  return {.order = ReadWeightOrder(reader, "weight_only_" + dtype),
          .group_rows = std::max(reader.Int("group_size", -1), 0)};
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const WeightOrder order, OrderOfWeights(attrs.order, ctx.input(kWeight)));
  if (x.shape.rank() < 1 || x.shape[x.shape.rank() - 1] != order.rows) {
    return InvalidArgument("input 'x' has shape ", ToString(x.shape), ", expected rows of ",
                           order.rows, " elements");
  }
  const Tensor* const bias = ctx.optional_input(kBias);
  if (bias != nullptr && bias->numel() != order.columns) {
    return InvalidArgument("input 'bias' has shape ", ToString(bias->shape), ", expected ",
                           order.columns, " elements");
  }
  const int64_t group = attrs.group_rows > 0 ? attrs.group_rows : std::max<int64_t>(order.rows, 1);
  const int64_t scales = (order.rows + group - 1) / group * order.columns;
  if (ctx.input(kScale).numel() != scales) {
    return InvalidArgument("input 'weight_scale' has shape ", ToString(ctx.input(kScale).shape),
                           ", expected ", scales, " elements");
  }
  Shape out = x.shape;
  out[out.rank() - 1] = order.columns;
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

int64_t PackedCount(const WeightOrder& order) {
  return nn::PackedSize<float>(order.rows, order.columns);
}

// The order of nn::GemmPacked: panels of kWidth columns, each row by row.
void Pack(const WeightOrder& order, const int8_t* weights, int8_t* packed) {
  for (int64_t first = 0; first < order.columns; first += kWidth) {
    for (int64_t row = 0; row < order.rows; ++row) {
      for (int64_t c = 0; c < kWidth; ++c, ++packed) {
        const bool inside = first + c < order.columns;
        *packed = static_cast<int8_t>(inside ? order.Read(weights, row, first + c) : 0);
      }
    }
  }
}

struct Factors {
  int64_t m = 0;  // rows of x
  const float* x = nullptr;
  const int8_t* packed = nullptr;
  const float* scales = nullptr;
  const float* bias = nullptr;
  float* out = nullptr;
};

// Rows [begin, end) of a panel as real values.
void MakeReal(const WeightOrder& order, int64_t group_rows, const Factors& factors, int64_t first,
              int64_t begin, int64_t end, float* real) {
  const int64_t width = std::min(kWidth, order.columns - first);
  float scales[kWidth] = {};
  for (int64_t row = begin; row < end; ++row, real += kWidth) {
    const bool next = row == begin || (group_rows > 0 && row % group_rows == 0);
    const int64_t group = group_rows > 0 ? row / group_rows : 0;
    if (next) std::copy_n(factors.scales + group * order.columns + first, width, scales);
    const int8_t* const whole = factors.packed + first * order.rows + row * kWidth;
    for (int64_t c = 0; c < kWidth; ++c) real[c] = static_cast<float>(whole[c]) * scales[c];
  }
}

void MultiplyPanel(const WeightOrder& order, int64_t group_rows, const Factors& factors,
                   int64_t first) {
  alignas(64) float real[nn::kGemmDepth * kWidth];
  const int64_t width = std::min(kWidth, order.columns - first);
  float* const out = factors.out + first;
  for (int64_t begin = 0; begin < order.rows; begin += nn::kGemmDepth) {
    const int64_t end = std::min(begin + nn::kGemmDepth, order.rows);
    MakeReal(order, group_rows, factors, first, begin, end, real);
    nn::GemmPacked<float>(factors.m, end - begin, width, factors.x + begin, order.rows, real, out,
                          order.columns, /*accumulate=*/begin > 0);
  }
  if (factors.bias == nullptr) return;
  for (int64_t i = 0; i < factors.m; ++i) {
    for (int64_t c = 0; c < width; ++c) out[i * order.columns + c] += factors.bias[first + c];
  }
}

absl::Status Run(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  if (ctx.output(kOut).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const WeightOrder order, OrderOfWeights(attrs.order, ctx.input(kWeight)));
  if (order.rows == 0) {
    return InvalidArgument("input 'weight' has no elements");
  }
  std::shared_ptr<const PackedArrays> kept;
  std::vector<int8_t> made;
  const auto pack = [&](int8_t* to) { Pack(order, ctx.input(kWeight).data<int8_t>(), to); };
  Factors factors = {.m = ctx.input(kX).numel() / order.rows,
                     .x = ctx.input(kX).data<float>(),
                     .scales = ctx.input(kScale).data<float>(),
                     .out = ctx.output(kOut).mutable_data<float>()};
  if (const Tensor* bias = ctx.optional_input(kBias)) factors.bias = bias->data<float>();
  if (ctx.input_is_constant(kWeight)) {
    constexpr uint64_t kKey = 1;  // one form for all sizes of x
    INTERP_ASSIGN_OR_RETURN(kept, SharedArray<int8_t>(ctx, kKey, PackedCount(order), pack));
    factors.packed = static_cast<const int8_t*>(kept->arrays[0].raw_data());
  } else {
    made.resize(PackedCount(order));
    pack(made.data());
    factors.packed = made.data();
  }
  const int64_t panels = (order.columns + kWidth - 1) / kWidth;
  ParallelFor(ctx.num_threads(), panels, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      MultiplyPanel(order, attrs.group_rows, factors, panel * kWidth);
    }
  });
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  return ToFlops(2.0 * static_cast<double>(ctx.output(kOut).numel()) *
                 static_cast<double>(ctx.input(kWeight).shape[1]));
}

INTERP_REGISTER_OP(OpDef{
    .type = "weight_only_linear",
    .inputs = {{"x"}, {"weight", kAnyDType}, {"bias", kOptional}, {"weight_scale"}},
    .outputs = {{"out"}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::weight_only_linear
