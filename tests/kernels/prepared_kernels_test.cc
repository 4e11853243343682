// Kernels that were prepared on several threads give the bits of those that prepare themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/interpreter_core.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/testing/matchers.h"
#include "tests/testing/test_program.h"

namespace interp::testing::prepared_kernels_test {
namespace {

using Dims = TestProgram::Dims;
using Attrs = TestProgram::Attrs;

Tensor Numbers(const Dims& dims, size_t seed) {
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = Shape(dims);
  EXPECT_THAT(tensor.Allocate(SystemAllocator()), IsOk());
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    // Sums of these round in whatever order they are taken.
    tensor.mutable_data<float>()[i] = std::sin(static_cast<float>(i * 7 + seed * 13));
  }
  return tensor;
}

// Ops side by side, each with its feed and its result, and their parameters.
class Net {
 public:
  // `filter`: dims of a parameter, or of what an op makes of one.
  void Conv(const std::string& type, const Dims& image, const Dims& filter, const Attrs& attrs = {},
            bool constant = true) {
    std::string weight = Param(filter);
    if (!constant) {
      builder_.Call("relu", {weight}, weight + "_now");
      weight += "_now";
    }
    Add(type, {{"Input", {Feed(image)}}, {"Filter", {weight}}}, "Output", attrs);
  }
  void Pair(const Dims& image, const Dims& pointwise, int stride) {
    const int channels = static_cast<int>(pointwise[0]);
    Add("fused_pointwise_depthwise",
        {{"Input", {Feed(image)}},
         {"Filter", {Param(pointwise)}},
         {"DepthwiseFilter", {Param({channels, 1, 3, 3})}}},
        "Output",
        {{"depthwise_groups", channels},
         {"depthwise_strides", std::vector{stride, stride}},
         {"depthwise_paddings", std::vector{1, 1}}});
  }
  // `image` and the gradient of its result have the same dims but for channels.
  void ConvGradient(const Dims& image, const Dims& filter, const Attrs& attrs) {
    Dims result = image;
    result[1] = filter[0];
    const std::string weight = Param(filter);
    const std::string input = Feed(image);
    builder_.Declare(weight + "_grad", Dims(filter.size(), -1));
    Add("conv2d_grad", {{"Input", {input}}, {"Filter", {weight}}, {"Output@GRAD", {Feed(result)}}},
        "Input@GRAD", attrs, {{"Filter@GRAD", {weight + "_grad"}}});
    builder_.Fetch(weight + "_grad");
  }
  void Product(const Dims& x, const Dims& y, bool transposed = false) {
    Add("matmul_v2", {{"X", {Feed(x)}}, {"Y", {Param(y)}}}, "Out", {{"trans_y", transposed}});
  }

  Program Build() const { return builder_.Build(); }
  const std::vector<Tensor>& feeds() const { return feeds_; }
  std::shared_ptr<Scope> MakeScope() const {
    auto scope = std::make_shared<Scope>();
    for (size_t i = 0; i < params_.size(); ++i) {
      scope->FindOrCreate(absl::StrCat("p", i))->tensor = Numbers(params_[i], i);
    }
    return scope;
  }

 private:
  std::string Feed(const Dims& dims) {
    const std::string name = absl::StrCat("x", feeds_.size());
    builder_.Feed(name, dims);
    feeds_.push_back(Numbers(dims, feeds_.size()));
    return name;
  }
  std::string Param(const Dims& dims) {
    const std::string name = absl::StrCat("p", params_.size());
    builder_.Param(name, dims);
    params_.push_back(dims);
    return name;
  }
  void Add(const std::string& type, const TestProgram::Slots& inputs, const std::string& slot,
           const Attrs& attrs, TestProgram::Slots outputs = {}) {
    const std::string out = absl::StrCat("y", feeds_.size() - 1);
    builder_.Declare(out, Dims(feeds_.back().shape.rank(), -1));
    outputs.push_back({slot, {out}});
    builder_.AddOp(type, inputs, outputs, attrs).Fetch(out);
  }

