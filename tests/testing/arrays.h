// Arrays in tests: runtimes, values in and out, and ops without the library's kernels.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/array/array_runtime.h"
#include "core/array/invoke.h"
#include "tests/testing/devices.h"
#include "tests/testing/matchers.h"

namespace interp::testing {

inline std::unique_ptr<ArrayRuntime> MakeRuntime(const ArrayOptions& options) {
  absl::StatusOr<std::unique_ptr<ArrayRuntime>> made = ArrayRuntime::Create(options);
  EXPECT_THAT(made, IsOk());
  return made.ok() ? *std::move(made) : nullptr;
}

inline Array ArrayOf(ArrayRuntime& runtime, const Shape& shape, const std::vector<float>& values,
                     Place place = {}) {
  absl::StatusOr<Array> array = runtime.FromTensor(Tensor::Of<float>(shape, values), place);
  EXPECT_THAT(array, IsOk());
  return array.ok() ? *std::move(array) : Array();
}

// What a call gave, which must not have failed.
inline Array Got(absl::StatusOr<Array> array) {
  EXPECT_THAT(array, IsOk());
  return array.ok() ? *std::move(array) : Array();
}
inline Array Got(absl::StatusOr<ArraySlots> outputs) { return Got(First(std::move(outputs))); }

inline std::vector<float> FloatsOf(const Array& array) {
  const absl::StatusOr<Tensor> tensor = array.Read();
  EXPECT_THAT(tensor, IsOk());
  return tensor.ok() ? Values<float>(*tensor) : std::vector<float>();
}

// "mix": Out[i] = X[i] / 4 + Y[i] / 2 + 1, which may be written over X. "hold": Out = X when
// `may_end_` says so. "fail": an error where X[0] is 13.
struct ArrayOps {
  static inline std::atomic<bool> may_end_{true};

  static absl::Status Infer(InferContext& ctx) {
    ctx.ShareShape(0, 0);
    return absl::OkStatus();
  }
  static absl::Status InferMix(InferContext& ctx) {
    if (ctx.input(0).shape != ctx.input(1).shape) {
      return InvalidArgument("X has shape ", ToString(ctx.input(0).shape), ", Y ",
                             ToString(ctx.input(1).shape));
    }
    return Infer(ctx);
  }
  static absl::Status Mix(KernelContext& ctx) {
    const float* x = ctx.input(0).data<float>();
    const float* y = ctx.input(1).data<float>();
    float* out = ctx.output(0).mutable_data<float>();
    for (int64_t i = 0; i < ctx.input(0).numel(); ++i) out[i] = x[i] / 4 + y[i] / 2 + 1;
    return absl::OkStatus();
  }
  static absl::Status Copy(KernelContext& ctx) {
    const float* x = ctx.input(0).data<float>();
    std::copy(x, x + ctx.input(0).numel(), ctx.output(0).mutable_data<float>());
    return absl::OkStatus();
  }
  static absl::Status Hold(KernelContext& ctx) {
    while (!may_end_) std::this_thread::yield();
    return Copy(ctx);
  }
  static absl::Status Fail(KernelContext& ctx) {
    if (ctx.input(0).data<float>()[0] == 13) return absl::DataLossError("thirteen");
    return Copy(ctx);
  }
  static absl::Status Random(KernelContext& ctx) {
    const RandomStream random = ctx.random();
    float* out = ctx.output(0).mutable_data<float>();
    for (int64_t i = 0; i < ctx.output(0).numel(); ++i) {
      out[i] = static_cast<float>(random.Word(static_cast<uint64_t>(i)));
    }
    return absl::OkStatus();
  }
  // The elements above zero.
  static absl::Status Positive(KernelContext& ctx) {
    std::vector<float> found;
    const Tensor& x = ctx.input(0);
    for (int64_t i = 0; i < x.numel(); ++i) {
      if (x.data<float>()[i] > 0) found.push_back(x.data<float>()[i]);
    }
    Tensor& out = ctx.output(0);
    out.shape = {static_cast<int64_t>(found.size())};
    out.dtype = DType::kFloat32;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
    std::copy(found.begin(), found.end(), out.mutable_data<float>());
    return absl::OkStatus();
  }

  static const OpRegistry& Registry() {
    static const auto* const kRegistry = [] {
      auto* registry = new OpRegistry;
      registry->Add({.type = "mix",
                     .inputs = {{"X"}, {"Y"}},
                     .outputs = {{"Out"}},
                     .infer = InferMix,
                     .kernels = {{DType::kFloat32, Mix}},
                     .inplace = {{0, 0}}});
      const auto add = [&](absl::string_view type, KernelFn kernel) {
        registry->Add({.type = type,
                       .inputs = {{"X"}},
                       .outputs = {{"Out"}},
                       .infer = Infer,
                       .kernels = {{DType::kFloat32, kernel}}});
      };
      add("hold", Hold);
      add("fail", Fail);
      registry->Add({.type = "random",
                     .inputs = {{"X"}},
                     .outputs = {{"Out"}},
                     .infer = Infer,
                     .kernels = {{DType::kFloat32, Random}},
                     .random = true});
      registry->Add({.type = "positive",
                     .inputs = {{"X"}},
                     .outputs = {{"Out"}},
                     .kernels = {{DType::kFloat32, Positive}},
                     .dynamic_outputs = true});
      return registry;
    }();
    return *kRegistry;
  }
};

}  // namespace interp::testing
