// Windows over the rows of sequences: what sequence_conv and its gradient share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp::sequence_conv {

// Positions of input slots.
inline constexpr int kX = 0;
inline constexpr int kPaddingData = 1;
inline constexpr int kFilter = 2;

struct SequenceConvAttrs {
  int64_t length = 1;  // rows of a window
  int64_t start = 0;   // its first row, relative to the output row
  bool padded = false;

  int64_t rows_before() const { return std::max<int64_t>(0, -start); }
  int64_t rows_behind() const { return std::max<int64_t>(0, start + length - 1); }
};

SequenceConvAttrs ReadSequenceConvAttrs(AttrReader& reader);

// InvalidArgument unless X, PaddingData and Filter fit each other and the attributes.
absl::Status CheckInputs(const OpContext& ctx);

// The rows that a window is made of: of the padding, of X, and of the padding again.
struct WindowRows {
  int64_t before = 0;
  int64_t inside = 0;
  int64_t behind = 0;
  int64_t first_inside = 0;  // rows of X
  int64_t first_before = 0;  // rows of the padding
  int64_t first_behind = 0;

  // The window from row `first` on of the sequence [begin, end).
  WindowRows(const SequenceConvAttrs& attrs, int64_t first, int64_t begin, int64_t end) {
    const int64_t last = first + attrs.length;
    before = std::clamp<int64_t>(begin - first, 0, attrs.length);
    behind = std::clamp<int64_t>(last - end, 0, attrs.length);
    inside = attrs.length - before - behind;
    first_inside = first + before;
    first_before = attrs.rows_before() + first - begin;
    first_behind = attrs.rows_before() + last - behind - end;
  }
};

// What windows are made of.
template <typename T>
struct Windows {
  SequenceConvAttrs attrs;
  const T* x;
  int64_t width;
  Offsets offsets;
  const T* padding;  // null: rows outside are 0

  // Copies the windows of the output rows [begin, end) one after the other.
  void Copy(int64_t begin, int64_t end, T* out) const {
    ForEachRow(offsets, begin, end, [&](int64_t row, int64_t first, int64_t last) {
      const WindowRows rows(attrs, row + attrs.start, first, last);
      T* to = CopyPadding(rows.first_before, rows.before, out);
      if (rows.inside > 0) to = std::copy_n(x + rows.first_inside * width, rows.inside * width, to);
      CopyPadding(rows.first_behind, rows.behind, to);
      out += attrs.length * width;
    });
  }

 private:
  // Copies `count` rows from row `row` of the padding on, and returns the end.
  T* CopyPadding(int64_t row, int64_t count, T* out) const {
    if (padding == nullptr) return std::fill_n(out, count * width, T{0});
    return std::copy_n(padding + row * width, count * width, out);
  }
};

// The windows over X.
template <typename T>
Windows<T> WindowsOf(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  const T* const padding = attrs.padded ? ctx.input(kPaddingData).data<T>() : nullptr;
  return {attrs, x.data<T>(), x.shape[1], x.lod.back(), padding};
}

}  // namespace interp::sequence_conv
