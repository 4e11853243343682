#include <algorithm>

#include "kernels/tensor/index_put.h"
#include "kernels/util/all_present.h"
#include "kernels/util/indices.h"

namespace interp::index_put {
namespace {

// Coordinates along one dimension of X.
struct Coordinates {
  Shape shape;
  std::vector<int64_t> values;
};

// The coordinates of the true elements of a mask, one list per dimension of it.
absl::Status AddMask(const Tensor& mask, const Shape& x, std::vector<Coordinates>& lists) {
  const int first = static_cast<int>(lists.size());
  const int rank = mask.shape.rank();
  if (rank == 0) return InvalidArgument("a mask of 'indices' has no dims");
  for (int d = 0; d < rank; ++d) {
    if (first + d < x.rank() && mask.shape[d] == x[first + d]) continue;
    return InvalidArgument("a mask of 'indices' has shape ", ToString(mask.shape),
                           ", expected the dimensions of 'x' ", ToString(x), " from ", first);
  }
  const uint8_t* const chosen = static_cast<const uint8_t*>(mask.raw_data());
  lists.resize(lists.size() + rank);
  const int64_t count = mask.numel();
  for (int64_t i = 0; i < count; ++i) {
    if (chosen[i] == 0) continue;
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      lists[first + d].values.push_back(rest % mask.shape[d]);
      rest /= mask.shape[d];
    }
  }
  for (int d = 0; d < rank; ++d) {
    lists[first + d].shape = {static_cast<int64_t>(lists[first + d].values.size())};
  }
  return absl::OkStatus();
}

absl::Status AddIndices(const Tensor& index, const Shape& x, std::vector<Coordinates>& lists) {
  const int d = static_cast<int>(lists.size());
  if (d >= x.rank()) {
    return InvalidArgument("'indices' name more dimensions than 'x' ", ToString(x), " has");
  }
  return WithIndices(index, "indices", [&](const auto* values) -> absl::Status {
    Coordinates list = {index.shape, {values, values + index.numel()}};
    for (int64_t& value : list.values) {
      if (value < -x[d] || value >= x[d]) {
        return InvalidArgument("'indices' has the value ", value, " for dimension ", d, " of 'x' ",
                               ToString(x));
      }
      if (value < 0) value += x[d];
    }
    lists.push_back(std::move(list));
    return absl::OkStatus();
  });
}

absl::StatusOr<Shape> CommonShape(const std::vector<Coordinates>& lists) {
  int rank = 0;
  for (const Coordinates& list : lists) rank = std::max(rank, list.shape.rank());
  Shape shape;
  shape.resize(rank, 1);
  for (const Coordinates& list : lists) {
    for (int i = 1; i <= list.shape.rank(); ++i) {
      int64_t& common = shape[rank - i];
      const int64_t length = list.shape.back(i);
      if (common != length && common != 1 && length != 1) {
        return InvalidArgument("'indices' of shapes ", ToString(lists[0].shape), " and ",
                               ToString(list.shape), " do not broadcast");
      }
      if (common == 1) common = length;
    }
  }
  return shape;
}

}  // namespace

absl::StatusOr<Strides> BroadcastStridesTo(const Shape& places, const Shape& value) {
  Strides steps = {};
  const Strides own = StridesOf(value, Layout::kPlain);
  const int added = places.rank() - value.rank();
  bool fits = added >= 0;
  for (int i = 0; fits && i < value.rank(); ++i) {
    fits = value[i] == 1 || value[i] == places[added + i];
    if (value[i] != 1) steps[added + i] = own[i];
  }
  if (fits) return steps;
  return InvalidArgument("'value' has shape ", ToString(value),
                         ", expected one that broadcasts to ", ToString(places));
}

absl::StatusOr<Places> ResolvePlaces(absl::Span<const Tensor* const> indices, const Shape& x) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(indices, "indices"));
  std::vector<Coordinates> lists;
  for (const Tensor* index : indices) {
    INTERP_RETURN_IF_ERROR(index->dtype == DType::kBool ? AddMask(*index, x, lists)
                                                        : AddIndices(*index, x, lists));
  }
  Places places;
  INTERP_ASSIGN_OR_RETURN(places.shape, CommonShape(lists));
  constexpr int64_t kMostPlaces = 1 << 28;  // 2 GB of them
  if (places.shape.CheckedNumel().value_or(kMostPlaces + 1) > kMostPlaces) {
    return ResourceExhausted("'indices' broadcast to ", ToString(places.shape), ", at most ",
                             kMostPlaces, " places are possible");
  }
  places.slices.assign(static_cast<size_t>(places.shape.numel()), 0);
  const int depth = static_cast<int>(lists.size());
  for (int d = 0; d < depth; ++d) {
    INTERP_ASSIGN_OR_RETURN(const Strides steps, BroadcastStridesTo(places.shape, lists[d].shape));
    ForEachElement(places.shape, steps, [&](int64_t n, int64_t from) {
      places.slices[n] = places.slices[n] * x[d] + lists[d].values[from];
    });
  }
  places.slice_size = x.numel(depth, x.rank());
  if (places.shape.rank() + x.rank() - depth > kMaxRank) {
    return InvalidArgument("'indices' into 'x' ", ToString(x), " give more than ", kMaxRank,
                           " dims");
  }
  for (int d = depth; d < x.rank(); ++d) places.shape.push_back(x[d]);
  if (!places.shape.CheckedNumel().has_value()) {
    return InvalidArgument("what 'indices' name, ", ToString(places.shape), ", is too large");
  }
  return places;
}

}  // namespace interp::index_put
