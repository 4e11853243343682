// What the kernels of dropout share: their seed, what is kept, and what tests do.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/nn/dropout.h"
#include "kernels/random/draw.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/copy.h"

namespace interp::nn {

// Of an optional input with one integer, which stands for the attribute where it is there.
inline absl::Status CheckSeed(const OpContext& ctx, int slot) {
  const Tensor* const seed = ctx.optional_input(slot);
  if (seed == nullptr || seed->numel() == 1) return absl::OkStatus();
  return InvalidArgument("input 'Seed' is ", DescribeType(*seed), ", expected one element");
}

inline absl::StatusOr<int32_t> SeedOf(const OpContext& ctx, int slot, int32_t attribute) {
  const Tensor* const seed = ctx.optional_input(slot);
  if (seed == nullptr) return attribute;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> values, InferContext::Integers(*seed));
  return static_cast<int32_t>(values[0]);
}

// Calls body(i, whether it is kept) for n elements, each of which is dropped with that probability.
// body must not throw. `seed` 0: other numbers in every run.
template <typename Body>
void ForEachKept(const KernelContext& ctx, int32_t seed, float probability, int64_t n,
                 const Body& body) {
  if (seed == 0) {
    const uint64_t dropped = Threshold32(probability);
    random::ForEachBits32(ctx, n, [=](int64_t i, uint32_t bits) { body(i, bits >= dropped); });
    return;
  }
  std::mt19937_64 engine = random::SeededEngine(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int64_t i = 0; i < n; ++i) body(i, probability < 1 && uniform(engine) >= probability);
}

// What tests do, in both directions.
template <typename T>
void ScaleInTests(const KernelContext& ctx, const DropoutAttrs& attrs, const Tensor& from,
                  Tensor& to) {
  if (attrs.upscale_in_train) return CopyUnlessShared(from, to);
  const auto factor = static_cast<ComputeType<T>>(1.0F - attrs.probability);
  const T* const values = from.data<T>();
  T* const results = to.mutable_data<T>();
  ParallelFor(ctx.num_threads(), from.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) results[i] = static_cast<T>(values[i] * factor);
  });
}

}  // namespace interp::nn
