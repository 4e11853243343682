// similarity_focus: a mask over X, of rank 4. For each of `indexes`, the slice of X at it along
// `axis` is a matrix for each first index. Its largest element is taken, then the largest of those
// that share neither row nor column with one taken, and so on; Out is 1 at the places taken, all
// along `axis`, and 0 elsewhere. Of equal elements the first is taken.
#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/op_def.h"
#include "kernels/util/fill_zero.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct Attrs {
  int axis = 1;
  std::vector<int64_t> indexes;
};

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs = {reader.Int("axis", 1), reader.Ints("indexes")};
  if (attrs.axis < 1 || attrs.axis > 3) {
    reader.Fail(absl::StrCat("attribute 'axis' is ", attrs.axis, ", expected 1, 2 or 3"));
  }
  if (attrs.indexes.empty()) reader.Fail("attribute 'indexes' is empty");
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected rank 4");
  }
  for (const int64_t index : attrs.indexes) {
    if (index >= 0 && index < x[attrs.axis]) continue;
    return InvalidArgument("'indexes' are [", absl::StrJoin(attrs.indexes, ","),
                           "], expected 0 to ", x[attrs.axis] - 1);
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// A matrix in the memory of X.
struct Slice {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;

  int64_t size() const { return rows * columns; }
  int64_t at(int64_t i) const { return i / columns * row_stride + i % columns * column_stride; }
};

// Calls take(place) for the elements that are taken.
template <typename T, typename Take>
void TakeLargest(const Slice& slice, const T* x, const Take& take) {
  std::vector<int64_t> order(static_cast<size_t>(slice.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const T first = x[slice.at(a)];
    const T second = x[slice.at(b)];
    if (first != first) return second == second;  // NaN is the largest
    return first > second;
  });
  std::vector<bool> rows(static_cast<size_t>(slice.rows));
  std::vector<bool> columns(static_cast<size_t>(slice.columns));
  for (const int64_t i : order) {
    if (rows[i / slice.columns] || columns[i % slice.columns]) continue;
    rows[i / slice.columns] = columns[i % slice.columns] = true;
    take(slice.at(i));
  }
}

template <typename T>
absl::Status SimilarityFocus(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Shape& shape = ctx.input(kX).shape;
  FillZero(ctx.num_threads(), ctx.output(kOut));
  if (shape.numel() == 0) return absl::OkStatus();
  const int64_t strides[] = {shape.numel(1, 4), shape.numel(2, 4), shape[3], 1};
  const int row = attrs.axis == 1 ? 2 : 1;
  const int column = attrs.axis == 3 ? 2 : 3;
  const Slice slice = {shape[row], shape[column], strides[row], strides[column]};
  const int64_t along = strides[attrs.axis];
  for (int64_t n = 0; n < shape[0]; ++n) {
    const T* const x = ctx.input(kX).data<T>() + n * strides[0];
    T* const out = ctx.output(kOut).mutable_data<T>() + n * strides[0];
    for (const int64_t index : attrs.indexes) {
      TakeLargest(slice, x + index * along, [&](int64_t place) {
        for (int64_t i = 0; i < shape[attrs.axis]; ++i) out[place + i * along] = T{1};
      });
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "similarity_focus",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, SimilarityFocus<float>},
                {DType::kFloat64, SimilarityFocus<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
