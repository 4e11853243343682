#include "kernels/product/product.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "absl/strings/str_join.h"
#include "core/constant_elements.h"
#include "kernels/nn/onednn.h"
#include "kernels/product/product_blocks.h"
#include "kernels/util/flush_denormals.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/strided_copy.h"

namespace interp::nn {
namespace {

// Below so many rows packing Y costs more than it saves.
constexpr int64_t kFewRows = 4;
template <typename T>
void Finish(const Product& p, const T* bias, int64_t rows, int64_t columns, T* out) {
  for (int64_t i = 0; i < rows; ++i, out += p.n) {
    if (p.alpha != 1) {
      const T alpha = static_cast<T>(p.alpha);
      for (int64_t j = 0; j < columns; ++j) out[j] *= alpha;
    }
    if (bias != nullptr) {
      for (int64_t j = 0; j < columns; ++j) out[j] += bias[j];
    }
    if constexpr (std::is_floating_point_v<T>) ApplyActivation(p.activation, out, columns);
  }
}

// Part of the sums: rows [first, first + count) of op(Y) and as many columns of op(X).
struct Depth {
  int64_t first = 0;
  int64_t count = 0;
};

// Packs that part of all `count` matrices of Y, each PackedSize(depth.count, n) after the other.
template <typename T>
void PackAll(const Product& p, Depth depth, const T* y, int64_t count, T* packed, int threads) {
  const int64_t size = PackedSize<T>(depth.count, p.n);
  const int64_t panels = depth.count == 0 ? 0 : size / (kPanel<T> * depth.count);
  const int64_t grain = GrainFor(depth.count * kPanel<T>, kProductGrain);
  ParallelFor(threads, count * panels, grain, [=, &p](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t first = i % panels * kPanel<T>;
      const int64_t last = std::min(p.n, first + (end - i) * kPanel<T>);
      const T* const matrix = y + i / panels * p.k * p.n;
      PackMatrix(depth.count, last - first,
                 matrix + (p.trans_y ? first * p.k + depth.first : depth.first * p.n + first),
                 p.trans_y ? 1 : p.n, p.trans_y ? p.k : 1,
                 packed + i / panels * size + first * depth.count);
      i += (last - first + kPanel<T> - 1) / kPanel<T>;
    }
  });
}

// One run: resolves blocks to matrices and calls the inner products. Without packed Y, X must not
// be transposed. `packed` holds `depth` of Y; the products of its first part are stored, those of
// the others added, and the last part ends with what follows the sums.
template <typename T>
class Runner {
 public:
  Runner(const Product& p, Depth depth, const T* x, const T* y, const T* packed, const T* bias,
         T* out, PanelsFrom from = PanelsFrom::kCache)
      : p_(p), depth_(depth), x_(x), y_(y), packed_(packed), bias_(bias), out_(out), from_(from) {}

  void Run(int threads) const {
    ForEachBlock(p_, kPanel<T>, threads, [this](const ProductBlock& block) { RunBlock(block); });
  }

 private:
  void RunBlock(const ProductBlock& at) const {
    const T* x =
        x_ + MatrixOf(p_, at.b, p_.x_steps) * p_.m * p_.k + (p_.trans_x ? at.i : at.i * p_.k);
    const int64_t y = MatrixOf(p_, at.b, p_.y_steps);
    T* out = out_ + (at.b * p_.m + at.i) * p_.n + at.j;
    if (packed_ != nullptr) {
      const T* panels = packed_ + y * PackedSize<T>(depth_.count, p_.n) + at.j * depth_.count;
      const bool accumulate = depth_.first > 0;
      if (p_.trans_x) {
        GemmPackedTransposed(at.rows, depth_.count, at.columns, x + depth_.first * p_.m, p_.m,
                             panels, out, p_.n, accumulate);
      } else {
        GemmPacked(at.rows, depth_.count, at.columns, x + depth_.first, p_.k, panels, out, p_.n,
                   accumulate, at.begins ? from_ : PanelsFrom::kCache);
      }
    } else {
      GemmUnpacked(at.rows, p_.k, at.columns, x, p_.k,
                   y_ + y * p_.k * p_.n + (p_.trans_y ? at.j * p_.k : at.j),
                   p_.trans_y ? p_.k : p_.n, p_.trans_y, out, p_.n);
    }
    if (depth_.first + depth_.count < p_.k) return;
    Finish(p_, bias_ == nullptr ? nullptr : bias_ + at.j, at.rows, at.columns, out);
  }

