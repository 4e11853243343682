// What rows of ops for GPUs have in common. A row is a host function over the functions of this
// folder: it reads attributes and shapes, and enqueues. Rows lie in `*_rows.cc`, one file a family:
//
//   absl::Status Relu(KernelContext& ctx) { ... cuda::Elementwise(..., StreamOf(ctx)); }
//   INTERP_REGISTER_KERNELS("relu", {{DType::kFloat32, Relu, PlaceKind::kCuda}});
//
// Inputs and outputs are device memory in plain layout, dense, but inputs with kHostInput or
// kValueInInfer, which lie on the host. A row waits for nothing and copies nothing from the host
// but by value and by number_lists.h.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"

namespace interp::cuda {

// Where a row enqueues. REQUIRES: `ctx` is that of a row of kCuda.
cudaStream_t StreamOf(const KernelContext& ctx);

// KernelContext::workspace, for functions that take a TakeWorkspace.
inline auto WorkspaceOf(const KernelContext& ctx) {
  return [&ctx](size_t bytes) { return ctx.workspace(bytes); };
}

// The same row for each of some dtypes.
inline std::vector<KernelDef> RowsFor(std::initializer_list<DType> dtypes, KernelFn run,
                                      bool (*takes)(const void* attrs) = nullptr) {
  std::vector<KernelDef> rows;
  for (const DType dtype : dtypes) {
    rows.push_back({.dtype = dtype, .run = run, .place = PlaceKind::kCuda, .takes = takes});
  }
  return rows;
}

inline constexpr std::initializer_list<DType> kFloats = {DType::kFloat32, DType::kFloat16,
                                                         DType::kBFloat16};

}  // namespace interp::cuda
