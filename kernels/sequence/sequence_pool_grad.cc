// sequence_pool_grad: the gradient of the row of a sequence goes to all its rows (divided by the
// length, or its root), to its first or last row, or to the elements that MaxIndex names.
#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/sequence_pool_attrs.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMaxIndex = 1;
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;

absl::Status InferSequencePoolGrad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, SequenceOffsets(x, "X"));
  Shape shape = x.shape;
  shape[0] = SequenceCount(offsets);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", shape));
  if (ctx.attrs<SequencePoolAttrs>().pooling == Pooling::kMax) {
    const Tensor* const index = ctx.optional_input(kMaxIndex);
    if (index == nullptr || index->dtype != DType::kInt32 || !(index->shape == shape)) {
      return InvalidArgument("input 'MaxIndex' is ",
                             index == nullptr ? "missing" : DescribeType(*index),
                             ", expected int32 numbers of the shape ", ToString(shape),
                             ", which sequence_pool gives unless is_test is set");
    }
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// The rows of a sequence.
struct Rows {
  int64_t begin;
  int64_t end;
};

absl::Status CheckMaxIndex(const int32_t* index, Offsets offsets, int64_t width) {
  for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
    if (offsets[i] == offsets[i + 1]) continue;
    const auto [least, most] = std::minmax_element(index + i * width, index + (i + 1) * width);
    if (width == 0 || (*least >= offsets[i] && *most < offsets[i + 1])) continue;
    return InvalidArgument("input 'MaxIndex' has a value outside of the rows of sequence ", i);
  }
  return absl::OkStatus();
}

template <typename T>
void Spread(const T* grad, T divisor, const Rows& rows, int64_t width, T* x_grad) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    T* const out = x_grad + r * width;
    for (int64_t j = 0; j < width; ++j) out[j] = grad[j] / divisor;
  }
}

// The gradient of a sequence that is not empty.
template <typename T>
void Unpool(Pooling pooling, const T* grad, const int32_t* index, const Rows& rows, int64_t width,
            T* x_grad) {
  const T count = static_cast<T>(rows.end - rows.begin);
  switch (pooling) {
    case Pooling::kSum:
      return Spread(grad, T{1}, rows, width, x_grad);
    case Pooling::kAverage:
      return Spread(grad, count, rows, width, x_grad);
    case Pooling::kSqrt:
      return Spread(grad, std::sqrt(count), rows, width, x_grad);
    default:
      break;
  }
  std::fill_n(x_grad + rows.begin * width, (rows.end - rows.begin) * width, T{0});
  if (pooling == Pooling::kMax) {
    for (int64_t j = 0; j < width; ++j) x_grad[index[j] * width + j] = grad[j];
  } else {
    const int64_t row = pooling == Pooling::kFirst ? rows.begin : rows.end - 1;
    std::copy_n(grad, width, x_grad + row * width);
  }
}

template <typename T>
absl::Status SequencePoolGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  const Pooling pooling = ctx.attrs<SequencePoolAttrs>().pooling;
  const Offsets offsets = ctx.input(kX).lod.back();
  const int64_t count = SequenceCount(offsets);
  const int64_t width = RowSize(*x_grad);
  const int32_t* index = nullptr;
  if (pooling == Pooling::kMax) {
    index = ctx.input(kMaxIndex).data<int32_t>();
    INTERP_RETURN_IF_ERROR(CheckMaxIndex(index, offsets, width));
  }
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const out = x_grad->mutable_data<T>();
  const int64_t grain = GrainForShare(x_grad->numel(), count);
  ParallelFor(ctx.num_threads(), count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      if (offsets[i] == offsets[i + 1]) continue;
      Unpool(pooling, grad + i * width, index == nullptr ? nullptr : index + i * width,
             {offsets[i], offsets[i + 1]}, width, out);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_pool_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"MaxIndex", kOptional | kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}},
    .parse = ParseAttrs<SequencePoolAttrs, ReadSequencePoolAttrs>,
    .infer = InferSequencePoolGrad,
    .kernels = {{DType::kFloat32, SequencePoolGrad<float>},
                {DType::kFloat64, SequencePoolGrad<double>}},
});

}  // namespace
}  // namespace interp
