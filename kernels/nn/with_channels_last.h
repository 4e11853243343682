// Runs a kernel that knows only dense channels-last images on tensors of any order.
#pragma once

#include <optional>

#include "core/op_def.h"
#include "kernels/nn/image.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

// Calls body(in, out), an absl::Status, on dense channels-last images of `input` and `output`:
// their own memory where it lies so, else copies that are brought back after. Reordering costs less
// than kernels for the plain order lose. With `residual` (of the output's shape), `out` holds its
// values when body starts.
template <typename T, typename Body>
absl::Status WithChannelsLast(const KernelContext& ctx, const Tensor& input, Tensor& output,
                              bool channels_last_dims, const Body& body,
                              const Tensor* residual = nullptr) {
  const int threads = ctx.num_threads();
  const ImageView in_view = ViewImage(input, channels_last_dims);
  const ImageView out_view = ViewImage(output, channels_last_dims);
  const ImageView in_dense = DenseChannelsLast(in_view);
  const ImageView out_dense = DenseChannelsLast(out_view);
  const bool copy_out = !SameMemory(out_view, out_dense);
  const T* in = input.data<T>();
  T* out = output.mutable_data<T>();
  std::optional<Workspace> in_copy;
  if (!SameMemory(in_view, in_dense)) {
    INTERP_ASSIGN_OR_RETURN(in_copy, ctx.workspace(input.size_bytes()));
    CopyImage(in_view, in, in_dense, static_cast<T*>(in_copy->data()), threads);
    in = static_cast<const T*>(in_copy->data());
  }
  std::optional<Workspace> out_copy;
  if (copy_out) {
    INTERP_ASSIGN_OR_RETURN(out_copy, ctx.workspace(output.size_bytes()));
    out = static_cast<T*>(out_copy->data());
  }
  if (residual != nullptr) {
    const ImageView view = ViewImage(*residual, channels_last_dims);
    const bool in_place = residual->raw_data() == out && SameMemory(view, out_dense);
    if (!in_place) CopyImage(view, residual->data<T>(), out_dense, out, threads);
  }
  INTERP_RETURN_IF_ERROR(body(in, out));
  if (copy_out) CopyImage(out_dense, out, out_view, output.mutable_data<T>(), threads);
  return absl::OkStatus();
}

}  // namespace interp::nn
