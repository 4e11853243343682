// pool2d, pool3d: the maximum or the average of sliding, global or adaptive windows.
#include "kernels/nn/with_channels_last.h"
#include "kernels/pool/pool_problem.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr KernelSizeSlots kKernelSize = {.tensor = 1, .list = 2};
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  PoolAttrs own;
  INTERP_ASSIGN_OR_RETURN(const PoolAttrs* const attrs, PoolAttrsOf(ctx, kKernelSize, own));
  INTERP_ASSIGN_OR_RETURN(const PoolShapes shapes, ResolvePool(*attrs, ctx.input(kX).shape));
  ctx.SetShape(kOut, shapes.out);
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

// Values on a grid (passes/quant/early_grids.h), an average of which lies between its points.
bool TakesMaximum(const void* attrs) {
  return static_cast<const PoolAttrs*>(attrs)->kind == PoolKind::kMax;
}

template <typename T>
absl::Status Run(const KernelContext& ctx, const Pool& pool, const T* in, T* out) {
  const int threads = ctx.num_threads();
  if (pool.kind == PoolKind::kAverage) {
    if constexpr (!std::is_same_v<T, int8_t>)
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
  PoolAttrs own;
  INTERP_ASSIGN_OR_RETURN(const PoolAttrs* const attrs, PoolAttrsOf(ctx, kKernelSize, own));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const PoolShapes shapes, ResolvePool(*attrs, x.shape));
  const Pool pool = MakePool(*attrs, shapes.window, x);
  return WithChannelsLast<T>(ctx, x, out, attrs->channels_last_dims,
                             [&](const T* from, T* to) { return Run(ctx, pool, from, to); });
}

OpDef PoolDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"KernelSizeTensor", kKernelSizeFlags, "ksize"},
                 {"KernelSizeTensorList", kKernelSizeFlags | kVariadic, "ksize"}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, RunPool<float>},
                  {DType::kFloat64, RunPool<double>},
                  {DType::kBFloat16, RunPool<bfloat16>},
                  {.dtype = DType::kInt8, .run = RunPool<int8_t>, .takes = TakesMaximum}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .gradient = {.inputs = {"X", "Out", "Out@GRAD", "KernelSizeTensor", "KernelSizeTensorList"},
                   .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(PoolDef("pool2d", ParseAttrs<PoolAttrs, ReadPool2d>));
INTERP_REGISTER_OP(PoolDef("pool3d", ParseAttrs<PoolAttrs, ReadPool3d>));

}  // namespace
}  // namespace interp::nn
