// Floating-point numbers as text: the shortest decimal form that reads back as the same value.
#pragma once

#include <string>

namespace interp {

// "1.0", "0.1", "1e-05", "inf", "-inf", "nan": always recognisable as no integer.
std::string FloatText(float value);
std::string FloatText(double value);

}  // namespace interp
