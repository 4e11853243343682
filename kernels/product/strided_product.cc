#include "kernels/product/strided_product.h"

#include <algorithm>

#include "kernels/product/gemm.h"
#include "kernels/product/product_blocks.h"
#include "kernels/util/flush_denormals.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

// Elements of Y that are packed at once: they stay in the L2 cache.
constexpr int64_t kStridedPart = 128 * 1024;

// Where matrix b of the result and those it is made of begin.
struct StridedPlaces {
  int64_t x = 0;
  int64_t y = 0;
  int64_t out = 0;
};

StridedPlaces PlacesOf(const StridedProduct& p, int64_t b) {
  StridedPlaces places;
  for (auto dim = p.batch.rbegin(); dim != p.batch.rend(); ++dim) {
    const int64_t at = b % dim->length;
    b /= dim->length;
    places.x += at * dim->x_step;
    places.y += at * dim->y_step;
    places.out += at * dim->out_step;
  }
  return places;
}

// Rows of Y in a part, which are whole multiples of what the inner product takes at once.
int64_t PartRows(const StridedProduct& p) {
  const int64_t rows = std::max<int64_t>(kStridedPart / p.n / kGemmDepth, 1) * kGemmDepth;
  return std::min(p.k, rows);
}

// Packs rows [first, first + depth) of a Y, in one thread or several.
template <typename T>
void PackPart(const StridedProduct& p, int64_t first, int64_t depth, const T* y, T* packed,
              int threads) {
  y += first * p.y_row;
  const int64_t panels = (p.n + kPanel<T> - 1) / kPanel<T>;
  ParallelFor(threads, panels, kProductGrain / (depth * kPanel<T>)+1,
              [&](int64_t begin, int64_t end) {
                const int64_t column = begin * kPanel<T>;
                const int64_t last = std::min(p.n, end * kPanel<T>);
                PackMatrix(depth, last - column, y + column * p.y_column, p.y_row, p.y_column,
                           packed + column * depth);
              });
}

// Multiplies with them.
template <typename T>
void MultiplyPart(const StridedProduct& p, int64_t first, int64_t depth, const T* x,
                  const T* packed, T* out, int threads) {
  x += first * p.x_column;
  const auto multiply = [&](int64_t row, int64_t rows) {
    const T* const from = x + row * p.x_row;
    T* const to = out + row * p.out_row;
    if (p.x_column == 1) {
      GemmPacked(rows, depth, p.n, from, p.x_row, packed, to, p.out_row, first > 0);
    } else {
      GemmPackedTransposed(rows, depth, p.n, from, p.x_column, packed, to, p.out_row, first > 0);
    }
  };
  constexpr int64_t kRowBlock = 16 * kGemmRows;  // keeps a block of the result in the L2 cache
  const int64_t tiles = (p.m + kGemmRows - 1) / kGemmRows;
  ParallelFor(threads, tiles, kProductGrain / (kGemmRows * p.n * depth) + 1,
              [&](int64_t begin, int64_t end) {
                const int64_t last = std::min(p.m, end * kGemmRows);
                const int64_t rows = PartOf(last - begin * kGemmRows, kRowBlock);
                for (int64_t row = begin * kGemmRows; row < last; row += rows) {
                  multiply(row, std::min(rows, last - row));
                }
              });
}

// Matrices [begin, end) of the result. A Y that is the last one's is packed already.
template <typename T>
void MultiplyMatrices(const StridedProduct& p, int64_t begin, int64_t end, const T* x, const T* y,
                      T* packed, T* out, int threads) {
  const int64_t most = PartRows(p);
  int64_t packed_y = -1;
  for (int64_t b = begin; b < end; ++b) {
    const StridedPlaces at = PlacesOf(p, b);
    for (int64_t first = 0; first < p.k; first += most) {
      const int64_t depth = std::min(most, p.k - first);
      if (at.y != packed_y || depth < p.k) PackPart(p, first, depth, y + at.y, packed, threads);
      MultiplyPart(p, first, depth, x + at.x, packed, out + at.out, threads);
    }
    packed_y = at.y;
  }
}

}  // namespace

int64_t StridedProduct::count() const {
  int64_t count = 1;
  for (const StridedBatchDim& dim : batch) count *= dim.length;
  return count;
}

template <typename T>
absl::Status RunStridedProduct(const KernelContext& ctx, const StridedProduct& product, const T* x,
                               const T* y, T* out) {
  const FlushDenormals flush;
  const StridedProduct& p = product;
  const int64_t count = p.count();
  const int threads = ctx.num_threads();
  // Threads share the matrices where that is even, and the rows of each elsewhere.
  constexpr int64_t kMany = 8;
  const bool shares_matrices = count % threads == 0 || count >= kMany * threads;
  const int64_t parts = shares_matrices ? std::min<int64_t>(threads, count) : 1;
  const int64_t size = PackedSize<T>(PartRows(p), p.n);
  INTERP_ASSIGN_OR_RETURN(const Workspace panels,
                          ctx.workspace(static_cast<size_t>(parts * size) * sizeof(T)));
  if (!shares_matrices) {
    MultiplyMatrices(p, 0, count, x, y, panels.data<T>(), out, threads);
    return absl::OkStatus();
  }
  const int64_t work = p.m * p.n * p.k * (count / parts);
  ParallelFor(threads, parts, kProductGrain / work + 1, [&](int64_t begin, int64_t end) {
    T* const packed = panels.data<T>() + begin * size;
    MultiplyMatrices(p, count * begin / parts, count * end / parts, x, y, packed, out,
                     /*threads=*/1);
  });
  return absl::OkStatus();
}

template absl::Status RunStridedProduct<float>(const KernelContext&, const StridedProduct&,
                                               const float*, const float*, float*);
template absl::Status RunStridedProduct<double>(const KernelContext&, const StridedProduct&,
                                                const double*, const double*, double*);

}  // namespace interp::nn
