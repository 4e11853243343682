#include "kernels/util/bfloat16_rows.h"

#include "kernels/util/float_vectors.h"

namespace interp {

#if INTERP_FLOAT_LANES == 16

// Not by vcvtneps2bf16, which takes subnormal numbers for zero.
void ToBfloat16Row(const float* x, bfloat16* out, int64_t n) {
  ForVectors(n, [&](int64_t i, __mmask16 lanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i rounded =
        _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), nan, high, _mm512_set1_epi32(0x40));
    _mm512_mask_cvtepi32_storeu_epi16(out + i, lanes, rounded);
  });
}

#else

void ToBfloat16Row(const float* x, bfloat16* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16(x[i]);
}

#endif

}  // namespace interp
