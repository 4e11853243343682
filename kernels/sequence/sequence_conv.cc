// sequence_conv: Out[t] = (the rows X[t + start] ... X[t + start + length - 1], joined) Filter.
// Rows outside of the sequence of t are 0, or those of PaddingData: first the ones for in front of
// a sequence, then the ones for behind it.
#include <algorithm>
#include <optional>

#include "kernels/nn/product.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/flops.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kPaddingData = 1;
constexpr int kFilter = 2;
constexpr int kOut = 0;

struct SequenceConvAttrs {
  int64_t length = 1;  // rows of a window
  int64_t start = 0;   // its first row, relative to the output row
  bool padded = false;

  int64_t rows_before() const { return std::max<int64_t>(0, -start); }
  int64_t rows_behind() const { return std::max<int64_t>(0, start + length - 1); }
};

SequenceConvAttrs ReadSequenceConvAttrs(AttrReader& reader) {
  SequenceConvAttrs attrs;
  attrs.length = reader.Int("contextLength", 0);
  attrs.start = reader.Int("contextStart", 0);
  attrs.padded = reader.Bool("paddingTrainable", false);
  const int32_t stride = reader.Int("contextStride", 1);
  if (attrs.length < 1) {
    reader.Fail(absl::StrCat("'contextLength' is ", attrs.length, ", expected at least 1"));
  }
  if (stride != 1) reader.Fail(absl::StrCat("'contextStride' is ", stride, ", expected 1"));
  return attrs;
}

absl::Status CheckPadding(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  if (!attrs.padded) return absl::OkStatus();
  const Tensor* padding = ctx.optional_input(kPaddingData);
  if (padding == nullptr) {
    return InvalidArgument("input 'PaddingData' is missing, but 'paddingTrainable' is true");
  }
  const Shape expected = {attrs.rows_before() + attrs.rows_behind(), ctx.input(kX).shape[1]};
  if (padding->shape == expected) return absl::OkStatus();
  return InvalidArgument("input 'PaddingData' has shape ", ToString(padding->shape), ", expected ",
                         ToString(expected));
}

absl::Status InferSequenceConv(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Shape& filter = ctx.input(kFilter).shape;
  if (x.shape.rank() != 2 || filter.rank() != 2) {
    return InvalidArgument("inputs 'X' ", ToString(x.shape), " and 'Filter' ", ToString(filter),
                           " must be matrices");
  }
  INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(x, "X").status());
  const int64_t length = ctx.attrs<SequenceConvAttrs>().length;
  INTERP_ASSIGN_OR_RETURN(const int64_t depth, CheckedProduct(length, x.shape[1]));
  if (filter[0] != depth) {
    return InvalidArgument("input 'Filter' has shape ", ToString(filter), ", expected ", depth,
                           " rows: 'contextLength' ", length, " times the width of 'X'");
  }
  INTERP_RETURN_IF_ERROR(CheckPadding(ctx));
  ctx.SetShape(kOut, {x.shape[0], filter[1]});
  ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

// What windows are made of.
template <typename T>
struct Windows {
  SequenceConvAttrs attrs;
  const T* x;
  int64_t width;
  Offsets offsets;
  const T* padding;  // null: rows outside are 0
};

// Copies `count` rows from row `row` of the padding on, and returns the end.
template <typename T>
T* CopyPadding(const Windows<T>& windows, int64_t row, int64_t count, T* out) {
  const int64_t elements = count * windows.width;
  if (windows.padding == nullptr) return std::fill_n(out, elements, T{0});
  return std::copy_n(windows.padding + row * windows.width, elements, out);
}

// Copies the window from row `first` on of the sequence [begin, end).
template <typename T>
void CopyWindow(const Windows<T>& windows, int64_t first, int64_t begin, int64_t end, T* out) {
  const SequenceConvAttrs& attrs = windows.attrs;
  const int64_t last = first + attrs.length;
  const int64_t before = std::clamp<int64_t>(begin - first, 0, attrs.length);
  const int64_t behind = std::clamp<int64_t>(last - end, 0, attrs.length);
  const int64_t inside = attrs.length - before - behind;
  out = CopyPadding(windows, attrs.rows_before() + first - begin, before, out);
  if (inside > 0) {
    out = std::copy_n(windows.x + (first + before) * windows.width, inside * windows.width, out);
  }
  CopyPadding(windows, attrs.rows_before() + last - behind - end, behind, out);
}

// Copies the windows of the output rows [begin, end) one after the other. REQUIRES: begin < end.
template <typename T>
void CopyWindows(const Windows<T>& windows, int64_t begin, int64_t end, T* out) {
  const Offsets offsets = windows.offsets;
  size_t next = std::upper_bound(offsets.begin(), offsets.end(), begin) - offsets.begin();
  for (int64_t row = begin; row < end; ++row, out += windows.attrs.length * windows.width) {
    while (row >= offsets[next]) ++next;
    CopyWindow(windows, row + windows.attrs.start, offsets[next - 1], offsets[next], out);
  }
}

// The windows of all rows of X, each as long as a column of Filter.
template <typename T>
absl::StatusOr<Workspace> UnfoldRows(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& x = ctx.input(kX);
  const T* const padding = attrs.padded ? ctx.input(kPaddingData).data<T>() : nullptr;
  const Windows<T> windows = {attrs, x.data<T>(), x.shape[1], x.lod.back(), padding};
  const int64_t rows = x.shape[0];
  const int64_t depth = ctx.input(kFilter).shape[0];
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes, CheckedProduct(rows, depth * sizeof(T)));
  INTERP_ASSIGN_OR_RETURN(Workspace unfolded, ctx.workspace(static_cast<size_t>(bytes)));
  T* const out = unfolded.data<T>();
  ParallelFor(
      ctx.num_threads(), rows, kElementwiseGrain / depth + 1,
      [&](int64_t begin, int64_t end) { CopyWindows(windows, begin, end, out + begin * depth); });
  return unfolded;
}

template <typename T>
absl::Status SequenceConv(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  const Tensor& filter = ctx.input(kFilter);
  Tensor& out = ctx.output(kOut);
  nn::Product product;
  product.m = out.shape[0];
  product.n = out.shape[1];
  product.k = filter.shape[0];
  const T* rows = ctx.input(kX).data<T>();
  std::optional<Workspace> windows;
  const bool rows_are_windows = attrs.length == 1 && attrs.start == 0;
  if (!rows_are_windows && product.k > 0 && out.numel() > 0) {
    INTERP_ASSIGN_OR_RETURN(windows, UnfoldRows<T>(ctx));
    rows = windows->template data<T>();
  }
  return nn::RunProduct<T>(ctx, product, rows, filter.data<T>(), ctx.input_is_constant(kFilter),
                           /*bias=*/nullptr, out.mutable_data<T>());
}

int64_t Flops(const OpContext& ctx) {
  const Shape& filter = ctx.input(kFilter).shape;
  return ToFlops(2.0 * static_cast<double>(ctx.input(kX).shape[0]) *
                 static_cast<double>(filter.numel()));
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_conv",
    .inputs = {{"X"}, {"PaddingData", kOptional}, {"Filter"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequenceConvAttrs, ReadSequenceConvAttrs>,
    .infer = InferSequenceConv,
    .kernels = {{DType::kFloat32, SequenceConv<float>}, {DType::kFloat64, SequenceConv<double>}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp
