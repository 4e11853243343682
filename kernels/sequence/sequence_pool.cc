// sequence_pool: one row of Out for each sequence of X: per column the sum, the average, the sum
// divided by the root of the length, the largest, the last or the first element. An empty sequence
// gives `pad_value`. MaxIndex has the row of X where each largest element was found first, -1 for
// an empty sequence; tests leave it empty.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/op_def.h"
#include "kernels/product/gemm.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/sequence_pool_attrs.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kMaxIndex = 1;

void InferDTypes(DTypeContext& ctx) { ctx.Set(kMaxIndex, DType::kInt32); }

absl::Status InferSequencePool(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, SequenceOffsets(x, "X"));
  Shape shape = x.shape;
  shape[0] = SequenceCount(offsets);
  Tensor& out = ctx.output(kOut);
  out.shape = shape;
  out.lod.assign(x.lod.begin(), x.lod.end() - 1);
  if (!ctx.attrs<SequencePoolAttrs>().with_index) {
    ctx.SetShape(kMaxIndex, {0});
  } else if (ctx.has_output(kMaxIndex)) {
    if (x.shape[0] > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("input 'X' has ", x.shape[0], " rows, too many for int32 'MaxIndex'");
    }
    ctx.SetShape(kMaxIndex, shape);
  }
  return absl::OkStatus();
}

