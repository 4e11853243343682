// Element-wise ops and reductions in the shapes of vision models, by bytes read and written per
// second. They should come near what BM_Copy reaches at the same size.
#include <benchmark/benchmark.h>

#include <cstring>

#include "tests/testing/one_op.h"

namespace interp {
namespace {

using testing::OneOp;

Tensor Values(const Shape& shape, Layout layout = Layout::kPlain) {
  std::vector<float> values(shape.numel());
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i % 997) - 5;
  Tensor tensor = Tensor::Of<float>(shape, values);
  tensor.layout = layout;
  return tensor;
}

// An image tensor of about `bytes`: 64 channels, 28 columns.
Shape ImageOf(int64_t bytes) { return {1, 64, bytes / 4 / 64 / 28, 28}; }

void RunFor(benchmark::State& state, OneOp& op, int64_t bytes_per_run) {
  for (auto _ : state) {
    if (!op.Run().ok()) state.SkipWithError("the kernel failed");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes_per_run);
}

void BM_Copy(benchmark::State& state) {
  const Tensor from = Values(ImageOf(state.range(0)));
  Tensor to = Values(from.shape);
  for (auto _ : state) {
    std::memcpy(to.mutable_raw_data(), from.raw_data(), from.size_bytes());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * from.size_bytes()));
}
BENCHMARK(BM_Copy)->Arg(100 << 10)->Arg(1 << 20)->Arg(4 << 20);

void BM_Unary(benchmark::State& state, const char* type) {
  OneOp op(type, {}, {{"X", Values(ImageOf(state.range(0)))}});
  RunFor(state, op, 2 * static_cast<int64_t>(op.output(0).size_bytes()));
}
#define UNARY(type) \
  BENCHMARK_CAPTURE(BM_Unary, type, #type)->Arg(100 << 10)->Arg(1 << 20)->Arg(4 << 20)
UNARY(relu);
UNARY(relu6);
UNARY(hard_swish);
UNARY(sigmoid);
UNARY(swish);
UNARY(tanh);
UNARY(gelu);
UNARY(mish);
UNARY(exp);

void BM_InPlaceRelu(benchmark::State& state) {
  OneOp op("relu", {}, {{"X", Values(ImageOf(state.range(0)))}});
  op.output(0).ShareMemory(op.input(0));
  RunFor(state, op, 2 * static_cast<int64_t>(op.output(0).size_bytes()));
}
BENCHMARK(BM_InPlaceRelu)->Arg(100 << 10)->Arg(1 << 20)->Arg(4 << 20);

void BM_ScaleAndShift(benchmark::State& state) {
  OneOp op("scale", {{"scale", 0.5f}, {"bias", 1.0f}}, {{"X", Values(ImageOf(state.range(0)))}});
  RunFor(state, op, 2 * static_cast<int64_t>(op.output(0).size_bytes()));
}
BENCHMARK(BM_ScaleAndShift)->Arg(100 << 10)->Arg(1 << 20)->Arg(4 << 20);

// X + Y for the broadcasts of state.range(1).
enum Broadcast { kSame, kChannel, kPerImage, kScalar };
void BM_Add(benchmark::State& state, Broadcast broadcast, Layout layout) {
  const Tensor x = Values(ImageOf(state.range(0)), layout);
  const int64_t channels = x.shape[1];
  const Tensor y = broadcast == kSame       ? Values(x.shape, layout)
                   : broadcast == kChannel  ? Values({channels})
                   : broadcast == kPerImage ? Values({1, channels, 1, 1}, layout)
                                            : Values({1});
  OneOp op("elementwise_add", {{"axis", broadcast == kChannel ? 1 : -1}}, {{"X", x}, {"Y", y}},
           layout);
  RunFor(state, op, static_cast<int64_t>(2 * x.size_bytes() + y.size_bytes()));
}
#define ADD(name, ...) \
  BENCHMARK_CAPTURE(BM_Add, name, __VA_ARGS__)->Arg(100 << 10)->Arg(1 << 20)->Arg(4 << 20)
ADD(same, kSame, Layout::kPlain);
ADD(channel_plain, kChannel, Layout::kPlain);
ADD(channel_channels_last, kChannel, Layout::kChannelsLast);
ADD(per_image_plain, kPerImage, Layout::kPlain);
ADD(per_image_channels_last, kPerImage, Layout::kChannelsLast);
ADD(scalar, kScalar, Layout::kPlain);

// A residual of 7 x 7 images, where rows are short.
void BM_AddShortRows(benchmark::State& state) {
  OneOp op("elementwise_add", {{"axis", 1}}, {{"X", Values({1, 512, 7, 7})}, {"Y", Values({512})}});
  RunFor(state, op, 2 * static_cast<int64_t>(op.output(0).size_bytes()));
}
BENCHMARK(BM_AddShortRows);

void BM_ReduceSpatialMean(benchmark::State& state, Layout layout) {
  const Tensor x = Values(ImageOf(state.range(0)), layout);
  OneOp op("reduce_mean", {{"dim", std::vector<int32_t>{2, 3}}, {"keep_dim", true}}, {{"X", x}},
           layout);
  RunFor(state, op, static_cast<int64_t>(x.size_bytes()));
}
BENCHMARK_CAPTURE(BM_ReduceSpatialMean, plain, Layout::kPlain)
    ->Arg(100 << 10)
    ->Arg(1 << 20)
    ->Arg(4 << 20);
BENCHMARK_CAPTURE(BM_ReduceSpatialMean, channels_last, Layout::kChannelsLast)
    ->Arg(100 << 10)
    ->Arg(1 << 20)
    ->Arg(4 << 20);

// The end of a classifier.
void BM_ReduceSpatialMeanOf7x7(benchmark::State& state, Layout layout) {
  const Tensor x = Values({1, 960, 7, 7}, layout);
  OneOp op("reduce_mean", {{"dim", std::vector<int32_t>{2, 3}}, {"keep_dim", true}}, {{"X", x}},
           layout);
  RunFor(state, op, static_cast<int64_t>(x.size_bytes()));
}
BENCHMARK_CAPTURE(BM_ReduceSpatialMeanOf7x7, plain, Layout::kPlain);
BENCHMARK_CAPTURE(BM_ReduceSpatialMeanOf7x7, channels_last, Layout::kChannelsLast);

void BM_Reduce(benchmark::State& state, const char* type, int32_t dim) {
  const Tensor x = Values({1024, 1024});
  OneOp op(type, {{"dim", std::vector<int32_t>{dim}}}, {{"X", x}});
  RunFor(state, op, static_cast<int64_t>(x.size_bytes()));
}
BENCHMARK_CAPTURE(BM_Reduce, sum_rows, "reduce_sum", 1);
BENCHMARK_CAPTURE(BM_Reduce, sum_columns, "reduce_sum", 0);
BENCHMARK_CAPTURE(BM_Reduce, max_rows, "reduce_max", 1);
BENCHMARK_CAPTURE(BM_Reduce, max_columns, "reduce_max", 0);

void BM_ArgMaxRows(benchmark::State& state) {
  const Tensor x = Values({40, 6625});
  OneOp op("arg_max", {{"axis", -1}}, {{"X", x}});
  RunFor(state, op, static_cast<int64_t>(x.size_bytes()));
}
BENCHMARK(BM_ArgMaxRows);

}  // namespace
}  // namespace interp
