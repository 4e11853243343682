// equal, not_equal, less_than, less_equal, greater_than, greater_equal: Out = X op Y as bool.
#include <cmath>
#include <functional>
#include <type_traits>

#include "kernels/math/binary.h"

namespace interp {
namespace {

// Floats within 1e-8 are equal, as in Paddle (phi/kernels/funcs/compare_functors.h).
struct Equal {
  template <typename T>
  bool operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a == b || std::abs(static_cast<double>(a - b)) < 1e-8;
    } else {
      return a == b;
    }
  }
};

struct NotEqual {
  template <typename T>
  bool operator()(T a, T b) const {
    return !Equal()(a, b);
  }
};

template <typename Op>
OpDef CompareDef(absl::string_view type) {
  return PredicateDef(type, PredicateKernels<Op, float, double, float16, int32_t, int64_t, int16_t,
                                             int8_t, uint8_t, bool>());
}

INTERP_REGISTER_OP(CompareDef<Equal>("equal"));
INTERP_REGISTER_OP(CompareDef<NotEqual>("not_equal"));
INTERP_REGISTER_OP(CompareDef<std::less<>>("less_than"));
INTERP_REGISTER_OP(CompareDef<std::less_equal<>>("less_equal"));
INTERP_REGISTER_OP(CompareDef<std::greater<>>("greater_than"));
INTERP_REGISTER_OP(CompareDef<std::greater_equal<>>("greater_equal"));

}  // namespace
}  // namespace interp
