#include "interpreter/train/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/near_names.h"
#include "core/element_types.h"

namespace interp {
namespace {

// Calls visit(T()) with the element type.
template <typename Visit>
absl::Status VisitData(DType dtype, const Visit& visit) {
  absl::Status status = Unimplemented("data of ", Name(dtype), " are not supported");
  WithOneOf<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(
      dtype, [&]<typename T>() { status = visit(T()); });
  return status;
}

template <typename From, typename To>
bool Holds(From value) {
  if constexpr (std::is_floating_point_v<To>) {
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
    const double least = std::is_signed_v<To> ? -limit : 0;
    return static_cast<double>(value) >= least && static_cast<double>(value) < limit &&
           value == std::trunc(value);
  } else if constexpr (std::is_same_v<From, bool>) {
    return true;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value == 0 || value == 1;
  } else {
    return std::in_range<To>(value);
  }
}

template <typename From, typename To>
absl::Status ConvertElements(const Tensor& from, Tensor& to) {
  const From* in = from.data<From>();
  To* out = to.mutable_data<To>();
  constexpr bool kScales = std::is_same_v<From, uint8_t> && std::is_floating_point_v<To>;
  for (int64_t i = 0; i < from.numel(); ++i) {
    if (!Holds<From, To>(in[i])) {
      return InvalidArgument("element ", i, " is ", static_cast<double>(in[i]), ", which is no ",
                             Name(to.dtype));
    }
    if constexpr (kScales) {
      out[i] = static_cast<To>(in[i]) / To{255};
    } else {
      out[i] = static_cast<To>(in[i]);  // NOLINT(bugprone-signed-char-misuse): a number
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ConvertTo(const Tensor& from, DType dtype) {
  if (from.dtype == dtype || dtype == DType::kUndefined) return from;
  Tensor to;
  to.shape = from.shape;
  to.dtype = dtype;
  INTERP_RETURN_IF_ERROR(to.Allocate(SystemAllocator()));
  INTERP_RETURN_IF_ERROR(VisitData(from.dtype, [&](auto in) {
    return VisitData(
        dtype, [&](auto out) { return ConvertElements<decltype(in), decltype(out)>(from, to); });
  }));
  return to;
}

absl::Status WrongSamples(const Tensor& array, const FeedSpec& feed) {
  return InvalidArgument("has samples of ", array.numel() / array.shape[0], " elements (shape ",
                         ToString(array.shape), "), expected ", ToString(feed.shape));
}

// Whether all dims of a sample that are declared are the array's.
bool HasKnownDims(const Tensor& array, const FeedSpec& feed) {
  if (array.shape.rank() != feed.shape.rank()) return false;
  for (int d = 1; d < feed.shape.rank(); ++d) {
    if (feed.shape[d] >= 0 && feed.shape[d] != array.shape[d]) return false;
  }
  return true;
}

// The dims of a sample as declared, with the one unknown dim found from the number of elements.
// Where more are unknown, the array has the dims.
absl::StatusOr<Shape> SampleShape(const Tensor& array, const FeedSpec& feed) {
  if (feed.shape.rank() == 0 || array.shape[0] == 0 || HasKnownDims(array, feed)) {
    return array.shape;
  }
  std::vector<int64_t> dims = {array.shape[0]};
  int64_t known = 1;
  int num_unknown = 0;
  int unknown = -1;
  for (int d = 1; d < feed.shape.rank(); ++d) {
    dims.push_back(feed.shape[d]);
    if (feed.shape[d] >= 0) {
      known *= feed.shape[d];
    } else {
      unknown = d;
      ++num_unknown;
    }
  }
  const int64_t elements = array.numel() / array.shape[0];
  const bool fits = num_unknown == 0   ? elements == known
                    : num_unknown == 1 ? known > 0 && elements % known == 0
                                       : false;
  if (!fits) return WrongSamples(array, feed);
  if (unknown > 0) dims[unknown] = elements / known;
  return Shape(dims);
}

// Columns of a CSV file that are named like elements of the feed, but not as ParseCsv has them.
std::string HintAtColumns(const std::string& feed, absl::Span<const absl::string_view> names) {
  const auto is_element = [&](absl::string_view name) {
    if (!absl::ConsumePrefix(&name, feed)) return false;
    absl::ConsumePrefix(&name, "_");
    return !name.empty() && absl::c_all_of(name, absl::ascii_isdigit);
  };
  if (absl::c_count_if(names, is_element) < 2) return "";
  return absl::StrCat("; a CSV file joins columns to '", feed, "' where its first line calls them ",
                      feed, "[0],", feed, "[1],...");
}

absl::StatusOr<Tensor> FitArray(const Tensor& array, const FeedSpec& feed) {
  if (array.shape.rank() == 0) return InvalidArgument("has no dimension that counts samples");
  INTERP_ASSIGN_OR_RETURN(Tensor fitted, ConvertTo(array, feed.dtype));
  INTERP_ASSIGN_OR_RETURN(fitted.shape, SampleShape(array, feed));
  return fitted;
}

}  // namespace

absl::StatusOr<Dataset> FitDataset(const std::vector<NamedTensor>& arrays,
                                   const std::vector<FeedSpec>& feeds) {
  Dataset dataset;
  std::vector<absl::string_view> names;
  for (const NamedTensor& array : arrays) names.push_back(array.first);
  for (const FeedSpec& feed : feeds) {
    const auto found = std::find(names.begin(), names.end(), feed.name);
    if (found == names.end()) {
      return NotFound("no array for feed '", feed.name, "' ", Name(feed.dtype),
                      ToString(feed.shape), ", there are: ", absl::StrJoin(names, " "),
                      HintAtColumns(feed.name, names));
    }
    absl::StatusOr<Tensor> fitted = FitArray(arrays[found - names.begin()].second, feed);
    if (!fitted.ok()) return Annotate(fitted.status(), absl::StrCat("array '", feed.name, "'"));
    const int64_t count = fitted->shape[0];
    if (!dataset.arrays.empty() && count != dataset.num_samples) {
      return InvalidArgument("array '", feed.name, "' has ", count, " samples, '",
                             dataset.arrays[0].first, "' has ", dataset.num_samples);
    }
    dataset.num_samples = count;
    dataset.arrays.emplace_back(feed.name, *std::move(fitted));
  }
  if (dataset.arrays.empty()) return InvalidArgument("the program feeds nothing");
  if (dataset.num_samples == 0) return InvalidArgument("there are no samples");
  return dataset;
}

}  // namespace interp
