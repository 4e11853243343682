// What this machine can do at most, to say of an op how near to that it came: the roofline of
// Williams, Waterman and Patterson (CACM 2009), with a roof for each cache.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/dtype.h"

namespace interp {

struct MachineLimit {
  // Of a matrix product that fits into a cache.
  struct Products {
    DType dtype = DType::kFloat32;
    double flops_per_ns = 0;
  };
  // Of a copy, counting what it reads and what it writes, which together take `bytes`.
  struct Copies {
    int64_t bytes = 0;
    double bytes_per_ns = 0;
  };
  int num_threads = 0;             // that it was measured on
  std::vector<Products> products;  // of the types that were asked for and that have products
  std::vector<Copies> copies;      // smallest first
};

// Measures for about a twentieth of a second on `num_threads` threads, but on no more than this
// process has CPUs. What there is no memory, no thread or no kernel for is left out.
MachineLimit MeasureMachineLimit(int num_threads, absl::Span<const DType> dtypes);

// The least nanoseconds for `flops` operations in `dtype` on `bytes` that lie in the smallest cache
// that holds them, or 0 where `limit` does not say: it knows no products of that type.
double LeastNs(const MachineLimit& limit, DType dtype, double flops, double bytes);

}  // namespace interp
