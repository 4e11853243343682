// What element-wise kernels have in common: a chain of steps over operands that are repeated along
// some dimensions, and how its threads read them. Included by `.cu` files alone.
#pragma once

#include <algorithm>

#include "kernels/cuda/divisor.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {

inline constexpr int kMaxChainDims = 6;  // after those are merged that all operands walk alike

// How an operand is read.
enum class OperandWalk : int8_t {
  kSame,      // element i for element i
  kOne,       // one value
  kStrided,   // by the strides; neighbours within the last dimension are neighbours in memory
  kRepeated,  // by the strides; the last dimension repeats one element
};

struct Chain {
  ElementwiseStep steps[kMaxSteps];
  int num_steps;
  const void* data[kMaxOperands];
  OperandWalk walks[kMaxOperands];
  // Of the merged dimensions, last first.
  int num_dims;
  Divisor dims[kMaxChainDims];
  int64_t strides[kMaxOperands][kMaxChainDims];
  int64_t size;
  // The last dimension holds whole vectors, so that none crosses its end.
  bool whole_vectors;
};

// Every value through `function`. The loop is unrolled, so that values stay in registers.
template <typename C, int N, typename Function>
__device__ void Each(C (&values)[N], Function function) {
  INTERP_UNROLL
  for (int i = 0; i < N; ++i) values[i] = function(values[i]);
}

// Where the operand has element `index` of the output.
__device__ inline int64_t OffsetOf(const Chain& chain, int operand, int64_t index) {
  auto left = static_cast<uint32_t>(index);
  int64_t offset = 0;
  for (int d = 0; d < chain.num_dims; ++d) {
    offset += chain.dims[d].Split(left) * chain.strides[operand][d];
  }
  return offset;
}

// The operand's elements for `count` elements of the output from `index` on.
template <typename T, int N>
__device__ void Load(const Chain& chain, int operand, int64_t index, int count,
                     ComputeType<T> (&values)[N]) {
  const T* const data = static_cast<const T*>(chain.data[operand]);
  const OperandWalk walk = chain.walks[operand];
  const bool near = walk == OperandWalk::kSame || walk == OperandWalk::kOne || chain.whole_vectors;
  const int64_t first = walk == OperandWalk::kSame  ? index
                        : walk == OperandWalk::kOne ? 0
                                                    : OffsetOf(chain, operand, index);
  if (walk == OperandWalk::kOne || (walk == OperandWalk::kRepeated && near)) {
    const ComputeType<T> value = ToCompute(data[first]);
    Each(values, [value](ComputeType<T>) { return value; });
  } else if (near && count == N) {
    const auto loaded = *reinterpret_cast<const Vector<T, N>*>(data + first);
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) values[i] = ToCompute(loaded.values[i]);
  } else {
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) {
      if (i < count)
        values[i] = ToCompute(
            data[walk == OperandWalk::kSame ? index + i : OffsetOf(chain, operand, index + i)]);
    }
  }
}

inline absl::Status CheckDims(absl::Span<const ElementwiseOperand> operands,
                              absl::Span<const int64_t> out_dims) {
  for (const ElementwiseOperand& operand : operands) {
    bool fits = operand.dims.size() == out_dims.size();
    for (size_t d = 0; fits && d < out_dims.size(); ++d) {
      fits = operand.dims[d] == out_dims[d] || operand.dims[d] == 1;
    }
    if (!fits)
      return InvalidArgument("an operand of an element-wise chain does not fit its result");
  }
  return absl::OkStatus();
}

// Whether dimensions d and d + 1 are repeated by the same operands, so that one walks them as one.
inline bool Merge(absl::Span<const ElementwiseOperand> operands, absl::Span<const int64_t> out_dims,
                  size_t d) {
  return std::all_of(operands.begin(), operands.end(), [&](const ElementwiseOperand& operand) {
    return (operand.dims[d] == out_dims[d]) == (operand.dims[d + 1] == out_dims[d + 1]);
  });
}

// The merged dimensions and everybody's strides, last first, into `chain`; the last dimension.
inline absl::StatusOr<int64_t> MergeDims(absl::Span<const ElementwiseOperand> operands,
                                         absl::Span<const int64_t> out_dims, Chain& chain) {
  int64_t last = 1;
  int64_t elements[kMaxOperands] = {};  // in the dimensions after the one at hand
  std::fill_n(elements, kMaxOperands, 1);
  for (auto d = static_cast<int>(out_dims.size()); d-- > 0;) {
    int64_t length = out_dims[d];
    const int end = d;
    while (d > 0 && Merge(operands, out_dims, d - 1)) length *= out_dims[--d];
    if (length == 1) continue;
    if (chain.num_dims == kMaxChainDims || length > kMostElements) {
      return Unimplemented("broadcasting of tensors that differ in more than ", kMaxChainDims,
                           " dimensions or are of more than ", kMostElements, " elements");
    }
    if (chain.num_dims == 0) last = length;
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool repeated = operands[i].dims[end] == 1 && out_dims[end] != 1;
      chain.strides[i][chain.num_dims] = repeated ? 0 : elements[i];
      if (!repeated) elements[i] *= length;
    }
    chain.dims[chain.num_dims++] = Divisor(static_cast<uint32_t>(length));
  }
  return last;
}

inline absl::StatusOr<Chain> MakeChain(absl::Span<const ElementwiseStep> steps,
                                       absl::Span<const ElementwiseOperand> operands,
                                       absl::Span<const int64_t> out_dims, int vector_size) {
  Chain chain = {};
  std::copy(steps.begin(), steps.end(), chain.steps);
  chain.num_steps = static_cast<int>(steps.size());
  chain.size = 1;
  for (const int64_t dim : out_dims) chain.size *= dim;
  bool strided = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t size = 1;
    for (const int64_t dim : operands[i].dims) size *= dim;
    chain.data[i] = operands[i].data;
    chain.walks[i] = size == chain.size ? OperandWalk::kSame
                     : size == 1        ? OperandWalk::kOne
                                        : OperandWalk::kStrided;
    strided |= chain.walks[i] == OperandWalk::kStrided;
  }
  if (!strided) return chain;
  if (chain.size > kMostElements) {
    return Unimplemented("broadcasting to ", chain.size, " elements, expected at most ",
                         kMostElements);
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t last, MergeDims(operands, out_dims, chain));
  chain.whole_vectors = last % vector_size == 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool repeats = chain.walks[i] == OperandWalk::kStrided && chain.strides[i][0] == 0;
    if (repeats) chain.walks[i] = OperandWalk::kRepeated;
  }
  return chain;
}

}  // namespace interp::cuda
