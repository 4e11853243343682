// Gradient ops against differences of the forward op, in float64.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {

// An op whose gradient is one op with a table (GradientDef::inputs).
struct Differentiated {
  OpRun run;                         // with all outputs that the gradient reads
  std::vector<std::string> targets;  // outputs that a gradient comes in for
  std::vector<std::string> wanted;   // input slots, one argument each
  double step = 1e-6;
  double tolerance = 1e-7;
};

inline size_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}

// Sum of the elements of the targets, each times that of a made-up gradient.
template <typename T>
double Objective(const Differentiated& op, const OpRun& run) {
  const std::vector<Tensor> outputs = OutputsOf(run);
  double sum = 0;
  for (size_t k = 0; k < op.targets.size(); ++k) {
    const Tensor& target = outputs[IndexOf(run.outputs, op.targets[k])];
    const Tensor grad = Numbers<T>(target.shape, 100 + static_cast<uint32_t>(k));
    for (int64_t i = 0; i < target.numel(); ++i) {
      sum += double{target.data<T>()[i]} * double{grad.data<T>()[i]};
    }
  }
  return sum;
}

// The gradient op on what the forward op leaves.
template <typename T>
std::vector<Tensor> GradientsOf(const Differentiated& op, const CoreOptions& options = {}) {
  const GradientDef& gradient = OpRegistry::Global().Find(op.run.type)->gradient;
  const std::string type(gradient.type);
  OpRun run = {type.empty() ? absl::StrCat(op.run.type, "_grad") : type, {}, {}, op.run.attrs};
  const std::vector<Tensor> outputs = OutputsOf(op.run);
  for (const absl::string_view slot : gradient.inputs) {
    for (const auto& [name, tensor] : op.run.inputs) {
      if (name == slot) run.inputs.emplace_back(name, tensor);
    }
    for (size_t k = 0; k < op.run.outputs.size(); ++k) {
      if (op.run.outputs[k] == slot) run.inputs.emplace_back(op.run.outputs[k], outputs[k]);
    }
    for (size_t k = 0; k < op.targets.size(); ++k) {
      if (absl::StrCat(op.targets[k], kGradientSuffix) != slot) continue;
      const Tensor& target = outputs[IndexOf(op.run.outputs, op.targets[k])];
      run.inputs.emplace_back(slot,
                              Numbers<T>(target.shape, 100 + static_cast<uint32_t>(k), target.lod));
    }
  }
  for (const std::string& slot : op.wanted) {
    run.outputs.push_back(absl::StrCat(slot, kGradientSuffix));
  }
  return OutputsOf(run, options);
}

template <typename T>
void ExpectSameBits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape, b.shape);
  EXPECT_EQ(std::memcmp(a.data<T>(), b.data<T>(), a.size_bytes()), 0);
}

// One gradient alone, and on other numbers of threads, has the same bits as together with the
// others.
template <typename T>
void ExpectSameGradientsHoweverComputed(const Differentiated& op) {
  const std::vector<Tensor> together = GradientsOf<T>(op, {.num_threads = 1});
  for (size_t k = 0; k < op.wanted.size(); ++k) {
    SCOPED_TRACE(absl::StrCat(op.run.type, " ", op.wanted[k]));
    Differentiated alone = op;
    alone.wanted = {op.wanted[k]};
    for (const int threads : {1, 2, 3}) {
      ExpectSameBits<T>(GradientsOf<T>(alone, {.num_threads = threads})[0], together[k]);
    }
  }
}

template <typename T = double>
void ExpectGradients(const Differentiated& op) {
  SCOPED_TRACE(ProgramText(op.run));
  ExpectSameGradientsHoweverComputed<T>(op);
  const std::vector<Tensor> gradients = GradientsOf<T>(op);
  for (size_t k = 0; k < op.wanted.size(); ++k) {
    size_t slot = 0;
    while (op.run.inputs[slot].first != op.wanted[k]) ++slot;
    const Tensor& x = op.run.inputs[slot].second;
    ASSERT_EQ(gradients[k].shape, x.shape) << op.wanted[k];
    EXPECT_EQ(gradients[k].lod, x.lod) << op.wanted[k];
    const std::vector<T> values(x.data<T>(), x.data<T>() + x.numel());
    for (int64_t i = 0; i < x.numel(); ++i) {
      const auto moved = [&](double by) {
        std::vector<T> other = values;
        other[i] += static_cast<T>(by);
        Tensor tensor = Tensor::Of<T>(x.shape, other);
        tensor.lod = x.lod;
        return Objective<T>(op, With(op.run, slot, tensor));
      };
      const double expected = (moved(op.step) - moved(-op.step)) / (2 * op.step);
      EXPECT_NEAR(gradients[k].template data<T>()[i], expected, op.tolerance)
          << op.wanted[k] << " element " << i;
    }
  }
}

}  // namespace interp::testing
