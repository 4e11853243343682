// pool2d_grad, pool3d_grad: an average passes its gradient on in equal shares, a maximum to the
// first element of its window (in the order of depth, height, width) that has it.
#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>

#include "core/op_def.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/pool/pool_problem.h"
#include "kernels/product/gemm_tile.h"
#include "kernels/product/lanes.h"
#include "kernels/util/convert_elements.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/second_gradient.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 1;
constexpr int kOutGrad = 2;
constexpr KernelSizeSlots kKernelSize = {.tensor = 3, .list = 4};
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  PoolAttrs own;
  INTERP_ASSIGN_OR_RETURN(const PoolAttrs* const attrs, PoolAttrsOf(ctx, kKernelSize, own));
  INTERP_ASSIGN_OR_RETURN(const PoolShapes shapes, ResolvePool(*attrs, ctx.input(kX).shape));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOut, "Out", shapes.out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", shapes.out));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// Images as the loops see them: dense, channels-last. x and out are null for averages. S is what
// x_grad is added up in.
template <typename T, typename S = T>
struct PoolGradImages {
  const T* x;
  const T* out;
  const T* out_grad;
  S* x_grad;
};

// Calls body(first pixel, pixels) for each run of pixels along the width under a window.
template <typename Body>
void ForEachRun(const Pool& pool, const PoolAxis::Range (&covers)[3], const Body& body) {
  for (int64_t z = covers[0].begin; z < covers[0].end; ++z) {
    for (int64_t y = covers[1].begin; y < covers[1].end; ++y) {
      const int64_t row = z * pool.axes[1].window.in + y;
      body(row * pool.axes[2].window.in + covers[2].begin, covers[2].end - covers[2].begin);
    }
  }
}

// kBytes of neighbouring channels, as they are computed with, no more than a register holds: GCC
// compares and chooses wider vectors element by element. The loops below say it in vectors: the
// compiler would branch.
template <typename T, int kBytes>
using ChannelVector = Lanes<T, kBytes / sizeof(ComputeType<T>)>;

// The window of one output pixel, a vector of channels. The pointers stand at the first of them:
// `x` and `x_grad` in the image's first pixel, `out` and `out_grad` in the output's.
template <int kBytes, typename T, typename S>
void MaxWindow(const Pool& pool, const PoolAxis::Range (&covers)[3],
               const PoolGradImages<T, S>& at) {
  using V = ChannelVector<T, kBytes>;
  using Sums = ChannelVector<S, kBytes>;
  const typename V::type most = V::Load(at.out);
  const typename V::type none = {};
  typename V::type left = V::Load(at.out_grad);
  ForEachRun(pool, covers, [&](int64_t pixel, int64_t count) {
    for (int64_t i = pixel * pool.channels; i < (pixel + count) * pool.channels;
         i += pool.channels) {
      const auto hit = V::Load(at.x + i) == most;
      Sums::Store(Sums::Load(at.x_grad + i) + (hit ? left : none), at.x_grad + i);
      left = hit ? none : left;
    }
  });
}

template <int kBytes, typename T, typename S>
void AverageWindow(const Pool& pool, const PoolAxis::Range (&covers)[3],
                   const PoolGradImages<T, S>& at) {
  using V = ChannelVector<T, kBytes>;
  using Sums = ChannelVector<S, kBytes>;
  const auto divisor =
      static_cast<ComputeType<T>>(covers[0].divisor * covers[1].divisor * covers[2].divisor);
  const typename V::type share = V::Load(at.out_grad) / divisor;
  ForEachRun(pool, covers, [&](int64_t pixel, int64_t count) {
    for (int64_t i = pixel * pool.channels; i < (pixel + count) * pool.channels;
         i += pool.channels) {
      Sums::Store(Sums::Load(at.x_grad + i) + share, at.x_grad + i);
    }
  });
}

// As many channels of [c, end) as go in steps of kBytes; then fewer at once, down to one.
template <int kBytes, typename T, typename S>
void Channels(const Pool& pool, const PoolAxis::Range (&covers)[3],
              const PoolGradImages<T, S>& image, int64_t out, int64_t c, int64_t end) {
  constexpr int kWidth = kBytes / sizeof(ComputeType<T>);
  for (; c + kWidth <= end; c += kWidth) {
    if (pool.kind == PoolKind::kMax) {
      MaxWindow<kBytes, T, S>(
          pool, covers,
          {image.x + c, image.out + out + c, image.out_grad + out + c, image.x_grad + c});
    } else {
      AverageWindow<kBytes, T, S>(pool, covers,
                                  {nullptr, nullptr, image.out_grad + out + c, image.x_grad + c});
    }
  }
  if constexpr (kWidth > 1) {
    constexpr int kLess = kBytes > 16 ? 16 : static_cast<int>(sizeof(ComputeType<T>));
    if (c < end) Channels<kLess>(pool, covers, image, out, c, end);
  }
}

// Channels [begin, end) of one image, whose pointers stand at its first element.
template <typename T, typename S>
void RunImage(const Pool& pool, const PoolGradImages<T, S>& image, int64_t begin, int64_t end) {
  const WindowAxis& d = pool.axes[0].window;
  const WindowAxis& h = pool.axes[1].window;
  const WindowAxis& w = pool.axes[2].window;
  for (int64_t i = 0; i < d.in * h.in * w.in; ++i) {
    std::fill(image.x_grad + i * pool.channels + begin, image.x_grad + i * pool.channels + end,
              S{0});
  }
  int64_t out = 0;
  for (int64_t row = 0; row < d.out * h.out; ++row) {
    PoolAxis::Range covers[3] = {pool.axes[0].Cover(row / h.out, pool.exclusive),
                                 pool.axes[1].Cover(row % h.out, pool.exclusive),
                                 {}};
    for (int64_t x = 0; x < w.out; ++x, out += pool.channels) {
      covers[2] = pool.axes[2].Cover(x, pool.exclusive);
      Channels<kVectorBytes>(pool, covers, image, out, begin, end);
    }
  }
}

