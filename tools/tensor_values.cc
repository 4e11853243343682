#include "tools/tensor_values.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace interp {

std::string RealText(double value, int digits) {
  // No sign says anything about a NaN.
  return std::isnan(value) ? "nan" : absl::StrFormat("%.*g", digits, value);
}

std::string IndexText(const Shape& shape, int64_t index) {
  std::vector<int64_t> place(shape.rank());
  for (int i = shape.rank() - 1; i >= 0; --i) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return absl::StrCat("[", absl::StrJoin(place, ","), "]");
}

std::string LodText(const Lod& lod) {
  return absl::StrCat("[",
                      absl::StrJoin(lod, ",",
                                    [](std::string* out, const std::vector<int64_t>& level) {
                                      absl::StrAppend(out, "[", absl::StrJoin(level, ","), "]");
                                    }),
                      "]");
}

}  // namespace interp
