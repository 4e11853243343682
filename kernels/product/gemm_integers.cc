#include "kernels/product/gemm_loops.h"

namespace interp::nn {

INTERP_INSTANTIATE_GEMM(uint32_t);
INTERP_INSTANTIATE_GEMM(uint64_t);

}  // namespace interp::nn
