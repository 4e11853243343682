// PackedArrays: what a kernel computed of constants, packed weights above all, as plain arrays, so
// that a plan file can keep it from one process to the next (interpreter/plan/packed_constants.h).
//
// It may come from a file that says anything, so a kernel looks at the sizes before it reads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/op_context.h"
#include "core/storage/lasting_memory.h"

namespace interp {

// Of the host, plain, aligned to kBufferAlignment. Immutable once shared.
struct PackedArrays {
  std::vector<Tensor> arrays;
};

// Keys of SharedConstants that have this bit lead to PackedArrays, and no others do.
inline constexpr uint64_t kPackedArraysKey = uint64_t{1} << 63;

// As KernelContext::Shared: `make` returns absl::StatusOr<std::shared_ptr<const PackedArrays>>.
template <typename Make>
absl::StatusOr<std::shared_ptr<const PackedArrays>> SharedArrays(const KernelContext& ctx,
                                                                 uint64_t key, Make make) {
  return ctx.Shared<PackedArrays>(key | kPackedArraysKey, std::move(make));
}

// Uninitialised bytes of LastingAllocator(). Error: ResourceExhausted.
inline absl::StatusOr<Tensor> NewPackedArray(size_t size_bytes) {
  Tensor array;
  array.dtype = DType::kUInt8;
  array.shape = {static_cast<int64_t>(size_bytes)};
  INTERP_RETURN_IF_ERROR(array.Allocate(LastingAllocator()));
  return array;
}

// DataLoss unless `packed` consists of arrays of these sizes.
inline absl::Status CheckArrays(const PackedArrays& packed, absl::Span<const size_t> sizes_bytes) {
  if (packed.arrays.size() != sizes_bytes.size()) {
    return DataLoss("packed constants have ", packed.arrays.size(), " arrays, expected ",
                    sizes_bytes.size());
  }
  for (size_t i = 0; i < sizes_bytes.size(); ++i) {
    const size_t size_bytes = packed.arrays[i].size_bytes();
    if (size_bytes == sizes_bytes[i]) continue;
    return DataLoss("array #", i, " of packed constants has ", size_bytes, " bytes, expected ",
                    sizes_bytes[i]);
  }
  return absl::OkStatus();
}

// One array of `count` elements of T that `fill(T*)` writes, once for all clones.
template <typename T, typename Fill>
absl::StatusOr<std::shared_ptr<const PackedArrays>> SharedArray(const KernelContext& ctx,
                                                                uint64_t key, int64_t count,
                                                                const Fill& fill) {
  const size_t size_bytes = static_cast<size_t>(count) * sizeof(T);
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const PackedArrays>> {
    INTERP_ASSIGN_OR_RETURN(Tensor array, NewPackedArray(size_bytes));
    fill(static_cast<T*>(array.mutable_raw_data()));
    return std::make_shared<const PackedArrays>(PackedArrays{{std::move(array)}});
  };
  INTERP_ASSIGN_OR_RETURN(std::shared_ptr<const PackedArrays> packed, SharedArrays(ctx, key, make));
  INTERP_RETURN_IF_ERROR(CheckArrays(*packed, {size_bytes}));
  return packed;
}

// The elements of an array. REQUIRES: CheckArrays has found it large enough.
template <typename T>
const T* ElementsOf(const PackedArrays& packed, size_t array = 0) {
  return static_cast<const T*>(packed.arrays[array].raw_data());
}

}  // namespace interp