template <typename T, typename S>
void RunImages(const Pool& pool, const PoolGradImages<T, S>& images, int num_threads) {
  const WindowAxis& d = pool.axes[0].window;
  const WindowAxis& h = pool.axes[1].window;
  const WindowAxis& w = pool.axes[2].window;
  const int64_t in = d.in * h.in * w.in * pool.channels;
  const int64_t out = d.out * h.out * w.out * pool.channels;
  const bool max = pool.kind == PoolKind::kMax;
  // With few images the channels are cut as well.
  constexpr int64_t kLeastChannels = 16;
  const int64_t blocks = pool.batch >= num_threads
                             ? 1
                             : std::clamp<int64_t>(pool.channels / kLeastChannels, 1, num_threads);
  const int64_t grain = GrainFor(in / blocks);
  ParallelFor(num_threads, pool.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks;
      RunImage<T, S>(pool,
                     {max ? images.x + n * in : nullptr, max ? images.out + n * out : nullptr,
                      images.out_grad + n * out, images.x_grad + n * in},
                     pool.channels * (i % blocks) / blocks,
                     pool.channels * (i % blocks + 1) / blocks);
    }
  });
}

// Whether some elements lie under several windows.
bool Overlaps(const Pool& pool) {
  return std::any_of(std::begin(pool.axes), std::end(pool.axes), [](const PoolAxis& axis) {
    const WindowAxis& window = axis.window;
    if (window.out == 1) return false;
    return axis.adaptive ? window.in % window.out != 0 : window.stride < window.kernel;
  });
}

// RunImages with sums in float where bfloat16 would round each of them.
template <typename T>
absl::Status RunRounded(KernelContext& ctx, const Pool& pool, const PoolGradImages<T>& images) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (Overlaps(pool)) {
      const int64_t size = ctx.output(kXGrad).numel();
      INTERP_ASSIGN_OR_RETURN(const Workspace sums,
                              ctx.workspace(static_cast<size_t>(size) * sizeof(float)));
      RunImages<T, float>(pool, {images.x, images.out, images.out_grad, sums.data<float>()},
                          ctx.num_threads());
      ConvertElements(ctx.num_threads(), sums.data<float>(), size, images.x_grad);
      return absl::OkStatus();
    }
  }
  RunImages(pool, images, ctx.num_threads());
  return absl::OkStatus();
}

template <typename T>
absl::Status PoolGrad(KernelContext& ctx) {
  Tensor* x_grad = ctx.optional_output(kXGrad);
  if (x_grad == nullptr || x_grad->numel() == 0) return absl::OkStatus();
  PoolAttrs own;
  INTERP_ASSIGN_OR_RETURN(const PoolAttrs* const attrs, PoolAttrsOf(ctx, kKernelSize, own));
  const Tensor& x = ctx.input(kX);
  const bool last = attrs->channels_last_dims;
  INTERP_ASSIGN_OR_RETURN(const PoolShapes shapes, ResolvePool(*attrs, x.shape));
  const Pool pool = MakePool(*attrs, shapes.window, x);
  PoolGradImages<T> images = {};
  std::optional<Workspace> x_copy;
  std::optional<Workspace> out_copy;
  if (attrs->kind == PoolKind::kMax) {
    INTERP_ASSIGN_OR_RETURN(images.x, AsChannelsLast<T>(ctx, x, last, x_copy));
    INTERP_ASSIGN_OR_RETURN(images.out, AsChannelsLast<T>(ctx, ctx.input(kOut), last, out_copy));
  }
  return WithChannelsLast<T>(ctx, ctx.input(kOutGrad), *x_grad, last, [&](const T* from, T* to) {
    images.out_grad = from;
    images.x_grad = to;
    return RunRounded(ctx, pool, images);
  });
}

OpDef GradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"Out"},
                 {"Out@GRAD"},
                 {"KernelSizeTensor", kKernelSizeFlags},
                 {"KernelSizeTensorList", kKernelSizeFlags | kVariadic}},
      .outputs = {{"X@GRAD", kOptional}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, PoolGrad<float>},
                  {DType::kFloat64, PoolGrad<double>},
                  {DType::kBFloat16, PoolGrad<bfloat16>}},
      .layout = LayoutRule::kPrefersChannelsLast,
  };
}

constexpr SecondGradient kSecond2d = {.type = "pool2d_double_grad",
                                      .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
                                      .results = {{{"grad_out@GRAD", "Out@GRAD"}}}};

// Averages are sums of what they read. Paddle pools what comes in for maxima, too, which is no
// derivative.
absl::Status MakeSecond2d(GradientMaker& maker) {
  const Attr* const attr = maker.op().FindAttr("pooling_type");
  const auto* const type = attr == nullptr ? nullptr : std::get_if<std::string>(&attr->value);
  if (type == nullptr || *type != "avg") {
    return Unimplemented("has a gradient for averages alone, and this takes maxima");
  }
  return AddSecondGradient(kSecond2d, maker);
}

OpDef Pool2dGradDef() {
  OpDef def = GradDef("pool2d_grad", ParseAttrs<PoolAttrs, ReadPool2d>);
  def.gradient = {.make = MakeSecond2d};
  return def;
}

INTERP_REGISTER_OP(Pool2dGradDef());
INTERP_REGISTER_OP(GradDef("pool3d_grad", ParseAttrs<PoolAttrs, ReadPool3d>));

}  // namespace
}  // namespace interp::nn
