// Norms of whole tensors: sums over chunks in double, the same for every number of threads.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/optimizer/chunk.h"
#include "kernels/util/reduce.h"

namespace interp::optimizer {

template <typename M>
struct Square {
  using Acc = double;
  Acc Init() const { return 0; }
  Acc Map(M x, int64_t) const { return Acc{x} * x; }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename M>
double SumOfSquares(const M* x, int64_t n) {
  return reduce::FoldBlock(x, n, /*at=*/0, Square<M>());
}

// The Euclidean norm of a tensor of floats.
template <typename M>
double Norm(int num_threads, const Tensor& tensor) {
  const int64_t n = tensor.numel();
  std::vector<double> sums(NumChunks(n));
  ParallelFor(num_threads, static_cast<int64_t>(sums.size()), GrainFor(kChunk),
              [&](int64_t begin, int64_t end) {
                M buffer[kChunk];
                for (int64_t c = begin; c < end; ++c) {
                  const int64_t size = std::min(kChunk, n - c * kChunk);
                  sums[c] = SumOfSquares(LoadChunk(tensor, c * kChunk, size, buffer), size);
                }
              });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

}  // namespace interp::optimizer
