// Second gradients: slots that those of several ops have in common.
#pragma once

#include "kernels/util/second_gradient.h"

namespace interp {

// Of functions of one number whose first gradient reads X.
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

// Of functions that are straight lines in pieces, which slot `value` tells apart.
constexpr SecondGradient SecondOfPieces(absl::string_view type, SecondSlot value) {
  return {.type = type,
          .values = {{value}},
          .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
          .results = {{{"grad_out@GRAD", "Out@GRAD"}}}};
}

// What the second gradient of a function of two operands calls its slots.
struct SecondOfTwoNames {
  std::array<absl::string_view, 2> operands = {"X", "Y"};
  absl::string_view out_grad = "DOut";                         // gradient of the result
  std::array<absl::string_view, 2> incoming = {"DDX", "DDY"};  // of the operands' gradients
  absl::string_view result_of_grad = "DDOut";                  // gradient of `out_grad`
  std::array<absl::string_view, 2> results = {"X@GRAD", "Y@GRAD"};
  // As the first gradient calls them.
  std::array<absl::string_view, 2> first = {"X@GRAD", "Y@GRAD"};
  absl::string_view first_out_grad = "Out@GRAD";
};

// Of functions of two operands whose first gradient reads both.
constexpr SecondGradient SecondOfTwo(absl::string_view type, const SecondOfTwoNames& names = {}) {
  return {.type = type,
          .values = {{{names.operands[0], names.operands[0]},
                      {names.operands[1], names.operands[1]},
                      {names.out_grad, names.first_out_grad}}},
          .incoming = {{{names.incoming[0], names.first[0]}, {names.incoming[1], names.first[1]}}},
          .results = {{{names.result_of_grad, names.first_out_grad},
                       {names.results[0], names.operands[0]},
                       {names.results[1], names.operands[1]}}}};
}

// Of linear functions of X: the gradient of the gradient is the function itself, `type`, which
// reads the same two `tensors` beside X.
constexpr SecondGradient SecondIsForward(absl::string_view type,
                                         std::array<absl::string_view, 2> tensors) {
  return {.type = type,
          .values = {{{tensors[0], tensors[0]}, {tensors[1], tensors[1]}}},
          .incoming = {{{"X", "X@GRAD"}}},
          .results = {{{"Out", "Out@GRAD"}}}};
}

}  // namespace interp
