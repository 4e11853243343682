// Rows that start with a show and a click count: what cvm and the ops with it inside share.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/attr_reader.h"

namespace interp {

inline constexpr int64_t kCvmCounts = 2;

struct CvmAttrs {
  bool use_cvm = true;  // the counts stay, as logarithms; else they are left out
};

inline CvmAttrs ReadCvm(AttrReader& reader) { return {reader.Bool("use_cvm", true)}; }

// y[0, 2) = log(show + 1), log(click + 1) - log(show + 1) of the counts x[0, 2), which may be y.
template <typename T>
void LogCounts(const T* x, T* y) {
  y[0] = std::log(x[0] + T{1});
  y[1] = std::log(x[1] + T{1}) - y[0];
}

}  // namespace interp