  const Product& p_;
  const Depth depth_;
  const T* x_;
  const T* y_;
  const T* packed_;
  const T* bias_;
  T* out_;
  const PanelsFrom from_;
};

// Matrices that a walk over `batch` in these steps meets.
int64_t CountMatrices(const Shape& batch, const std::array<int64_t, kMaxRank>& steps) {
  int64_t count = 1;
  for (int d = 0; d < batch.rank(); ++d) count *= steps[d] == 0 ? 1 : batch[d];
  return count;
}

// Packs rows [first, first + count) of one matrix of Y as it lies; `packed` is that of the whole
// matrix. Of a transposed one, `first` begins a panel.
template <typename T>
void PackRows(const Product& p, const T* rows, int64_t first, int64_t count, T* packed,
              int threads) {
  const int64_t panels = ((p.trans_y ? count : p.n) + kPanel<T> - 1) / kPanel<T>;
  const int64_t panel_elements = kPanel<T> * (p.trans_y ? p.k : count);
  const int64_t grain = GrainFor(panel_elements, kProductGrain);
  ParallelFor(threads, panels, grain, [=, &p](int64_t begin, int64_t end) {
    for (int64_t j = begin * kPanel<T>; j < end * kPanel<T>; j += kPanel<T>) {
      if (p.trans_y) {
        PackMatrix(p.k, std::min(count - j, kPanel<T>), rows + j * p.k, int64_t{1}, p.k,
                   packed + (first + j) * p.k);
      } else {
        PackMatrix(count, std::min(p.n - j, kPanel<T>), rows + j, p.n, int64_t{1},
                   packed + j * p.k + first * kPanel<T>);
      }
    }
  });
}

// Packs all of a constant Y. Of one in a file, the pages of some rows are given back before the
// next are read: a large weight is never held twice.
template <typename T>
void PackConstant(const Product& p, const T* y, bool in_file, T* packed, int threads) {
  constexpr int64_t kPartBytes = int64_t{4} << 20;
  const int64_t rows = p.trans_y ? p.n : p.k;
  const int64_t columns = p.trans_y ? p.k : p.n;
  const int64_t row_bytes = columns * int64_t{sizeof(T)};
  const int64_t panel_bytes = std::max<int64_t>(1, row_bytes * kPanel<T>);
  const int64_t panels = std::max<int64_t>(1, kPartBytes / panel_bytes);
  const int64_t most = in_file ? panels * kPanel<T> : rows;
  for (int64_t matrix = 0; matrix < p.count_y(); ++matrix, packed += PackedSize<T>(p.k, p.n)) {
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      const T* const part = y + (matrix * rows + first) * columns;
      PackRows(p, part, first, count, packed, threads);
      if (in_file) DropFilePages(part, static_cast<size_t>(count * row_bytes));
    }
  }
}

template <typename T>
absl::StatusOr<const T*> PackedConstant(KernelContext& ctx, const Product& p, const T* y,
                                        bool in_file) {
  auto& state = ctx.state<ProductState>();
  if (state.packed == nullptr) {
    INTERP_ASSIGN_OR_RETURN(
        state.packed,
        SharedArray<T>(ctx, /*key=*/0, PackedSize<T>(p.k, p.n) * p.count_y(),
                       [&](T* packed) { PackConstant(p, y, in_file, packed, ctx.num_threads()); }));
  }
  return ElementsOf<T>(*state.packed);
}

// Y as it is, at an address that loops can read from.
template <typename T>
absl::StatusOr<const T*> AlignedConstant(KernelContext& ctx, const Product& p, const T* y,
                                         bool in_file) {
  auto& state = ctx.state<ProductState>();
  if (state.packed == nullptr) {
    const int64_t count = p.count_y() * p.k * p.n;
    const size_t size_bytes = static_cast<size_t>(count) * sizeof(T);
    INTERP_ASSIGN_OR_RETURN(state.packed, SharedArray<T>(ctx, /*key=*/0, count, [&](T* copy) {
                              std::memcpy(copy, y, size_bytes);
                              if (in_file) DropFilePages(y, size_bytes);
                            }));
  }
  return ElementsOf<T>(*state.packed);
}

