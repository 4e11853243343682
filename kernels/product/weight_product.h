// WeightProduct: the gradient of a weight that the rows of some input were multiplied by.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op_def.h"
#include "kernels/conv/image.h"
#include "kernels/product/gemm.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/transpose_plane.h"

namespace interp::nn {

// One product of a weight gradient: out [inputs, outputs] = x^T grad, of x [rows, inputs], which
// gather(first, count, to) writes some rows of, and grad [rows, outputs].
//
// It is summed up from slices of rows, whose transposes and panels stay in cache: those of all rows
// at once would take more memory than anything else in a gradient op.
template <typename T, typename Gather>
class WeightProduct {
 public:
  struct Sizes {
    int64_t rows = 0;
    int64_t inputs = 0;
    int64_t outputs = 0;
  };
  WeightProduct(const Sizes& sizes, const Gather& gather, const T* grad)
      : sizes_(sizes), gather_(gather), grad_(grad) {}

  absl::Status Run(const KernelContext& ctx, T* out) const {
    if (sizes_.rows == 0) {
      std::fill_n(out, sizes_.inputs * sizes_.outputs, T{0});
      return absl::OkStatus();
    }
    const int64_t most = std::min(sizes_.rows, kSlice);
    const int64_t packed_size = PackedSize<T>(most, sizes_.outputs);
    const int64_t elements = packed_size + sizes_.inputs * (most + kSlice + kGap);
    INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                            ctx.workspace(static_cast<size_t>(elements) * sizeof(T)));
    T* const packed = memory.data<T>();
    T* const gathered = packed + packed_size;
    T* const transposed = gathered + sizes_.inputs * most;
    for (int64_t first = 0; first < sizes_.rows; first += kSlice) {
      const int64_t count = std::min(sizes_.rows - first, kSlice);
      Pack(ctx.num_threads(), first, count, packed);
      gather_(first, count, gathered);
      TransposeMatrix(gathered, sizes_.inputs, transposed, kSlice + kGap, count, sizes_.inputs);
      Multiply(ctx.num_threads(), count, transposed, packed, /*accumulate=*/first > 0, out);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kSlice = kGemmDepth;  // rows
  static constexpr int64_t kGap = 16;            // keeps rows of the transpose out of one cache set
  static constexpr int64_t kGrain = 64 * 1024;   // multiplications worth a thread of their own

  void Pack(int threads, int64_t first, int64_t count, T* packed) const {
    const int64_t columns = sizes_.outputs;
    const T* const grad = grad_ + first * columns;
    const int64_t panels = (columns + kPanel<T> - 1) / kPanel<T>;
    ParallelFor(threads, panels, GrainFor(count * kPanel<T>), [=](int64_t begin, int64_t end) {
      const int64_t j = begin * kPanel<T>;
      PackMatrix(count, std::min(end * kPanel<T>, columns) - j, grad + j, columns, int64_t{1},
                 packed + j * count);
    });
  }

  void Multiply(int threads, int64_t count, const T* x, const T* packed, bool accumulate,
                T* out) const {
    const int64_t columns = sizes_.outputs;
    ParallelFor(threads, sizes_.inputs, GrainFor(count * columns, kGrain),
                [=](int64_t begin, int64_t end) {
                  constexpr int64_t kStride = kSlice + kGap;
                  GemmPacked(end - begin, count, columns, x + begin * kStride, kStride, packed,
                             out + begin * columns, columns, accumulate);
                });
  }

  const Sizes sizes_;
  const Gather& gather_;
  const T* const grad_;
};

}  // namespace interp::nn
