// What the tests of recurrent ops, of CRFs and of arrays share: made-up tensors, ops that give
// outputs, and ops that are refused.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/run_op.h"
#include "tests/testing/matchers.h"

namespace interp::testing {

template <typename T>
Tensor TensorOf(const Shape& shape, const std::vector<T>& values, const Lod& lod = {}) {
  Tensor tensor = Tensor::Of<T>(shape, values);
  tensor.lod = lod;
  return tensor;
}

// Numbers in [-1, 1), other ones for each seed.
template <typename T = float>
Tensor Numbers(const Shape& shape, uint32_t seed, const Lod& lod = {}) {
  std::vector<T> values;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<T>(seed >> 8) / T{1 << 23} - T{1});
  }
  return TensorOf<T>(shape, values, lod);
}

// A mask over sequences.
inline Tensor Mask(const std::vector<bool>& bits) {
  Tensor mask;
  mask.shape = {static_cast<int64_t>(bits.size()), 1};
  mask.dtype = DType::kBool;
  EXPECT_THAT(mask.Allocate(SystemAllocator()), IsOk());
  for (size_t i = 0; i < bits.size(); ++i) mask.mutable_data<bool>()[i] = bits[i];
  return mask;
}

// A line of program text that makes an index of an array.
inline std::string IndexOp(const std::string& name, int64_t value) {
  return absl::StrCat("  fill_constant() -> (Out=", name, ") {shape=[1], dtype=3, value=", value,
                      ".0}\n");
}

// The outputs of an op that must not fail.
inline std::vector<Tensor> OutputsOf(const OpRun& run, const CoreOptions& options = {}) {
  absl::StatusOr<std::vector<Tensor>> outputs = RunOp(run, options);
  EXPECT_THAT(outputs, IsOk()) << ProgramText(run);
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>(run.outputs.size());
}

// `run` with another tensor in place of input i.
inline OpRun With(OpRun run, size_t i, const Tensor& tensor) {
  run.inputs[i].second = tensor;
  return run;
}

struct Refusal {
  OpRun run;
  std::string message;  // a part of it
};

inline void ExpectRefusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(RunOp(refusal.run), FailsWith(absl::StatusCode::kInvalidArgument, refusal.message))
        << ProgramText(refusal.run);
  }
}

}  // namespace interp::testing