// Packs Y anew, part after part where that is more than stays in cache: a weight's gradient sums
// over all rows of a batch. A transposed X is read row by row too then, once from far.
template <typename T>
absl::Status RunInParts(KernelContext& ctx, const Product& p, const T* x, const T* y, const T* bias,
                        T* out) {
  constexpr int64_t kPart = 128 * 1024;  // elements
  const int64_t rows =
      p.trans_x ? kGemmDepth : (kPart / p.n + kGemmDepth - 1) / kGemmDepth * kGemmDepth;
  const int64_t most = p.count() == 1 ? std::min(p.k, std::max(rows, kGemmDepth)) : p.k;
  const auto elements = static_cast<size_t>(PackedSize<T>(most, p.n) * p.count_y());
  INTERP_ASSIGN_OR_RETURN(const Workspace panels, ctx.workspace(elements * sizeof(T)));
  T* const packed = panels.data<T>();
  Depth depth;
  do {
    depth.count = std::min(most, p.k - depth.first);
    PackAll(p, depth, y, p.count_y(), packed, ctx.num_threads());
    Runner<T>(p, depth, x, y, packed, bias, out).Run(ctx.num_threads());
    depth.first += depth.count;
  } while (depth.first < p.k);
  return absl::OkStatus();
}

// Many small products of a Y each, which threads can share evenly: it is packed right before, into
// the cache of the thread that multiplies with it.
template <typename T>
bool IsManySmall(const Product& p, int threads) {
  constexpr int64_t kSmall = 16 * 1024;  // elements
  constexpr int64_t kMany = 8;           // for each thread
  const bool even = p.count() % threads == 0 || p.count() >= kMany * threads;
  return p.count() > 1 && even && p.count_y() == p.count() && PackedSize<T>(p.k, p.n) <= kSmall;
}

template <typename T>
absl::Status RunOneByOne(KernelContext& ctx, const Product& p, const T* x, const T* y,
                         const T* bias, T* out) {
  const int64_t parts = std::min<int64_t>(ctx.num_threads(), p.count());
  const int64_t size = PackedSize<T>(p.k, p.n);
  INTERP_ASSIGN_OR_RETURN(const Workspace panels,
                          ctx.workspace(static_cast<size_t>(parts * size) * sizeof(T)));
  Product one = p;
  one.batch = Shape();
  const int64_t grain = GrainFor(p.m * size * p.count() / parts, kProductGrain);
  ParallelFor(ctx.num_threads(), parts, grain, [&](int64_t begin, int64_t end) {
    T* const packed = panels.data<T>() + begin * size;
    for (int64_t b = p.count() * begin / parts; b < p.count() * end / parts; ++b) {
      PackAll(one, {0, p.k}, y + MatrixOf(p, b, p.y_steps) * p.k * p.n, /*count=*/1, packed,
              /*threads=*/1);
      Runner<T>(one, {0, p.k}, x + MatrixOf(p, b, p.x_steps) * p.m * p.k, nullptr, packed, bias,
                out + b * p.m * p.n)
          .Run(/*threads=*/1);
    }
  });
  return absl::OkStatus();
}

// Folded, and Y of one column as one row: the same memory, read along k.
Product Simplified(const Product& product) {
  Product p = product;
  FoldBatch(p);
  if (p.n == 1) p.trans_y = true;
  return p;
}

// Whether Y is multiplied from panels. One for a single column would be padding but for that.
bool Packs(const Product& p, bool y_constant) { return p.n > 1 && (y_constant || p.m >= kFewRows); }

const char* MethodName(bool packs, bool y_constant, bool many_small) {
  if (!packs) return "rows as they lie";
  if (y_constant) return "kept panels";
  return many_small ? "panels by matrix" : "panels";
}

template <typename T>
bool IsAligned(const T* elements) {
  return reinterpret_cast<uintptr_t>(elements) % alignof(T) == 0;
}

}  // namespace

int64_t Product::count_x() const { return CountMatrices(batch, x_steps); }
int64_t Product::count_y() const { return CountMatrices(batch, y_steps); }

void FoldBatch(Product& p) {
  if (p.trans_x || p.count_y() != 1) return;
  int64_t step = 1;
  for (int d = p.batch.rank() - 1; d >= 0; step *= p.batch[d--]) {
    if (p.batch[d] > 1 && p.x_steps[d] != step) return;
  }
  p.m *= p.count();
  p.batch = Shape();
}

