// Cores whose work on an emulated or real GPU runs in graphs (CoreOptions::cuda_graphs), and what
// the host gives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda/kernel_test.h"
#include "tests/testing/golden_steps.h"
#include "tests/testing/test_program.h"

namespace interp::cuda_test {

inline CoreOptions InGraphs() {
  CoreOptions options;
  options.plan.place = {PlaceKind::kCuda, 0};
  options.cuda_graphs = true;
  return options;
}

// y = scale * softmax(x w), z = y + y; w is a parameter that `updates` changes by each run.
inline Program SoftmaxProgram(bool updates) {
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {-1, 4}, DType::kFloat32);
  builder.Param("w", {4, 3});
  builder.AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}}, {});
  builder.AddOp("softmax", {{"X", {"p"}}}, {{"Out", {"s"}}}, {{"axis", -1}});
  builder.AddOp("scale", {{"X", {"s"}}}, {{"Out", {"y"}}}, {{"scale", 3.0f}});
  builder.AddOp("elementwise_add", {{"X", {"y"}}, {"Y", {"y"}}}, {{"Out", {"z"}}}, {{"axis", -1}});
  if (updates) {
    builder.AddOp("scale", {{"X", {"w"}}}, {{"Out", {"w"}}}, {{"scale", 0.5f}});
  }
  builder.Fetch("y");
  builder.Fetch("z");
  return builder.Build();
}

class CudaGraphs : public KernelTest {
 protected:
  // The core with graphs and one of the host, of the same program with parameters of their own.
  void Make(bool updates, CoreOptions options = InGraphs()) {
    options.passes.disable = {"prune"};
    auto made = InterpreterCore::Create(SoftmaxProgram(updates), {}, {}, scope_, options);
    ASSERT_THAT(made, testing::IsOk());
    core_ = *std::move(made);
    CoreOptions on_host;
    on_host.passes.disable = {"prune"};
    auto host = InterpreterCore::Create(SoftmaxProgram(updates), {}, {}, host_scope_, on_host);
    ASSERT_THAT(host, testing::IsOk());
    host_ = *std::move(host);
    SetParameter(1);
  }

  void SetParameter(uint32_t seed) {
    const Tensor w = TensorOf<float>({4, 3}, SomeValues<float>(12, seed));
    ASSERT_THAT(testing::FillScope({{"w", w}}, *scope_), testing::IsOk());
    ASSERT_THAT(testing::FillScope({{"w", w}}, *host_scope_), testing::IsOk());
  }

  // Runs both on `rows` rows of new values and compares.
  void Run(int64_t rows) {
    const Tensor x =
        TensorOf<float>({rows, 4}, SomeValues<float>(static_cast<size_t>(rows * 4), ++runs_));
    const auto got = core_->Run({x});
    ASSERT_THAT(got, testing::IsOk());
    const auto want = host_->Run({x});
    ASSERT_THAT(want, testing::IsOk());
    for (size_t i = 0; i < want->size(); ++i) {
      ExpectClose(testing::Values<float>((*got)[i]), testing::Values<float>((*want)[i]));
    }
  }

  // The parameter where it lies.
  Tensor Parameter() const {
    for (const Variable* variable : core_->variables()) {
      if (variable == nullptr || variable->tensor.shape != Shape({4, 3})) continue;
      if (!variable->tensor.has_memory()) continue;
      if (variable->tensor.place().kind == PlaceKind::kCuda) return variable->tensor;
    }
    return {};
  }

  static std::vector<float> Download(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.numel()));
    EXPECT_EQ(
        cudaMemcpy(values.data(), tensor.raw_data(), tensor.size_bytes(), cudaMemcpyDeviceToHost),
        cudaSuccess);
    return values;
  }

  // A core of a program of one feed, in graphs.
  static std::unique_ptr<InterpreterCore> MakeCore(const testing::TestProgram& builder) {
    auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, InGraphs());
    EXPECT_THAT(core, testing::IsOk());
    return *std::move(core);
  }

  // Runs it `runs` times on the same values, which is to give the same each time; `after` each.
  static void ExpectSameRuns(
      InterpreterCore& core, const Tensor& x, int runs, RunObserver* observer = nullptr,
      const std::function<void()>& after = [] {}) {
    std::vector<std::vector<float>> first;
    for (int run = 0; run < runs; ++run) {
      const auto got = core.Run({x}, {.observer = observer});
      ASSERT_THAT(got, testing::IsOk());
      std::vector<std::vector<float>> values;
      for (const Tensor& tensor : *got) values.push_back(testing::Values<float>(tensor));
      if (run == 0) first = values;
      EXPECT_EQ(values, first) << "run " << run;
      after();
    }
  }

  GraphStats stats() const { return core_->graph_stats().value_or(GraphStats{}); }

  const std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  const std::shared_ptr<Scope> host_scope_ = std::make_shared<Scope>();
  std::unique_ptr<InterpreterCore> core_;
  std::unique_ptr<InterpreterCore> host_;
  uint32_t runs_ = 0;
};

}  // namespace interp::cuda_test
