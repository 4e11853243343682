#include <type_traits>

#include "kernels/cuda/chain.h"
#include "kernels/cuda/compare.h"
#include "kernels/cuda/launch.h"

namespace interp::cuda {
namespace {

template <typename C>
__device__ bool Holds(PredicateOp op, C x) {
  if constexpr (std::is_floating_point_v<C>) {
    if (op == PredicateOp::kIsFinite) return x - x == 0;
    if (op == PredicateOp::kIsInf) return x == x && x - x != 0;
    if (op == PredicateOp::kIsNan) return x != x;
  }
  return op == PredicateOp::kNot ? x == C{0} : op == PredicateOp::kIsFinite;
}

// Floats within 1e-8 are equal, as on the host.
template <typename C>
__device__ bool AreEqual(C x, C y) {
  if constexpr (std::is_floating_point_v<C>) {
    const double distance = fabs(static_cast<double>(x - y));
    return x == y || (distance < 1e-8);
  }
  return x == y;
}

template <typename C>
__device__ bool Holds(PredicateOp op, C x, C y) {
  switch (op) {
    case PredicateOp::kEqual:
      return AreEqual(x, y);
    case PredicateOp::kNotEqual:
      return !AreEqual(x, y);
    case PredicateOp::kLess:
      return x < y;
    case PredicateOp::kLessEqual:
      return x <= y;
    case PredicateOp::kGreater:
      return x > y;
    case PredicateOp::kGreaterEqual:
      return x >= y;
    case PredicateOp::kAnd:
      return x != C{0} && y != C{0};
    case PredicateOp::kOr:
      return x != C{0} || y != C{0};
    default:
      return (x != C{0}) != (y != C{0});
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    RunPredicate(const Chain chain, PredicateOp op, bool* out) {
  for (int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; index < chain.size;
       index += int64_t{gridDim.x} * blockDim.x) {
    ComputeType<T> x[1] = {};
    Load<T, 1>(chain, 0, index, 1, x);
    if (op < PredicateOp::kEqual) {
      out[index] = Holds(op, x[0]);
    } else {
      ComputeType<T> y[1] = {};
      Load<T, 1>(chain, 1, index, 1, y);
      out[index] = Holds(op, x[0], y[0]);
    }
  }
}

}  // namespace

absl::Status Predicate(DType dtype, PredicateOp op, absl::Span<const ElementwiseOperand> operands,
                       absl::Span<const int64_t> out_dims, bool* out, cudaStream_t stream) {
  const size_t expected = op < PredicateOp::kEqual ? 1 : 2;
  if (operands.size() != expected) {
    return InvalidArgument("a predicate has ", operands.size(), " operands, expected ", expected);
  }
  INTERP_RETURN_IF_ERROR(CheckDims(operands, out_dims));
  if (std::find(out_dims.begin(), out_dims.end(), 0) != out_dims.end()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Chain chain,
                          MakeChain(/*steps=*/{}, operands, out_dims, /*vector_size=*/1));
  return WithScalars("a predicate", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(RunPredicate<T>, chain.size, stream, chain, op, out);
  });
}

}  // namespace interp::cuda
