// Products of bfloat16 matrices, see product.h and gemm_bf16.h.
#include <algorithm>
#include <optional>

#include "kernels/nn/onednn.h"
#include "kernels/product/gemm_bf16.h"
#include "kernels/product/product.h"
#include "kernels/product/product_blocks.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/strided_copy.h"

namespace interp::nn {
namespace {

// X as rows of whole pairs, whose last may end in a zero: itself, or a copy.
struct PairRows {
  const bfloat16* data = nullptr;
  int64_t length = 0;
  std::optional<Workspace> copy;
};

absl::Status MakePairRows(const KernelContext& ctx, const Product& p, const bfloat16* x,
                          PairRows& rows) {
  rows.data = x;
  rows.length = (p.k + 1) / 2 * 2;
  if (!p.trans_x && p.k % 2 == 0) return absl::OkStatus();
  const int64_t count = p.count_x();
  const int64_t size = p.m * rows.length;
  INTERP_ASSIGN_OR_RETURN(rows.copy,
                          ctx.workspace(static_cast<size_t>(count * size) * sizeof(bfloat16)));
  bfloat16* const to = rows.copy->data<bfloat16>();
  if (p.k % 2 != 0) std::fill_n(to, count * size, bfloat16());
  const CopyDims dims = {{count, p.m * p.k, size},
                         {p.m, p.trans_x ? 1 : p.k, rows.length},
                         {p.k, p.trans_x ? p.m : 1, 1}};
  CopyStrided(ctx.num_threads(), sizeof(bfloat16), dims, x, to);
  rows.data = to;
  return absl::OkStatus();
}

// Packs all matrices of Y, each PackedPairs(k, n) after the other.
void PackAll(const Product& p, const bfloat16* y, int threads, uint32_t* packed) {
  const int64_t pairs = (p.k + 1) / 2;
  const int64_t panels = (p.n + kPairPanel - 1) / kPairPanel;
  const int64_t grain = GrainFor(p.k * kPairPanel, kProductGrain);
  ParallelFor(threads, p.count_y() * panels, grain, [=, &p](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t j = i % panels * kPairPanel;
      const bfloat16* const matrix = y + i / panels * p.k * p.n;
      PackPairs(p.k, std::min(kPairPanel, p.n - j), matrix + (p.trans_y ? j * p.k : j),
                p.trans_y ? p.k : p.n, p.trans_y, packed + i * pairs * kPairPanel);
    }
  });
}

absl::StatusOr<const uint32_t*> PackedConstant(KernelContext& ctx, const Product& p,
                                               const bfloat16* y) {
  auto& state = ctx.state<ProductState>();
  if (state.packed == nullptr) {
    INTERP_ASSIGN_OR_RETURN(
        state.packed,
        SharedArray<uint32_t>(ctx, /*key=*/0, PackedPairs(p.k, p.n) * p.count_y(),
                              [&](uint32_t* packed) { PackAll(p, y, ctx.num_threads(), packed); }));
  }
  return ElementsOf<uint32_t>(*state.packed);
}

// out[0, width) = activation(alpha * sums + bias), rounded when all is done. Writes over `sums`.
template <typename Out>
void Finish(const Product& p, const bfloat16* bias, int64_t width, float* sums, Out* out) {
  if (p.alpha != 1) {
    const auto alpha = static_cast<float>(p.alpha);
    for (int64_t j = 0; j < width; ++j) sums[j] *= alpha;
  }
  if (bias != nullptr) {
    for (int64_t j = 0; j < width; ++j) sums[j] += bias[j];
  }
  ApplyActivation(p.activation, sums, width);
  if (width == kPairPanel) {  // a number of elements the compiler knows
    for (int64_t j = 0; j < kPairPanel; ++j) out[j] = sums[j];
  } else {
    for (int64_t j = 0; j < width; ++j) out[j] = sums[j];
  }
}

template <typename Out>
absl::Status Run(KernelContext& ctx, const Product& product, const bfloat16* x, const bfloat16* y,
                 bool y_constant, const bfloat16* bias, Out* out) {
  Product p = product;
  if (p.count() * p.m * p.n == 0) return absl::OkStatus();
  FoldBatch(p);
  PairRows rows;
  INTERP_RETURN_IF_ERROR(MakePairRows(ctx, p, x, rows));
  std::optional<Workspace> y_copy;
  const uint32_t* packed = nullptr;
  if (y_constant) {
    INTERP_ASSIGN_OR_RETURN(packed, PackedConstant(ctx, p, y));
  } else {
    const auto pairs = static_cast<size_t>(PackedPairs(p.k, p.n) * p.count_y());
    INTERP_ASSIGN_OR_RETURN(y_copy, ctx.workspace(pairs * sizeof(uint32_t)));
    PackAll(p, y, ctx.num_threads(), y_copy->data<uint32_t>());
    packed = y_copy->data<uint32_t>();
  }
  ForEachBlock(p, kPairPanel, ctx.num_threads(), [&](const ProductBlock& at) {
    const bfloat16* const a = rows.data + (MatrixOf(p, at.b, p.x_steps) * p.m + at.i) * rows.length;
    const uint32_t* const panels =
        packed + MatrixOf(p, at.b, p.y_steps) * PackedPairs(p.k, p.n) + at.j * ((p.k + 1) / 2);
    Out* const to = out + (at.b * p.m + at.i) * p.n + at.j;
    GemmPairs(at.rows, p.k, at.columns, a, rows.length, panels,
              [&](int64_t i, int64_t j, int64_t width, float* sums) {
                Finish(p, bias == nullptr ? nullptr : bias + at.j + j, width, sums,
                       to + i * p.n + j);
              });
  });
  return absl::OkStatus();
}

}  // namespace

template <>
absl::Status RunProduct<bfloat16>(KernelContext& ctx, const Product& product, const bfloat16* x,
                                  const bfloat16* y, bool y_constant, const bfloat16* bias,
                                  bfloat16* out, const char** method) {
  if (method != nullptr) *method = y_constant ? "kept panels" : "panels";
  return Run(ctx, product, x, y, y_constant, bias, out);
}

absl::Status RunWideProduct(KernelContext& ctx, const Product& product, const bfloat16* x,
                            const bfloat16* y, float* out) {
  return Run(ctx, product, x, y, /*y_constant=*/false, nullptr, out);
}

}  // namespace interp::nn