absl::Status BroadcastBatch(absl::Span<const int64_t> x, absl::Span<const int64_t> y,
                            Product& product) {
  const int rank = static_cast<int>(std::max(x.size(), y.size()));
  product.batch = Shape();
  product.batch.resize(rank);
  int64_t x_step = 1;
  int64_t y_step = 1;
  for (int i = 1; i <= rank; ++i) {
    const int64_t a = i <= std::ssize(x) ? x[x.size() - i] : 1;
    const int64_t b = i <= std::ssize(y) ? y[y.size() - i] : 1;
    if (a != b && a != 1 && b != 1) {
      return InvalidArgument("batch dims [", absl::StrJoin(x, ","), "] of 'X' and [",
                             absl::StrJoin(y, ","), "] of 'Y' do not broadcast");
    }
    product.batch[rank - i] = a == 1 ? b : a;
    product.x_steps[rank - i] = a == 1 ? 0 : x_step;
    product.y_steps[rank - i] = b == 1 ? 0 : y_step;
    x_step *= a;
    y_step *= b;
  }
  return absl::OkStatus();
}

absl::Status PrepareProduct(KernelContext& ctx, const Product& product, const float* y,
                            bool in_file) {
  const FlushDenormals flush;
  if (product.count() * product.m * product.n == 0) return absl::OkStatus();
  const Product p = Simplified(product);
  if (Packs(p, /*y_constant=*/true)) return PackedConstant(ctx, p, y, in_file).status();
  return IsAligned(y) ? absl::OkStatus() : AlignedConstant(ctx, p, y, in_file).status();
}

template <typename T>
absl::Status RunProduct(KernelContext& ctx, const Product& product, const T* x, const T* y,
                        bool y_constant, const T* bias, T* out, const char** method) {
  const FlushDenormals flush;
  if (product.count() * product.m * product.n == 0) return absl::OkStatus();
  Product p = Simplified(product);
  const bool packs = Packs(p, y_constant);
  const bool small = packs && !y_constant && IsManySmall<T>(p, ctx.num_threads());
  if (method != nullptr) *method = MethodName(packs, y_constant, small);
  std::optional<Workspace> x_copy;
  if (p.trans_x && !packs) {
    const int64_t count = p.count_x();
    INTERP_ASSIGN_OR_RETURN(x_copy,
                            ctx.workspace(static_cast<size_t>(count * p.m * p.k) * sizeof(T)));
    T* rows = static_cast<T*>(x_copy->data());
    const CopyDims dims = {{count, p.m * p.k, p.m * p.k}, {p.m, 1, p.k}, {p.k, p.m, 1}};
    CopyStrided(ctx.num_threads(), sizeof(T), dims, x, rows);
    x = rows;
    p.trans_x = false;
  }
  const T* packed = nullptr;
  if (packs && !y_constant) {
    return small ? RunOneByOne(ctx, p, x, y, bias, out) : RunInParts(ctx, p, x, y, bias, out);
  }
  if (packs) {
    INTERP_ASSIGN_OR_RETURN(packed, PackedConstant(ctx, p, y, /*in_file=*/false));
  } else if (!IsAligned(y)) {
    INTERP_ASSIGN_OR_RETURN(y, AlignedConstant(ctx, p, y, /*in_file=*/false));
  }
  Runner<T>(p, {0, p.k}, x, y, packed, bias, out, PanelsFrom::kMemory).Run(ctx.num_threads());
  return absl::OkStatus();
}

template absl::Status RunProduct<float>(KernelContext&, const Product&, const float*, const float*,
                                        bool, const float*, float*, const char**);
template absl::Status RunProduct<double>(KernelContext&, const Product&, const double*,
                                         const double*, bool, const double*, double*, const char**);
template absl::Status RunProduct<uint32_t>(KernelContext&, const Product&, const uint32_t*,
                                           const uint32_t*, bool, const uint32_t*, uint32_t*,
                                           const char**);
template absl::Status RunProduct<uint64_t>(KernelContext&, const Product&, const uint64_t*,
                                           const uint64_t*, bool, const uint64_t*, uint64_t*,
                                           const char**);

}  // namespace interp::nn
