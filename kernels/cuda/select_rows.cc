// Rows of where, one_hot, sequence_mask, tril_triu and of the gradients of expand and tile.
#include <cstring>
#include <vector>

#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/select.h"
#include "kernels/sequence/count_below.h"
#include "kernels/tensor/tril_triu.h"
#include "kernels/util/scalar_bytes.h"

namespace interp::cuda {
namespace {

int ElementBytes(const Tensor& tensor) { return static_cast<int>(SizeOf(tensor.dtype)); }

// Condition, X, Y -> Out.
absl::Status WhereOf(KernelContext& ctx) {
  Tensor& out = ctx.output(/*slot=*/0);
  return Where(ElementBytes(out), ctx.input(/*slot=*/0).data<bool>(),
               ctx.input(/*slot=*/1).raw_data(), ctx.input(/*slot=*/2).raw_data(),
               out.mutable_raw_data(), out.numel(), StreamOf(ctx));
}

// Out@GRAD, Condition -> X@GRAD, Y@GRAD.
absl::Status WhereGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(/*slot=*/0);
  const bool* const condition = ctx.input(/*slot=*/1).data<bool>();
  const int bytes = ElementBytes(grad);
  if (Tensor* const x_grad = ctx.optional_output(/*slot=*/0)) {
    INTERP_RETURN_IF_ERROR(Where(bytes, condition, grad.raw_data(), nullptr,
                                 x_grad->mutable_raw_data(), grad.numel(), StreamOf(ctx)));
  }
  Tensor* const y_grad = ctx.optional_output(/*slot=*/1);
  if (y_grad == nullptr) return absl::OkStatus();
  return Where(bytes, condition, nullptr, grad.raw_data(), y_grad->mutable_raw_data(), grad.numel(),
               StreamOf(ctx));
}

// The number 1, in the low bytes.
uint64_t OneOf(DType dtype) {
  const ScalarBytes one = ToScalarBytes(dtype, int64_t{1});
  uint64_t bits = 0;
  std::memcpy(&bits, one.bytes.data(), sizeof(bits));
  return bits;
}

// What is out of range gives zeros, whatever allow_out_of_range says: a GPU does not look before it
// enqueues.
absl::Status OneHotOf(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  Tensor& out = ctx.output(/*slot=*/0);
  return OneHot(x.dtype, x.raw_data(), x.numel(), out.shape.back(), ElementBytes(out),
                OneOf(out.dtype), out.mutable_raw_data(), StreamOf(ctx));
}

// X, MaxLenTensor -> Y. Lengths lie on the host, which read the largest of them.
template <typename T>
absl::Status SequenceMask(KernelContext& ctx) {
  const Tensor& x = ctx.input(/*slot=*/0);
  Tensor& y = ctx.output(/*slot=*/0);
  if (y.numel() == 0) return absl::OkStatus();
  const int64_t width = y.shape.back();
  std::vector<int64_t> lengths(x.numel());
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = CountBelow(x.data<T>()[i], width);
  INTERP_ASSIGN_OR_RETURN(const auto numbers, NumberLists::Make(ctx, {lengths}));
  return MaskLengths(numbers.list(0), x.numel(), width, ElementBytes(y), OneOf(y.dtype),
                     y.mutable_raw_data(), StreamOf(ctx));
}

absl::Status TrilTriu(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<TrilTriuAttrs>();
  const Tensor& x = ctx.input(/*slot=*/0);
  return KeepHalf(ElementBytes(x), x.raw_data(),
                  {.matrices = x.shape.numel(0, x.shape.rank() - 2),
                   .rows = x.shape.back(2),
                   .columns = x.shape.back(1),
                   .diagonal = attrs.diagonal,
                   .lower = attrs.lower},
                  ctx.output(/*slot=*/0).mutable_raw_data(), StreamOf(ctx));
}

// Out@GRAD, X -> X@GRAD: each dimension of Out as the repeats of one of X, which are added up.
absl::Status RepeatGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(/*slot=*/0);
  Tensor& x_grad = ctx.output(/*slot=*/0);
  if (x_grad.numel() == 0) return absl::OkStatus();
  const int added = grad.shape.rank() - x_grad.shape.rank();
  std::vector<int64_t> dims;
  uint32_t repeats = 0;
  for (int d = 0; d < grad.shape.rank(); ++d) {
    const int64_t length = d < added ? 1 : x_grad.shape[d - added];
    repeats |= 1U << dims.size();
    dims.push_back(grad.shape[d] / length);
    dims.push_back(length);
  }
  return Reduce(grad.dtype, ReduceOp::kSum, grad.raw_data(), dims, repeats,
                x_grad.mutable_raw_data(), WorkspaceOf(ctx), StreamOf(ctx));
}

constexpr std::initializer_list<DType> kEvery = {DType::kUndefined};
constexpr std::initializer_list<DType> kAdded = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("where", RowsFor(kEvery, WhereOf));
INTERP_REGISTER_KERNELS("where_grad", RowsFor(kEvery, WhereGrad));
INTERP_REGISTER_KERNELS("one_hot", RowsFor(kEvery, OneHotOf));
INTERP_REGISTER_KERNELS("one_hot_v2", RowsFor(kEvery, OneHotOf));
INTERP_REGISTER_KERNELS("sequence_mask", RowsFor({DType::kInt32}, SequenceMask<int32_t>));
INTERP_REGISTER_KERNELS("sequence_mask", RowsFor({DType::kInt64}, SequenceMask<int64_t>));
INTERP_REGISTER_KERNELS("sequence_mask", RowsFor({DType::kFloat32}, SequenceMask<float>));
INTERP_REGISTER_KERNELS("sequence_mask", RowsFor({DType::kFloat64}, SequenceMask<double>));
INTERP_REGISTER_KERNELS("tril_triu", RowsFor(kEvery, TrilTriu));
INTERP_REGISTER_KERNELS("tril_triu_grad", RowsFor(kEvery, TrilTriu));
INTERP_REGISTER_KERNELS("expand_grad", RowsFor(kAdded, RepeatGrad));
INTERP_REGISTER_KERNELS("expand_v2_grad", RowsFor(kAdded, RepeatGrad));
INTERP_REGISTER_KERNELS("expand_as_v2_grad", RowsFor(kAdded, RepeatGrad));
INTERP_REGISTER_KERNELS("tile_grad", RowsFor(kAdded, RepeatGrad));

}  // namespace
}  // namespace interp::cuda
