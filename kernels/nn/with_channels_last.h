// Runs a kernel that knows only dense channels-last images on tensors of any order.
#pragma once

#include <optional>

#include "core/op_def.h"
#include "kernels/conv/image.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

// Dense channels-last memory with the values of `image`: its own, or that of `copy`.
template <typename T>
absl::StatusOr<const T*> AsChannelsLast(const KernelContext& ctx, const Tensor& image,
                                        bool channels_last_dims, std::optional<Workspace>& copy) {
  const ImageView view = ViewImage(image, channels_last_dims);
  const ImageView dense = DenseChannelsLast(view);
  if (SameMemory(view, dense)) return image.data<T>();
  INTERP_ASSIGN_OR_RETURN(copy, ctx.workspace(image.size_bytes()));
  CopyImage(view, image.data<T>(), dense, copy->data<T>(), ctx.num_threads());
  return copy->data<T>();
}

// Calls body(in, out), an absl::Status, on dense channels-last images of `input` and `output`:
// their own memory where it lies so, else copies that are brought back after. Reordering costs less
// than kernels for the plain order lose. With `residual` (of the output's shape and dtype), `out`
// holds its values when body starts. Elements are T, those of the output Out.
template <typename T, typename Out = T, typename Body>
absl::Status WithChannelsLast(const KernelContext& ctx, const Tensor& input, Tensor& output,
                              bool channels_last_dims, const Body& body,
                              const Tensor* residual = nullptr) {
  const int threads = ctx.num_threads();
  const ImageView out_view = ViewImage(output, channels_last_dims);
  const ImageView out_dense = DenseChannelsLast(out_view);
  const bool copy_out = !SameMemory(out_view, out_dense);
  std::optional<Workspace> in_copy;
  INTERP_ASSIGN_OR_RETURN(const T* const in,
                          AsChannelsLast<T>(ctx, input, channels_last_dims, in_copy));
  Out* out = output.mutable_data<Out>();
  std::optional<Workspace> out_copy;
  if (copy_out) {
    INTERP_ASSIGN_OR_RETURN(out_copy, ctx.workspace(output.size_bytes()));
    out = static_cast<Out*>(out_copy->data());
  }
  if (residual != nullptr) {
    const ImageView view = ViewImage(*residual, channels_last_dims);
    const bool in_place = residual->raw_data() == out && SameMemory(view, out_dense);
    if (!in_place) CopyImage(view, residual->data<Out>(), out_dense, out, threads);
  }
  INTERP_RETURN_IF_ERROR(body(in, out));
  if (copy_out) CopyImage(out_dense, out, out_view, output.mutable_data<Out>(), threads);
  return absl::OkStatus();
}

// Calls body(view, in, out), an absl::Status, on dense images that lie alike: `input` and `output`
// themselves where they do, else channels-last images as WithChannelsLast has them.
template <typename T, typename Body>
absl::Status WithImagesAlike(const KernelContext& ctx, const Tensor& input, Tensor& output,
                             bool channels_last_dims, const Body& body) {
  const ImageView view = ViewImage(input, channels_last_dims);
  if (SameMemory(view, ViewImage(output, channels_last_dims)) &&
      (IsChannelsLast(view) || IsChannelsFirst(view))) {
    return body(view, input.data<T>(), output.mutable_data<T>());
  }
  return WithChannelsLast<T>(
      ctx, input, output, channels_last_dims,
      [&, dense = DenseChannelsLast(view)](const T* in, T* out) { return body(dense, in, out); });
}

}  // namespace interp::nn
