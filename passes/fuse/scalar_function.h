// Functions of one variable that ops of a program compute element by element.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/program.h"

namespace interp {

// What an op makes of the elements of its only input.
struct ElementFunction {
  using Parameters = std::array<double, 3>;
  double (*apply)(double x, const Parameters& parameters) = nullptr;
  Parameters parameters = {};
  bool has_kinks = false;  // is made of parts that need not fit
  double operator()(double x) const { return apply(x, parameters); }
};

// Nullopt for ops that do more than that, or other things than functions that activations are made
// of.
std::optional<ElementFunction> FunctionOf(const Op& op);

// What a binary op by element makes of two elements; null for others.
using BinaryFunction = double (*)(double x, double y);
BinaryFunction BinaryFunctionOf(const Op& op);

// The only element, of that dtype, of what a fill_constant makes, as an operand that other shapes
// broadcast with; nullopt for other ops.
std::optional<double> ConstantOf(const Op& op, DType dtype);

// An op of one input X and output Out that computes a function of numbers.
struct KnownFunction {
  std::string type;
  std::vector<Attr> attrs;
};

// The activation that has the values of f at points between -24 and 24 and at some far outside; but
// for rounding: constants are written with seven digits, or with all that a double holds where
// `exact`. The points are a hundredth apart where f `has_kinks`, else more. Nullopt where there is
// none; that takes a few calls.
std::optional<KnownFunction> RecognizeActivation(absl::FunctionRef<double(double)> f,
                                                 bool has_kinks, bool exact);

}  // namespace interp
