// shrink_rnn_memory_grad: X@GRAD = Out@GRAD, and 0 in the rows of X that were left out.
// rnn_memory_helper_grad: X@GRAD = Out@GRAD. Both give 0 where no later step has made a gradient.
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/fill_zero.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

DType GradientDType(const DTypeContext& ctx) { return ctx.input(kX); }

absl::Status InferLikeX(InferContext& ctx) {
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status FirstRows(KernelContext& ctx) {
  const Tensor* const given = ctx.optional_input(kOutGrad);
  Tensor& x_grad = ctx.output(kXGrad);
  if (given == nullptr || !given->has_memory()) {
    FillZero(ctx.num_threads(), x_grad);
    return absl::OkStatus();
  }
  const Tensor& out_grad = *given;
  const int rank = x_grad.shape.rank();
  const bool fits = rank > 0 && out_grad.shape.rank() == rank && out_grad.dtype == x_grad.dtype &&
                    out_grad.shape[0] <= x_grad.shape[0] &&
                    out_grad.shape.numel(1, rank) == x_grad.shape.numel(1, rank);
  if (!fits) {
    return InvalidArgument("'Out@GRAD' is ", DescribeType(out_grad), ", expected rows of 'X', ",
                           DescribeType(x_grad));
  }
  const size_t bytes = out_grad.size_bytes();
  char* const to = static_cast<char*>(x_grad.mutable_raw_data());
  if (bytes > 0) std::memcpy(to, out_grad.raw_data(), bytes);
  if (x_grad.size_bytes() > bytes) std::memset(to + bytes, 0, x_grad.size_bytes() - bytes);
  return absl::OkStatus();
}

OpDef FirstRowsDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer | kAnyDType | kAnyLayout},
                 {"Out@GRAD", kOptional | kMayBeEmpty},
                 {"Out", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout | kMayBeEmpty}},
      .outputs = {{"X@GRAD"}},
      .kernel_dtype = GradientDType,
      .infer = InferLikeX,
      .kernels = {{DType::kUndefined, FirstRows}},
  };
}

INTERP_REGISTER_OP(FirstRowsDef("shrink_rnn_memory_grad"));
INTERP_REGISTER_OP(FirstRowsDef("rnn_memory_helper_grad"));

}  // namespace
}  // namespace interp
