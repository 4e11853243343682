// GiveToChosen: the gradient of ops that choose elements along an axis and say where they were.
#pragma once

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/lines.h"

namespace interp {

// Each element of `grad` is added where `indices`, of the same shape, says that the element was:
// positions in lines of `x_grad`, `kept` of which are in those of `indices`. The rest of `x_grad`
// is 0. T is float, double or an integer type. Error: InvalidArgument for an index beyond a line.
template <typename T>
absl::Status GiveToChosen(const Tensor& indices, const Lines& kept, const Tensor& grad,
                          const Lines& lines, int num_threads, Tensor& x_grad) {
  const T* const given = grad.data<T>();
  T* const out = x_grad.mutable_data<T>();
  return WithIndices(indices, "Indices", [&](const auto* from) {
    INTERP_RETURN_IF_ERROR(CheckIndices(from, indices.numel(), lines.length, "Indices"));
    ForEachLine(lines, LineTasks(lines, num_threads), [=](int64_t, int64_t line) {
      T* const to = out + lines.Start(line);
      for (int64_t i = 0; i < lines.length; ++i) to[i * lines.inner] = T{0};
      int64_t at = kept.Start(line);
      for (int64_t i = 0; i < kept.length; ++i, at += kept.inner) {
        to[from[at] * lines.inner] += given[at];
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace interp
