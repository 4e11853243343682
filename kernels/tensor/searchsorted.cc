// searchsorted: Out = where each of Values goes into the sorted row of SortedSequence that stands
// at its place: the number of elements below it, or with `right` of those not above it. A vector
// serves values of any shape. Like Paddle's, infinities of either sign
// and NaN go behind all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kSequence = 0;
constexpr int kValues = 1;
constexpr int kOut = 0;

struct SearchAttrs {
  bool int32 = false;
  bool right = false;
};

SearchAttrs ReadSearchAttrs(AttrReader& reader) {
  return {reader.Bool("out_int32", false), reader.Bool("right", false)};
}

absl::Status InferSearch(InferContext& ctx) {
  const Shape& sequence = ctx.input(kSequence).shape;
  const Shape& values = ctx.input(kValues).shape;
  bool fits = sequence.rank() == 1 || (sequence.rank() > 1 && values.rank() == sequence.rank());
  for (int i = 0; fits && sequence.rank() > 1 && i < sequence.rank() - 1; ++i) {
    fits = sequence[i] == values[i];
  }
  if (!fits) {
    return InvalidArgument("'SortedSequence' has shape ", ToString(sequence), " and 'Values' ",
                           ToString(values), ", expected as many rows, or one row for all");
  }
  if (ctx.attrs<SearchAttrs>().int32 && sequence.back() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("positions up to ", sequence.back(), " do not fit into int32");
  }
  ctx.ShareShape(kValues, kOut);
  return absl::OkStatus();
}

template <typename T>
bool IsFinite(T value) {
  return std::is_integral_v<T> || std::abs(value) <= std::numeric_limits<T>::max();
}

template <typename T, typename I>
void SearchAll(KernelContext& ctx) {
  const Shape& shape = ctx.input(kSequence).shape;
  const T* const sequence = ctx.input(kSequence).data<T>();
  const T* const values = ctx.input(kValues).data<T>();
  I* const out = ctx.output(kOut).mutable_data<I>();
  const bool right = ctx.attrs<SearchAttrs>().right;
  const int64_t length = shape.back();
  const int64_t per_row = shape.rank() == 1 ? 0 : ctx.input(kValues).shape.back();
  ParallelFor(ctx.num_threads(), ctx.input(kValues).numel(), GrainFor(16),
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T* const row = sequence + (per_row == 0 ? 0 : i / per_row * length);
                  const T value = values[i];
                  const T* at = row + length;
                  if (IsFinite(value)) {
                    at = right ? std::upper_bound(row, row + length, value)
                               : std::lower_bound(row, row + length, value);
                  }
                  out[i] = static_cast<I>(at - row);
                }
              });
}

template <typename T>
absl::Status SearchSorted(KernelContext& ctx) {
  if (ctx.attrs<SearchAttrs>().int32) {
    SearchAll<T, int32_t>(ctx);
  } else {
    SearchAll<T, int64_t>(ctx);
  }
  return absl::OkStatus();
}

// That of both, as numbers are compared; where they differ, one that holds either.
DType SearchDType(const DTypeContext& ctx) {
  const DType sequence = ctx.input(kSequence);
  const DType values = ctx.input(kValues);
  const auto integral = [](DType dtype) {
    return dtype == DType::kInt32 || dtype == DType::kInt64;
  };
  if (sequence == values || values == DType::kUndefined) return sequence;
  if (sequence == DType::kUndefined) return values;
  return integral(sequence) && integral(values) ? DType::kInt64 : DType::kFloat64;
}

INTERP_REGISTER_OP(OpDef{
    .type = "searchsorted",
    .inputs = {{"SortedSequence"}, {"Values"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SearchAttrs, ReadSearchAttrs>,
    .kernel_dtype = SearchDType,
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kOut, ctx.attrs<SearchAttrs>().int32 ? DType::kInt32 : DType::kInt64);
        },
    .infer = InferSearch,
    .kernels = {{DType::kFloat32, SearchSorted<float>},
                {DType::kFloat64, SearchSorted<double>},
                {DType::kInt32, SearchSorted<int32_t>},
                {DType::kInt64, SearchSorted<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
