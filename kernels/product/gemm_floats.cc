#include "kernels/product/gemm_loops.h"

namespace interp::nn {

INTERP_INSTANTIATE_GEMM(float);
INTERP_INSTANTIATE_GEMM(double);

}  // namespace interp::nn
