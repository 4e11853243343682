// nanmedian: Out = the median of the elements of X along `axis` that are no NaN, NaN where all are;
// of an even number the mean of the middle two. MedianIndex: for each the positions of those two
// among the elements, the same twice for an odd number, -1 without any. nanmedian_grad: the
// gradient goes to the middle element, or half of it to either.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op_def.h"
#include "kernels/math/sorting.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/loops.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kIndex = 1;

struct MedianAttrs {
  IntList axes;  // empty: all
  bool keep_dim = true;
};

MedianAttrs ReadMedianAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "axis"), reader.Bool("keepdim", true)};
}

// The walks over the medians, and from one over its elements.
struct Groups {
  LoopNest medians, elements;
  Shape out;
  int64_t count = 1;
  int64_t size = 1;
};

absl::StatusOr<Groups> GroupsOf(const OpContext& ctx) {
  const MedianAttrs& attrs = ctx.attrs<MedianAttrs>();
  const Shape& x = ctx.input(kX).shape;
  std::vector<bool> reduced(static_cast<size_t>(x.rank()), attrs.axes.empty());
  for (const int64_t given : attrs.axes) {
    if (x.rank() == 0 && (given == 0 || given == -1)) continue;  // as Paddle takes it
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, x.rank()));
    reduced[axis] = true;
  }
  Groups groups;
  for (int i = 0; i < x.rank(); ++i) {
    (reduced[i] ? groups.size : groups.count) *= x[i];
    (reduced[i] ? groups.elements : groups.medians).Add({x[i], x.numel(i + 1, x.rank()), 0});
    if (!reduced[i]) groups.out.push_back(x[i]);
    if (reduced[i] && attrs.keep_dim) groups.out.push_back(1);
  }
  return groups;
}

absl::Status InferMedian(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Groups groups, GroupsOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const int64_t indices, CheckedProduct(groups.count, 2));
  ctx.SetShape(kOut, groups.out);
  ctx.SetShape(kIndex, {indices});
  return absl::OkStatus();
}

// Calls body(position, offset from the first) for the elements of a median.
template <typename Body>
void ForEachElement(const Groups& groups, const Body& body) {
  LoopCursor cursor(groups.elements);
  for (int64_t i = 0; i < groups.size; ++i, cursor.Next()) body(i, cursor.x());
}

// How many elements of each median are no NaN.
template <typename T>
std::vector<int64_t> CountNumbers(const Groups& groups, const T* x) {
  std::vector<int64_t> counts(static_cast<size_t>(groups.count));
  LoopCursor cursor(groups.medians);
  for (int64_t& count : counts) {
    const T* const from = x + cursor.x();
    ForEachElement(groups,
                   [&](int64_t, int64_t offset) { count += from[offset] == from[offset] ? 1 : 0; });
    cursor.Next();
  }
  return counts;
}

// How many of the smallest elements Paddle's kernel selects, of every median as many. That decides
// which of equal ones MedianIndex names.
int64_t SelectedCount(const Groups& groups, const std::vector<int64_t>& numbers) {
  const auto [fewest, most] = std::minmax_element(numbers.begin(), numbers.end());
  return *fewest == groups.size ? groups.size / 2 + 1 : *most;
}

template <typename T>
absl::Status Median(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Groups groups, GroupsOf(ctx));
  if (groups.count == 0) return absl::OkStatus();
  const T* const x = ctx.input(kX).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  Tensor* const index = ctx.optional_output(kIndex);
  int64_t* const positions = DataOrNull<int64_t>(index);
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(groups.size) * sizeof(Ranked<T>)));
  Ranked<T>* const elements = work.data<Ranked<T>>();
  const std::vector<int64_t> numbers = CountNumbers(groups, x);
  const int64_t selected = SelectedCount(groups, numbers);
  LoopCursor cursor(groups.medians);
  for (int64_t m = 0; m < groups.count; ++m, cursor.Next()) {
    const T* const from = x + cursor.x();
    const int64_t n = numbers[m];
    Ranked<T> low = {T{0}, -1};
    Ranked<T> high = low;
    if (n > 0) {
      ForEachElement(groups, [&](int64_t i, int64_t offset) { elements[i] = {from[offset], i}; });
      SelectFirst<false>(elements, elements + groups.size, selected, /*sorted=*/true);
      low = elements[(n - 1) / 2];
      high = elements[n / 2];
    }
    out[m] = static_cast<T>((static_cast<double>(low.value) + static_cast<double>(high.value)) / 2);
    if (n == 0) out[m] = std::numeric_limits<T>::quiet_NaN();
    if (positions == nullptr) continue;
    positions[2 * m] = low.index;
    positions[2 * m + 1] = high.index;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "nanmedian",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"MedianIndex", kOptional}},
    .parse = ParseAttrs<MedianAttrs, ReadMedianAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kIndex, DType::kInt64); },
    .infer = InferMedian,
    .kernels = {{DType::kFloat32, Median<float>},
                {DType::kFloat64, Median<double>},
                {DType::kInt32, Median<int32_t>},
                {DType::kInt64, Median<int64_t>}},
    .gradient = {.inputs = {"X", "MedianIndex", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kMedianIndex = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

// Paddle's MedianIndex is longer than what it holds.
absl::Status InferMedianGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Groups groups, GroupsOf(ctx));
  const Tensor& index = ctx.input(kMedianIndex);
  if (index.dtype != DType::kInt64 || index.numel() / 2 < groups.count) {
    return InvalidArgument("input 'MedianIndex' is ", DescribeType(index),
                           ", expected at least two int64 for each of ", groups.count, " medians");
  }
  if (ctx.input(kOutGrad).numel() != groups.count) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(ctx.input(kOutGrad).shape),
                           ", expected ", ToString(groups.out));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status MedianGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Groups groups, GroupsOf(ctx));
  FillZero(ctx.num_threads(), ctx.output(kXGrad));
  if (groups.count == 0) return absl::OkStatus();
  const int64_t* const positions = ctx.input(kMedianIndex).data<int64_t>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = ctx.output(kXGrad).mutable_data<T>();
  LoopCursor cursor(groups.medians);
  for (int64_t m = 0; m < groups.count; ++m, cursor.Next()) {
    for (const int64_t position : {positions[2 * m], positions[2 * m + 1]}) {
      if (position >= groups.size) {
        return InvalidArgument("'MedianIndex' has the value ", position, ", expected at most ",
                               groups.size - 1);
      }
      if (position < 0) continue;
      const int64_t offset = LoopCursor(groups.elements, position).x();
      out[cursor.x() + offset] += grad[m] / T{2};
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "nanmedian_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"MedianIndex", kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<MedianAttrs, ReadMedianAttrs>,
    .infer = InferMedianGrad,
    .kernels = {{DType::kFloat32, MedianGrad<float>}, {DType::kFloat64, MedianGrad<double>}},
});

}  // namespace
}  // namespace interp
