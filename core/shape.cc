#include "core/shape.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace interp {

Shape::Shape(absl::Span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  INTERP_CHECK(dims.size() <= kMaxRank);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::numel(int begin, int end) const {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= dims_[i];
  return product;
}

std::optional<int64_t> Shape::CheckedNumel() const {
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max() / 16;
  int64_t product = 1;
  bool zero = false;
  for (const int64_t dim : *this) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(product, dim, &product) || product > kLimit) {
      return std::nullopt;  // also with a zero elsewhere: such a shape is never meant
    }
  }
  return zero ? 0 : product;
}

void Shape::resize(int rank, int64_t fill) {
  INTERP_CHECK(rank <= kMaxRank);
  for (int i = rank_; i < rank; ++i) dims_[i] = fill;
  rank_ = rank;
}

bool operator==(const Shape& a, const Shape& b) {
  return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
}

std::string ToString(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

}  // namespace interp
