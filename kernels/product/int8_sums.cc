#include "kernels/product/int8_sums.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

// Rows are taken together until they fill about this many values, which stay in the first cache.
constexpr int64_t kBlock = 2048;

template <typename Sum>
void ScaleRows(const Int8Epilogue& epilogue, int64_t rows, const Sum* sums, bool add, float* out) {
  const auto channels = static_cast<int64_t>(epilogue.scales.size());
  const float* const scales = epilogue.scales.data();
  const float* const bias = epilogue.bias.data();
  for (int64_t r = 0; r < rows; ++r, sums += channels, out += channels) {
    if (add) {
      for (int64_t c = 0; c < channels; ++c) {
        out[c] += static_cast<float>(sums[c]) * scales[c] + bias[c];
      }
    } else {
      for (int64_t c = 0; c < channels; ++c) {
        out[c] = static_cast<float>(sums[c]) * scales[c] + bias[c];
      }
    }
  }
}

}  // namespace

template <typename Sum, typename Out>
void FinishSums(const Int8Epilogue& epilogue, int64_t pixels, const Sum* sums, int num_threads,
                Out* out) {
  const auto channels = static_cast<int64_t>(epilogue.scales.size());
  const int64_t rows = std::max<int64_t>(1, kBlock / channels);
  ParallelFor(num_threads, pixels, kElementwiseGrain / channels, [&](int64_t begin, int64_t end) {
    std::vector<float> block;
    if constexpr (!std::is_same_v<Out, float>) block.resize(rows * channels);
    for (int64_t p = begin; p < end; p += rows) {
      const int64_t count = std::min(rows, end - p);
      float* values = block.data();
      if constexpr (std::is_same_v<Out, float>) values = out + p * channels;
      ScaleRows(epilogue, count, sums + p * channels, epilogue.residual, values);
      ApplyActivation(epilogue.activation, values, count * channels);
      if constexpr (!std::is_same_v<Out, float>) {
        QuantizeToInt8(/*num_threads=*/1, count * channels, epilogue.out_grid, values,
                       epilogue.out_scale, out + p * channels);
      }
    }
  });
}

template void FinishSums(const Int8Epilogue&, int64_t, const int32_t*, int, float*);
template void FinishSums(const Int8Epilogue&, int64_t, const int32_t*, int, int8_t*);
template void FinishSums(const Int8Epilogue&, int64_t, const float*, int, float*);
template void FinishSums(const Int8Epilogue&, int64_t, const float*, int, int8_t*);

}  // namespace interp::nn
