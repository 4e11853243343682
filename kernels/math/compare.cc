// equal, not_equal, less_than, less_equal, greater_than, greater_equal: Out = X op Y as bool.
#include <functional>

#include "kernels/math/binary.h"

namespace interp {
namespace {

template <typename Op>
OpDef CompareDef(absl::string_view type) {
  return PredicateDef(type, PredicateKernels<Op, float, double, float16, int32_t, int64_t, int16_t,
                                             int8_t, uint8_t, bool>());
}

INTERP_REGISTER_OP(CompareDef<std::equal_to<>>("equal"));
INTERP_REGISTER_OP(CompareDef<std::not_equal_to<>>("not_equal"));
INTERP_REGISTER_OP(CompareDef<std::less<>>("less_than"));
INTERP_REGISTER_OP(CompareDef<std::less_equal<>>("less_equal"));
INTERP_REGISTER_OP(CompareDef<std::greater<>>("greater_than"));
INTERP_REGISTER_OP(CompareDef<std::greater_equal<>>("greater_equal"));

}  // namespace
}  // namespace interp
