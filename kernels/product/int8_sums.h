// From sums of int8 products to results, where no primitive does it on the way.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_int8_onednn.h"

namespace interp::nn {

// out[p][c] = activation(sums[p][c] * scales[c] + bias[c] [+ out[p][c]]), for `pixels` rows of the
// epilogue's channels; as int8 by the epilogue's grid where Out is int8_t, which takes no residual.
// Sum is int32_t or float.
template <typename Sum, typename Out>
void FinishSums(const Int8Epilogue& epilogue, int64_t pixels, const Sum* sums, int num_threads,
                Out* out);

}  // namespace interp::nn
