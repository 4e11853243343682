// Second gradients of functions of one number, by X or by Out: what their slots are called.
#pragma once

#include "kernels/util/second_gradient.h"

namespace interp {

// Of those whose first gradient reads X.
constexpr SecondGradient SecondOfX(absl::string_view type) {
  return {.type = type,
          .values = {{{"X", "X"}, {"grad_out", "Out@GRAD"}}},
          .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
          .results = {{{"X@GRAD", "X"}, {"grad_out@GRAD", "Out@GRAD"}}}};
}

// Of roots, whose second gradient reads the first.
constexpr SecondGradient SecondOfRoot(absl::string_view type) {
  return {.type = type,
          .values = {{{"Out", "Out"}, {"grad_x", "X@GRAD"}}},
          .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
          .results = {{{"Out@GRAD", "Out"}, {"grad_out@GRAD", "Out@GRAD"}}}};
}

// Of those that are straight lines in pieces, which slot `value` tells apart.
constexpr SecondGradient SecondOfPieces(absl::string_view type, SecondSlot value) {
  return {.type = type,
          .values = {{value}},
          .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
          .results = {{{"grad_out@GRAD", "Out@GRAD"}}}};
}

}  // namespace interp
