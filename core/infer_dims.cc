#include "core/infer_dims.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"

namespace interp {
namespace {

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();

// Two dims that meet elementwise; 0 when they do not fit.
int64_t Meet(int64_t a, int64_t b) {
  if (a == 1 || a == b) return b;
  if (b == 1) return a;
  if (a == -1) return b;
  return b == -1 ? a : 0;
}

absl::StatusOr<int64_t> CheckedWindows(int64_t extent, int64_t padded, int64_t reach,
                                       const Window& window) {
  if (padded < reach) {
    return InvalidArgument("a window of ", reach, " does not fit into ", extent, " with padding ",
                           window.padding);
  }
  const int64_t round = window.ceil ? window.stride - 1 : 0;
  return (padded - reach + round) / window.stride + 1;
}

}  // namespace

std::string DimsText(const Dims& dims) { return absl::StrCat("[", absl::StrJoin(dims, ","), "]"); }

int64_t ProductOf(const Dims& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) {
    if (dims[i] == -1) return -1;
    if (__builtin_mul_overflow(product, dims[i], &product)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return product;
}

absl::StatusOr<Dims> BroadcastDims(const Dims& x, const Dims& y) {
  const size_t rank = std::max(x.size(), y.size());
  Dims out(rank);
  for (size_t i = 1; i <= rank; ++i) {  // from the end
    const int64_t a = i <= x.size() ? x[x.size() - i] : 1;
    const int64_t b = i <= y.size() ? y[y.size() - i] : 1;
    const int64_t met = Meet(a, b);
    if (met == 0) {
      return InvalidArgument("shapes ", DimsText(x), " and ", DimsText(y), " do not broadcast");
    }
    out[rank - i] = met;
  }
  return out;
}

absl::StatusOr<Dims> MatmulDims(Dims x, Dims y, bool transpose_x, bool transpose_y) {
  if (x.empty() || y.empty()) return InvalidArgument("a product takes tensors of rank 1 and more");
  const std::string shapes = absl::StrCat(DimsText(x), " and ", DimsText(y));
  const bool row = x.size() == 1;
  const bool column = y.size() == 1;
  if (row) x.insert(x.begin(), 1);
  if (column) y.push_back(1);
  if (transpose_x && !row) std::swap(x[x.size() - 1], x[x.size() - 2]);
  if (transpose_y && !column) std::swap(y[y.size() - 1], y[y.size() - 2]);
  const int64_t inner_x = x.back();
  const int64_t inner_y = y[y.size() - 2];
  if (inner_x != inner_y && inner_x != -1 && inner_y != -1) {
    return InvalidArgument("shapes ", shapes, " do not multiply: ", inner_x, " and ", inner_y);
  }
  absl::StatusOr<Dims> out =
      BroadcastDims(Dims(x.begin(), x.end() - 2), Dims(y.begin(), y.end() - 2));
  if (!out.ok()) return InvalidArgument("shapes ", shapes, " do not multiply");
  if (!row) out->push_back(x[x.size() - 2]);
  if (!column) out->push_back(y.back());
  return out;
}

absl::StatusOr<Dims> ReshapeDims(const Dims& x, const std::vector<int32_t>& shape) {
  const auto bad = [&](absl::string_view why) {
    return InvalidArgument("shape ", DimsText(x), " does not become ",
                           DimsText(Dims(shape.begin(), shape.end())), ": ", why);
  };
  Dims out(shape.begin(), shape.end());
  if (std::count(out.begin(), out.end(), -1) > 1) return bad("more than one dim is -1");
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < -1) return bad("a dim is negative");
    if (out[i] != 0) continue;
    if (i >= x.size()) return bad("a dim is kept that is not there");
    out[i] = x[i];
  }
  // What is the same on both sides, known or not, leaves the others to be compared.
  Dims from = x;
  Dims to = out;
  for (size_t i = 0; i < std::min(x.size(), shape.size()); ++i) {
    if (shape[i] == 0) from[i] = to[i] = 1;
  }
  const int64_t have = ProductOf(from, 0, from.size());
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open == shape.end()) {
    const int64_t want = ProductOf(to, 0, to.size());
    return have == -1 || have == want ? absl::StatusOr<Dims>(out) : bad("the sizes differ");
  }
  const size_t position = open - shape.begin();
  if (have == -1) return out;
  to[position] = 1;
  const int64_t rest = ProductOf(to, 0, to.size());
  if (rest <= 0 || have % rest != 0) return bad("the sizes differ");
  out[position] = have / rest;
  return out;
}

absl::StatusOr<int64_t> WindowCount(int64_t extent, Window window,
                                    absl::string_view padding_algorithm) {
  const auto within = [](int64_t number, int64_t least) {
    return number >= least && number <= kMostExtent;
  };
  if (!within(window.size, 1) || !within(window.stride, 1) || !within(window.dilation, 1) ||
      !within(window.padding, 0)) {
    return InvalidArgument("size, stride and dilation are from 1, padding from 0, to ",
                           kMostExtent);
  }
  if (padding_algorithm == "VALID") {
    window.padding = 0;
  } else if (padding_algorithm != "EXPLICIT" && padding_algorithm != "SAME") {
    return InvalidArgument("padding_algorithm is '", padding_algorithm,
                           "', expected EXPLICIT, SAME or VALID");
  }
  if (extent == -1) return -1;
  if (padding_algorithm == "SAME") return (extent + window.stride - 1) / window.stride;
  const int64_t reach = window.dilation * (window.size - 1) + 1;
  return CheckedWindows(extent, extent + 2 * window.padding, reach, window);
}

}  // namespace interp
