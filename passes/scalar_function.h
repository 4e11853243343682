// Functions of one variable that ops of a program compute element by element.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/program.h"

namespace interp {

// What `op` makes of the element x of its only input; nullopt for ops that do more than that, or
// other things than functions that activations are made of.
std::optional<double> ApplyFunction(const Op& op, double x);

// What a binary op by element makes of two elements; nullopt for others.
std::optional<double> ApplyBinary(const Op& op, double x, double y);

// The only element, of that dtype, of what a fill_constant makes, as an operand that other shapes
// broadcast with; nullopt for other ops.
std::optional<double> ConstantOf(const Op& op, DType dtype);

// An op of one input X and output Out that computes a function of numbers.
struct KnownFunction {
  std::string type;
  std::vector<Attr> attrs;
};

// The activation that has the values of f at all points between -24 and 24 that are a hundredth
// apart, and at some far outside; but for rounding: constants are written with seven digits, or
// with all that a double holds where `exact`. Nullopt where there is none; that takes a few calls.
std::optional<KnownFunction> RecognizeActivation(absl::FunctionRef<double(double)> f, bool exact);

}  // namespace interp
