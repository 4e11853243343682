// segment_pool: row s of Out = the sum, mean, largest or smallest of the rows of X whose
// SegmentIds, which do not descend, is s; 0 where there are none. SummedIds: of the mean, the
// number of rows. segment_pool_grad: rows get the gradient of their segment, by a mean its part; of
// an extreme those elements that equal it.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/graph/messages.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/indices.h"

namespace interp::graph {
namespace {

constexpr int kX = 0;
constexpr int kIds = 1;
constexpr int kOut = 0;
constexpr int kSummedIds = 1;

struct PoolAttrs {
  Reduce pool = Reduce::kSum;
};

PoolAttrs ReadPoolAttrs(AttrReader& reader) { return {ReadReduce(reader, "pooltype")}; }

// Error unless there is one id for each row, and they ascend from 0 or more.
absl::Status CheckIds(const Tensor& x, const Tensor& ids) {
  if (x.shape.rank() == 0 || ids.shape != Shape{x.shape[0]}) {
    return InvalidArgument("'SegmentIds' is ", DescribeType(ids), " for 'X' of shape ",
                           ToString(x.shape), ", expected one id for each row");
  }
  return WithIndices(ids, "SegmentIds", [&](const auto* values) -> absl::Status {
    for (int64_t i = 0; i < ids.numel(); ++i) {
      if (values[i] < (i == 0 ? 0 : values[i - 1])) {
        return InvalidArgument("'SegmentIds' has the value ", values[i], " at position ", i,
                               ", expected 0 or more, and no less than the one before");
      }
    }
    return absl::OkStatus();
  });
}

// Calls body(segment, first row, last row) for every segment that has rows.
template <typename Index, typename Body>
void ForEachSegment(const Index* ids, int64_t rows, const Body& body) {
  for (int64_t begin = 0; begin < rows;) {
    int64_t end = begin + 1;
    while (end < rows && ids[end] == ids[begin]) ++end;
    body(static_cast<int64_t>(ids[begin]), begin, end);
    begin = end;
  }
}

template <typename T, typename Index>
void PoolRows(Reduce pool, int64_t width, const Tensor& x, const Index* ids, Tensor& out,
              float* counts) {
  const T* const from = x.data<T>();
  T* const to = out.mutable_data<T>();
  ForEachSegment(ids, x.shape[0], [&](int64_t segment, int64_t begin, int64_t end) {
    T* const row = to + segment * width;
    std::copy_n(from + begin * width, width, row);
    for (int64_t r = begin + 1; r < end; ++r) {
      for (int64_t c = 0; c < width; ++c) row[c] = Joined(pool, row[c], from[r * width + c]);
    }
    if (pool != Reduce::kMean) return;
    for (int64_t c = 0; c < width; ++c) row[c] /= static_cast<T>(end - begin);
    if (counts != nullptr) counts[segment] = static_cast<float>(end - begin);
  });
}

// The last id says how many segments there are.
template <typename T>
absl::Status SegmentPool(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& ids = ctx.input(kIds);
  const Reduce pool = ctx.attrs<PoolAttrs>().pool;
  INTERP_RETURN_IF_ERROR(CheckIds(x, ids));
  return WithIndices(ids, "SegmentIds", [&](const auto* values) -> absl::Status {
    const int64_t rows = x.shape[0];
    const int64_t segments = rows == 0 ? 0 : static_cast<int64_t>(values[rows - 1]) + 1;
    Tensor& out = ctx.output(kOut);
    out.shape = x.shape;
    out.shape[0] = segments;
    out.lod.clear();
    INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
    FillZero(ctx.num_threads(), out);
    float* counts = nullptr;
    if (Tensor* summed = ctx.optional_output(kSummedIds)) {
      summed->shape = {pool == Reduce::kMean ? segments : 0, 1};
      summed->lod.clear();
      INTERP_RETURN_IF_ERROR(ctx.Allocate(*summed));
      FillZero(ctx.num_threads(), *summed);
      counts = summed->mutable_data<float>();
    }
    PoolRows<T>(pool, WidthOf(x.shape), x, values, out, counts);
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "segment_pool",
    .inputs = {{"X"}, {"SegmentIds", kAnyDType}},
    .outputs = {{"Out"}, {"SummedIds", kOptional}},
    .parse = ParseAttrs<PoolAttrs, ReadPoolAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kSummedIds, DType::kFloat32); },
    .kernels = {{DType::kFloat32, SegmentPool<float>},
                {DType::kFloat64, SegmentPool<double>},
                {DType::kInt32, SegmentPool<int32_t>},
                {DType::kInt64, SegmentPool<int64_t>}},
    .dynamic_outputs = true,
    .gradient = {.inputs = {"X", "SegmentIds", "Out", "SummedIds", "Out@GRAD"},
                 .outputs = {"X@GRAD"}},
});

constexpr int kGradOut = 2;
constexpr int kOutGrad = 4;
constexpr int kXGrad = 0;

absl::Status InferGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& out = ctx.input(kGradOut).shape;
  const Shape& grad = ctx.input(kOutGrad).shape;
  if (x.rank() == 0 || grad.rank() != x.rank() || WidthOf(grad) != WidthOf(x) || out != grad) {
    return InvalidArgument("'Out' and 'Out@GRAD' have shapes ", ToString(out), " and ",
                           ToString(grad), ", expected rows like those of 'X' ", ToString(x));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T, typename Index>
void SpreadRows(KernelContext& ctx, const Index* ids) {
  const Reduce pool = ctx.attrs<PoolAttrs>().pool;
  const Tensor& x = ctx.input(kX);
  const int64_t width = WidthOf(x.shape);
  const T* const values = x.data<T>();
  const T* const outs = ctx.input(kGradOut).data<T>();
  const T* const grads = ctx.input(kOutGrad).data<T>();
  T* const to = ctx.output(kXGrad).mutable_data<T>();
  ForEachSegment(ids, x.shape[0], [&](int64_t segment, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        const T grad = grads[segment * width + c];
        T& out = to[r * width + c];
        if (pool == Reduce::kSum) {
          out = grad;
        } else if (pool == Reduce::kMean) {
          out = grad / static_cast<T>(end - begin);
        } else {
          out = values[r * width + c] == outs[segment * width + c] ? grad : T{0};
        }
      }
    }
  });
}

template <typename T>
absl::Status SegmentPoolGrad(KernelContext& ctx) {
  const Tensor& ids = ctx.input(kIds);
  INTERP_RETURN_IF_ERROR(CheckIds(ctx.input(kX), ids));
  return WithIndices(ids, "SegmentIds", [&](const auto* values) -> absl::Status {
    const int64_t rows = ids.numel();
    const int64_t segments = ctx.input(kOutGrad).shape[0];
    if (rows > 0 && values[rows - 1] >= segments) {
      return InvalidArgument("'SegmentIds' ends with ", values[rows - 1], ", but there are ",
                             segments, " segments");
    }
    SpreadRows<T>(ctx, values);
    return absl::OkStatus();
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "segment_pool_grad",
    .inputs = {{"X"},
               {"SegmentIds", kAnyDType},
               {"Out"},
               {"SummedIds", kOptional | kAnyDType | kNoNeedBuffer},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<PoolAttrs, ReadPoolAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, SegmentPoolGrad<float>},
                {DType::kFloat64, SegmentPoolGrad<double>}},
});

}  // namespace
}  // namespace interp::graph
