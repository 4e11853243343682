// The gradient of a table of which only some rows were used: a tensor, or selected rows of those.
#pragma once

#include <algorithm>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/rows.h"

namespace interp {

template <typename T>
class RowGradient {
 public:
  // Zeros for output `slot`, which may be absent: the gradient of a table of shape `table`, whose
  // rows `used` count, in any order. REQUIRES: they are rows of the table.
  absl::Status Prepare(KernelContext& ctx, int slot, const Shape& table,
                       std::vector<int64_t> used) {
    if (!ctx.has_output(slot)) return absl::OkStatus();
    width_ = table[1];
    if (!OutputIsRows(ctx, slot)) {
      values_ = ctx.output(slot).mutable_data<T>();
      std::fill_n(values_, table.numel(), T{0});
      return absl::OkStatus();
    }
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    Variable& out = ctx.output_variable(slot);
    out.tensor.shape = {std::ssize(used), width_};
    out.tensor.dtype = DTypeOf<T>;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(out.tensor));
    values_ = out.tensor.mutable_data<T>();
    std::fill_n(values_, out.tensor.numel(), T{0});
    out.selected_rows->height = table[0];
    out.selected_rows->rows = used;
    rows_ = std::move(used);
    return absl::OkStatus();
  }

  // Adds factor * vector to a row that is used.
  void Add(int64_t row, T factor, const T* vector) {
    if (values_ == nullptr) return;
    if (!rows_.empty()) row = std::lower_bound(rows_.begin(), rows_.end(), row) - rows_.begin();
    for (int64_t i = 0; i < width_; ++i) values_[row * width_ + i] += factor * vector[i];
  }

 private:
  T* values_ = nullptr;
  int64_t width_ = 0;
  std::vector<int64_t> rows_;  // empty: all
};

}  // namespace interp