  TestProgram builder_;
  std::vector<Tensor> feeds_;
  std::vector<Dims> params_;
};

Net EveryWay() {
  const auto groups = [](int count) { return Attrs{{"groups", count}}; };
  Net net;
  net.Conv("conv2d", {1, 16, 9, 9}, {16, 16, 1, 1});
  net.Conv("conv2d", {1, 64, 28, 28}, {64, 64, 3, 3});  // Winograd
  net.Conv("conv2d", {1, 64, 28, 28}, {64, 64, 3, 3}, {}, /*constant=*/false);
  net.Conv("conv2d", {1, 3, 32, 32}, {16, 3, 5, 5});     // few input channels
  net.Conv("conv2d", {1, 32, 24, 24}, {2, 32, 3, 3});    // few output channels
  net.Conv("conv2d", {1, 256, 7, 7}, {256, 256, 1, 1});  // as a product
  net.Conv("conv2d", {1, 32, 12, 12}, {32, 8, 3, 3}, groups(4));
  net.Conv("conv2d", {1, 16, 9, 9}, {16, 16, 1, 1}, {}, /*constant=*/false);
  net.Conv("conv2d", {1, 32, 200, 200}, {64, 32, 3, 3});  // larger than a cache
  net.Conv("depthwise_conv2d", {1, 32, 12, 12}, {32, 1, 3, 3}, groups(32));
  net.Conv("conv3d", {1, 4, 6, 6, 6}, {8, 4, 3, 3, 3});
  net.Pair({1, 16, 24, 24}, {32, 16, 1, 1}, /*stride=*/1);
  net.Pair({1, 16, 112, 112}, {96, 16, 1, 1}, /*stride=*/2);  // in bands
  net.Conv("conv2d_transpose", {1, 8, 9, 9}, {8, 6, 3, 3});
  net.Conv("conv2d_transpose", {1, 8, 9, 9}, {8, 6, 2, 2}, {{"strides", std::vector{2, 2}}});
  net.Conv("depthwise_conv2d_transpose", {1, 8, 9, 9}, {8, 1, 3, 3}, groups(8));
  const Attrs same = {{"paddings", std::vector{1, 1}}};
  net.ConvGradient({2, 32, 28, 28}, {32, 32, 3, 3}, same);  // Winograd
  net.ConvGradient({2, 16, 9, 9}, {16, 16, 1, 1}, {});
  net.ConvGradient({2, 3, 9, 9}, {16, 3, 3, 3}, same);
  net.ConvGradient({8, 16, 32, 32}, {16, 1, 3, 3},
                   {{"paddings", std::vector{1, 1}}, {"groups", 16}});
  net.Product({3, 40}, {40, 24});
  net.Product({3, 40}, {40, 1});
  net.Product({3, 40}, {24, 40}, /*transposed=*/true);
  net.Product({0, 40}, {40, 24});
  return net;
}

OpRegistry WithoutPreparation() {
  OpRegistry ops;
  for (const absl::string_view type : OpRegistry::Global().Types()) {
    OpDef def = *OpRegistry::Global().Find(type);
    for (KernelDef& kernel : def.kernels) kernel.prepare = nullptr;
    ops.Add(def);
  }
  return ops;
}

std::vector<Tensor> FirstRun(const Net& net, const OpRegistry* ops, Algorithms algorithms) {
  CoreOptions options{
      .scheduler = SchedulerKind::kTrace, .num_threads = 3, .algorithms = algorithms};
  options.ops = ops;
  const auto core = InterpreterCore::Create(net.Build(), {}, {}, net.MakeScope(), options);
  EXPECT_THAT(core, IsOk());
  auto out = (*core)->Run(net.feeds());
  EXPECT_THAT(out, IsOk());
  return *std::move(out);
}

// While one lives, oneDNN gives no run the primitives that another made.
class NoSharedPrimitives {
 public:
  NoSharedPrimitives() { dnnl::set_primitive_cache_capacity(0); }
  ~NoSharedPrimitives() { dnnl::set_primitive_cache_capacity(before_); }

 private:
  const int before_ = dnnl::get_primitive_cache_capacity();
};

TEST(PreparedKernels, GiveTheSameBits) {
  const NoSharedPrimitives no_shared;
  const OpRegistry unprepared = WithoutPreparation();
  const Net net = EveryWay();
  for (const Algorithms algorithms : {Algorithms::kFast, Algorithms::kDirect}) {
    const std::vector<Tensor> want = FirstRun(net, &unprepared, algorithms);
    const std::vector<Tensor> got = FirstRun(net, &OpRegistry::Global(), algorithms);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(want[i].shape, got[i].shape) << i;
      EXPECT_EQ(std::memcmp(want[i].raw_data(), got[i].raw_data(), want[i].size_bytes()), 0) << i;
    }
  }
}

}  // namespace
}  // namespace interp::testing::prepared_kernels_test
