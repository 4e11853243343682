// Weights of recurrent ops, packed for GemmPacked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "core/constant_elements.h"
#include "core/op_def.h"
#include "core/packed_arrays.h"
#include "kernels/product/gemm.h"

namespace interp::recurrent {

// One of the row-major matrices that lie one after the other in the memory of a weight.
struct MatrixPart {
  int64_t rows = 0;
  int64_t columns = 0;
};

template <typename T>
int64_t PackedSizeOf(absl::Span<const MatrixPart> parts) {
  int64_t size = 0;
  for (const MatrixPart& part : parts) size += nn::PackedSize<T>(part.rows, part.columns);
  return size;
}

template <typename T>
void PackParts(absl::Span<const MatrixPart> parts, const T* weight, T* packed) {
  for (const MatrixPart& part : parts) {
    nn::PackMatrix(part.rows, part.columns, weight, part.columns, int64_t{1}, packed);
    weight += part.rows * part.columns;
    packed += nn::PackedSize<T>(part.rows, part.columns);
  }
}

// One weight of one instruction: part of its state.
template <typename T>
class PackedWeights {
 public:
  // Packs the matrices of input `slot`. It does so once when the input is constant, and clones then
  // share the result; else in every run, into `temporary`, which is in use until the end of the
  // run.
  absl::StatusOr<const T*> Get(const KernelContext& ctx, int slot,
                               absl::Span<const MatrixPart> parts,
                               std::optional<Workspace>& temporary) {
    if (kept_ != nullptr) return ElementsOf<T>(*kept_);
    const Tensor& weight = ctx.input(slot);
    const int64_t size = PackedSizeOf<T>(parts);
    if (!ctx.input_is_constant(slot)) {
      INTERP_ASSIGN_OR_RETURN(temporary, ctx.workspace(static_cast<size_t>(size) * sizeof(T)));
      PackParts(parts, weight.data<T>(), temporary->template data<T>());
      return temporary->template data<T>();
    }
    INTERP_ASSIGN_OR_RETURN(
        kept_, SharedArray<T>(ctx, static_cast<uint64_t>(slot), size,
                              [&](T* packed) { PackParts(parts, weight.data<T>(), packed); }));
    GiveBackPages(weight);
    return ElementsOf<T>(*kept_);
  }

 private:
  std::shared_ptr<const PackedArrays> kept_;
};

}  // namespace interp::recurrent