template <typename T, int kLanes>
struct Lanes {
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));
  // For loads and stores of any alignment; may alias everything.
  typedef T Unaligned
      __attribute__((vector_size(kLanes * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <typename T>
struct Lanes<T, 1> {
  using Type = T;
  using Unaligned = T;
};

// A matrix of one row or more.
template <typename T>
struct Matrix {
  const T* values;
  int64_t rows;
  int64_t width;
};

// Folds kVectors * kLanes columns of `x`: `step` joins what is folded already and an element,
// `finish` makes the result.
template <int kLanes, int kVectors, typename T, typename Step, typename Finish>
void FoldVectors(const Matrix<T>& x, const Step& step, const Finish& finish, T* out) {
  using V = typename Lanes<T, kLanes>::Type;
  using U = typename Lanes<T, kLanes>::Unaligned;
  V folded[kVectors];
  const T* row = x.values;
  for (int v = 0; v < kVectors; ++v) folded[v] = *reinterpret_cast<const U*>(row + v * kLanes);
  for (int64_t i = 1; i < x.rows; ++i) {
    row += x.width;
    for (int v = 0; v < kVectors; ++v) {
      const V value = *reinterpret_cast<const U*>(row + v * kLanes);
      folded[v] = step(folded[v], value);
    }
  }
  for (int v = 0; v < kVectors; ++v) *reinterpret_cast<U*>(out + v * kLanes) = finish(folded[v]);
}

// Folds the last `count` columns, fewer than 2 * kLanes: rows of recommenders are often narrower
// than a vector.
template <int kLanes, typename T, typename Step, typename Finish>
void FoldRest(Matrix<T> x, int64_t count, const Step& step, const Finish& finish, T* out) {
  if (count >= kLanes) {
    FoldVectors<kLanes, 1>(x, step, finish, out);
    x.values += kLanes;
    out += kLanes;
    count -= kLanes;
  }
  if constexpr (kLanes > 1) {
    if (count > 0) FoldRest<kLanes / 2>(x, count, step, finish, out);
  }
}

template <typename T, typename Step, typename Finish>
void FoldColumns(const Matrix<T>& x, const Step& step, const Finish& finish, T* out) {
  constexpr int kWidest = VectorOf<T>::kLanes;
  constexpr int kVectors = 4;  // hides the latency of a step
  int64_t j = 0;
  const auto from = [&](int64_t column) { return Matrix<T>{x.values + column, x.rows, x.width}; };
  for (; j + kVectors * kWidest <= x.width; j += kVectors * kWidest) {
    FoldVectors<kWidest, kVectors>(from(j), step, finish, out + j);
  }
  for (; j + kWidest <= x.width; j += kWidest) {
    FoldVectors<kWidest, 1>(from(j), step, finish, out + j);
  }
  FoldRest<kWidest / 2>(from(j), x.width - j, step, finish, out + j);
}

template <typename T>
void SumColumns(const Matrix<T>& x, Pooling pooling, T* out) {
  const auto add = [](auto sum, auto value) { return sum + value; };
  if (pooling == Pooling::kSum) {
    FoldColumns(
        x, add, [](auto sum) { return sum; }, out);
    return;
  }
  const T count = static_cast<T>(x.rows);
  const T divisor = pooling == Pooling::kSqrt ? std::sqrt(count) : count;
  FoldColumns(
      x, add, [divisor](auto sum) { return sum / divisor; }, out);
}

template <typename T>
void MaxColumns(const Matrix<T>& x, T* out) {
  const auto larger = [](auto a, auto b) { return b > a ? b : a; };
  FoldColumns(
      x, larger, [](auto max) { return max; }, out);
}

// The largest element of each column and its row, counted from `first_row`.
template <typename T>
void MaxColumnsWithIndex(const Matrix<T>& x, int64_t first_row, T* out, int32_t* index) {
  std::copy_n(x.values, x.width, out);
  std::fill_n(index, x.width, static_cast<int32_t>(first_row));
  for (int64_t i = 1; i < x.rows; ++i) {
    const T* const row = x.values + i * x.width;
    const auto number = static_cast<int32_t>(first_row + i);
    for (int64_t j = 0; j < x.width; ++j) {
      const bool larger = row[j] > out[j];
      out[j] = larger ? row[j] : out[j];
      index[j] = larger ? number : index[j];
    }
  }
}

// Pools one sequence of X, which starts at `first_row`.
template <typename T>
void PoolSequence(Pooling pooling, const Matrix<T>& x, int64_t first_row, T* out, int32_t* index) {
  if (index != nullptr) {
    MaxColumnsWithIndex(x, first_row, out, index);
  } else if (pooling == Pooling::kMax) {
    MaxColumns(x, out);
  } else if (pooling == Pooling::kFirst) {
    std::copy_n(x.values, x.width, out);
  } else if (pooling == Pooling::kLast) {
    std::copy_n(x.values + (x.rows - 1) * x.width, x.width, out);
  } else {
    SumColumns(x, pooling, out);
  }
}

template <typename T>
absl::Status SequencePool(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SequencePoolAttrs>();
  const Tensor& x_tensor = ctx.input(kX);
  const Offsets offsets = x_tensor.lod.back();
  const int64_t count = SequenceCount(offsets);
  const int64_t width = RowSize(x_tensor);
  const T* const x = x_tensor.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  Tensor* const index_tensor = attrs.with_index ? ctx.optional_output(kMaxIndex) : nullptr;
  int32_t* const index = DataOrNull<int32_t>(index_tensor);
  const int64_t grain = GrainForShare(x_tensor.numel(), count);
  ParallelFor(ctx.num_threads(), count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      T* const row = out + i * width;
      int32_t* const row_index = index == nullptr ? nullptr : index + i * width;
      const Matrix<T> rows = {x + offsets[i] * width, offsets[i + 1] - offsets[i], width};
      if (rows.rows > 0) {
        PoolSequence(attrs.pooling, rows, offsets[i], row, row_index);
        continue;
      }
      std::fill_n(row, width, static_cast<T>(attrs.pad_value));
      if (row_index != nullptr) std::fill_n(row_index, width, -1);
    }
  });
  return absl::OkStatus();
}

// MaxIndex goes to the gradient of the largest elements alone.
absl::Status MakeGradient(GradientMaker& maker) {
  GradientDef gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}};
  const Attr* const attr = maker.op().FindAttr("pooltype");
  const auto* const name = attr == nullptr ? nullptr : std::get_if<std::string>(&attr->value);
  if (name != nullptr && *name == "MAX") {
    INTERP_RETURN_IF_ERROR(CheckInTraining(maker));
    gradient.inputs.push_back("MaxIndex");
  }
  maker.AddByTable(gradient);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_pool",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"MaxIndex", kOptional}},
    .parse = ParseAttrs<SequencePoolAttrs, ReadSequencePoolAttrs>,
    .infer_dtype = InferDTypes,
    .infer = InferSequencePool,
    .kernels = {{DType::kFloat32, SequencePool<float>}, {DType::kFloat64, SequencePool<double>}},
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
