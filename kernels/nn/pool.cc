// pool2d, pool3d: the maximum or the average of sliding, global or adaptive windows.
#include "kernels/nn/image.h"
#include "kernels/nn/pool_window.h"
#include "kernels/nn/window.h"
#include "kernels/nn/with_channels_last.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct PoolAttrs {
  PoolKind kind = PoolKind::kMax;
  std::vector<int64_t> kernel;
  WindowAttrs window;
  bool global = false;
  bool adaptive = false;
  bool ceil_mode = false;
  bool exclusive = true;
  bool channels_last_dims = false;
};

PoolAttrs ReadPool(AttrReader& reader, int spatial_rank) {
  PoolAttrs attrs;
  const std::string kind = reader.String("pooling_type", "max");
  if (kind != "max" && kind != "avg") {
    reader.Fail(absl::StrCat("attribute 'pooling_type' is \"", kind, "\", expected max or avg"));
  }
  attrs.kind = kind == "max" ? PoolKind::kMax : PoolKind::kAverage;
  attrs.kernel = reader.Ints("ksize");
  attrs.window = ReadWindow(reader, spatial_rank, /*dilations=*/false);
  attrs.global = reader.Bool("global_pooling", false);
  attrs.adaptive = reader.Bool("adaptive", false);
  attrs.ceil_mode = reader.Bool("ceil_mode", false);
  attrs.exclusive = reader.Bool("exclusive", true);
  attrs.channels_last_dims = HasChannelsLastDims(reader.String("data_format", "NCHW"));
  return attrs;
}
PoolAttrs ReadPool2d(AttrReader& reader) { return ReadPool(reader, 2); }
PoolAttrs ReadPool3d(AttrReader& reader) { return ReadPool(reader, 3); }

absl::StatusOr<Window> ResolvePool(const PoolAttrs& attrs, const ImageView& view) {
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

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<PoolAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const int rank = static_cast<int>(attrs.window.strides.size()) + 2;
  if (x.rank() != rank || rank < 4 || rank > 5) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected ", rank, " dims");
  }
  const ImageView view = ViewImage(x, Layout::kPlain, attrs.channels_last_dims);
  INTERP_ASSIGN_OR_RETURN(const Window window, ResolvePool(attrs, view));
  Shape out = x;
  for (int i = 0; i < window.rank; ++i) {
    out[i + (attrs.channels_last_dims ? 1 : 2)] = window[i].out;
  }
  ctx.SetShape(kOut, out);
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

// One pass of a maximum that is taken along the width first, then along the height.
Pool OneAxis(const Pool& pool, int axis) {
  Pool pass = pool;
  for (int i = 0; i < 3; ++i) {
    if (i == axis) continue;
    WindowAxis& window = pass.axes[i].window;
    const int64_t size = i < axis ? window.in : window.out;
    window = WindowAxis{.in = size, .out = size};
  }
  return pass;
}

// Two passes of k steps each beat one of k * k once windows overlap much.
bool SplitsWell(const Pool& pool) {
  const WindowAxis& h = pool.axes[1].window;
  const WindowAxis& w = pool.axes[2].window;
  if (!(pool.axes[0].window == WindowAxis{})) return false;  // volumes
  // Compared in floating point: kernels may be as large as 2^31.
  const double direct = static_cast<double>(h.out) * h.kernel * w.kernel;
  const double split = static_cast<double>(h.in) * w.kernel + static_cast<double>(h.out) * h.kernel;
  return direct > 1.5 * split;
}

template <typename T>
absl::Status Run(const KernelContext& ctx, const Pool& pool, const T* in, T* out) {
  const int threads = ctx.num_threads();
  if (pool.kind == PoolKind::kAverage) {
    PoolImages<T, PoolKind::kAverage>(pool, in, out, threads);
  } else if (!SplitsWell(pool)) {
    PoolImages<T, PoolKind::kMax>(pool, in, out, threads);
  } else {
    const int64_t between = pool.batch * pool.axes[0].window.in * pool.axes[1].window.in *
                            pool.axes[2].window.out * pool.channels;
    INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                            ctx.workspace(static_cast<size_t>(between) * sizeof(T)));
    T* rows = static_cast<T*>(scratch.data());
    PoolImages<T, PoolKind::kMax>(OneAxis(pool, 2), in, rows, threads);
    PoolImages<T, PoolKind::kMax>(OneAxis(pool, 1), rows, out, threads);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status RunPool(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<PoolAttrs>();
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const ImageView view = ViewImage(x, attrs.channels_last_dims);
  INTERP_ASSIGN_OR_RETURN(const Window window, ResolvePool(attrs, view));
  Pool pool = {attrs.kind, attrs.exclusive, view.batch(), view.channels(), {}};
  for (int i = 0; i < window.rank; ++i) {
    // Paddle's adaptive maximum slides a window of the output's size: it has no bins.
    const bool bins = attrs.adaptive && attrs.kind == PoolKind::kAverage;
    pool.axes[3 - window.rank + i] = {window[i], bins};
  }
  return WithChannelsLast<T>(ctx, x, out, attrs.channels_last_dims,
                             [&](const T* from, T* to) { return Run(ctx, pool, from, to); });
}

OpDef PoolDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, RunPool<float>}, {DType::kFloat64, RunPool<double>}},
      .layout = LayoutRule::kPrefersChannelsLast,
  };
}

INTERP_REGISTER_OP(PoolDef("pool2d", ParseAttrs<PoolAttrs, ReadPool2d>));
INTERP_REGISTER_OP(PoolDef("pool3d", ParseAttrs<PoolAttrs, ReadPool3d>));

}  // namespace
}  // namespace interp::nn
