// Vectors of neighbouring elements in the type to compute in: float for bfloat16.
#pragma once

#include <cstring>

#include "core/float16.h"

namespace interp::nn {

// kCount neighbours that are stored as T.
template <typename T, int kCount>
struct Lanes {
  typedef T type __attribute__((vector_size(kCount * sizeof(T))));

  static type Load(const T* from) {
    type value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  static void Store(type value, T* to) { std::memcpy(to, &value, sizeof(value)); }
};

// Loops that the compiler turns into the vector instructions, which its vector types lack in
// templates.
template <int kCount>
struct Lanes<bfloat16, kCount> {
  using type = typename Lanes<float, kCount>::type;

  static type Load(const bfloat16* from) {
    float values[kCount];
    for (int i = 0; i < kCount; ++i) values[i] = from[i];
    return Lanes<float, kCount>::Load(values);
  }
  static void Store(type value, bfloat16* to) {
    float values[kCount];
    Lanes<float, kCount>::Store(value, values);
    for (int i = 0; i < kCount; ++i) to[i] = values[i];
  }
};

}  // namespace interp::nn
