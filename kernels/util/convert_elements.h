// ConvertElements: a dense run of elements in another type, see Convert.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/util/arithmetic.h"
#include "kernels/util/bfloat16_rows.h"
#include "kernels/util/parallel_for.h"

namespace interp {

template <typename From, typename To>
void ConvertElements(int num_threads, const From* from, int64_t n, To* to) {
  ParallelFor(num_threads, n, kElementwiseGrain, [=](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>) {
      ToBfloat16Row(from + begin, to + begin, end - begin);
    } else {
      for (int64_t i = begin; i < end; ++i) to[i] = Convert<To>(from[i]);
    }
  });
}

}  // namespace interp
