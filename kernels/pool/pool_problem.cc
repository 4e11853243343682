#include "kernels/pool/pool_problem.h"

#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"

namespace interp::nn {
namespace {

PoolAttrs ReadPool(AttrReader& reader, int spatial_rank) {
  PoolAttrs attrs;
  attrs.kind = ReadChoice<PoolKind>(reader, "pooling_type",
                                    {{"max", PoolKind::kMax}, {"avg", PoolKind::kAverage}});
  attrs.kernel = reader.Ints("ksize");
  attrs.window = ReadWindow(reader, spatial_rank, /*dilations=*/false);
  attrs.global = reader.Bool("global_pooling", false);
  attrs.adaptive = reader.Bool("adaptive", false);
  attrs.ceil_mode = reader.Bool("ceil_mode", false);
  attrs.exclusive = reader.Bool("exclusive", true);
  attrs.channels_last_dims = HasChannelsLastDims(reader.String("data_format", "NCHW"));
  return attrs;
}

absl::StatusOr<Window> ResolveWindows(const PoolAttrs& attrs, const ImageView& view) {
  const absl::Span<const int64_t> in = view.dims_span().subspan(2);
  WindowAttrs window_attrs = attrs.window;
  if (attrs.global || attrs.adaptive) {
    window_attrs.paddings.assign(in.size(), 0);
    window_attrs.padding = PaddingAlgorithm::kExplicit;
  }
  std::vector<int64_t> kernel(in.begin(), in.end());
  if (!attrs.global) kernel = attrs.kernel;
  if (view.numel() == 0 && view.batch() != 0) {
    return InvalidArgument("input 'X' has no pixels or channels to pool");
  }
  INTERP_ASSIGN_OR_RETURN(Window window, ResolveWindow(window_attrs, in, kernel));
  if (!attrs.adaptive) {
    INTERP_RETURN_IF_ERROR(FitWindow(window, attrs.ceil_mode));
    return window;
  }
  for (int i = 0; i < window.rank; ++i) window[i].out = window[i].kernel;
  return window;
}

}  // namespace

PoolAttrs ReadPool2d(AttrReader& reader) { return ReadPool(reader, 2); }
PoolAttrs ReadPool3d(AttrReader& reader) { return ReadPool(reader, 3); }

absl::StatusOr<PoolShapes> ResolvePool(const PoolAttrs& attrs, const Shape& x) {
  const int rank = static_cast<int>(attrs.window.strides.size()) + 2;
  if (x.rank() != rank || rank < 4 || rank > 5) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected ", rank, " dims");
  }
  const ImageView view = ViewImage(x, Layout::kPlain, attrs.channels_last_dims);
  PoolShapes shapes;
  INTERP_ASSIGN_OR_RETURN(shapes.window, ResolveWindows(attrs, view));
  shapes.out = x;
  for (int i = 0; i < shapes.window.rank; ++i) {
    shapes.out[i + (attrs.channels_last_dims ? 1 : 2)] = shapes.window[i].out;
  }
  return shapes;
}

absl::StatusOr<const PoolAttrs*> PoolAttrsOf(const OpContext& ctx, KernelSizeSlots slots,
                                             PoolAttrs& own) {
  const PoolAttrs& attrs = ctx.attrs<PoolAttrs>();
  const bool has_list = !ctx.inputs(slots.list).empty();
  if (!has_list && !ctx.has_input(slots.tensor)) return &attrs;
  own = attrs;
  const IntSlots size = {
      .name = "ksize", .tensor = has_list ? -1 : slots.tensor, .list = slots.list};
  INTERP_ASSIGN_OR_RETURN(const IntList kernel, ReadIntList(ctx, size, {}));
  own.kernel.assign(kernel.begin(), kernel.end());
  return &own;
}

Pool MakePool(const PoolAttrs& attrs, const Window& window, const Tensor& x) {
  const ImageView view = ViewImage(x, attrs.channels_last_dims);
  Pool pool = {attrs.kind, attrs.exclusive, view.batch(), view.channels(), {}};
  for (int i = 0; i < window.rank; ++i) {
    // Paddle's adaptive maximum slides a window of the output's size: it has no bins.
    const bool bins = attrs.adaptive && attrs.kind == PoolKind::kAverage;
    pool.axes[3 - window.rank + i] = {window[i], bins};
  }
  return pool;
}

}  // namespace interp::nn
