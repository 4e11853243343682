#include "core/base/number_text.h"

#include <charconv>
#include <cmath>

namespace interp {
namespace {

template <typename T>
std::string Shortest(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];  // the longest double has 24 characters
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string FloatText(float value) { return Shortest(value); }
std::string FloatText(double value) { return Shortest(value); }

}  // namespace interp
