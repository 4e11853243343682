#include <algorithm>

#include "kernels/cuda/divisor.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pool.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

using nn::Pool;
using nn::PoolAxis;
using nn::PoolKind;

// The elements of a batch of images, one by one as they lie in memory.
struct ImageWalk {
  Divisor channels;
  Divisor sizes[3];  // depth, height, width
  int64_t pixels;
  int64_t num_channels;
  int64_t size;
  bool channels_last;
};

struct Element {
  int64_t first;  // offset of the element of its image and channel at pixel 0
  int64_t at[3];  // depth, height, width
};

__device__ Element ElementAt(const ImageWalk& walk, int64_t index, int64_t pixels_of_other) {
  auto left = static_cast<uint32_t>(index);
  Element element;
  int64_t channel = 0;
  if (walk.channels_last) channel = walk.channels.Split(left);
  for (int axis = 3; axis-- > 0;) element.at[axis] = walk.sizes[axis].Split(left);
  if (!walk.channels_last) channel = walk.channels.Split(left);
  element.first = walk.channels_last ? left * pixels_of_other * walk.num_channels + channel
                                     : (left * walk.num_channels + channel) * pixels_of_other;
  return element;
}

__device__ int64_t PixelAt(const Pool& pool, int64_t z, int64_t y, int64_t x) {
  return (z * pool.axes[1].window.in + y) * pool.axes[2].window.in + x;
}
__device__ int64_t WindowAt(const Pool& pool, int64_t z, int64_t y, int64_t x) {
  return (z * pool.axes[1].window.out + y) * pool.axes[2].window.out + x;
}

// What a maximum starts from: the least finite value, as on the host.
template <typename T>
__device__ float LeastFinite() {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return -0x1.fep127F;
  if constexpr (std::is_same_v<T, __half>) return -65504.0f;
  return std::numeric_limits<float>::lowest();
}

// Calls visit(pixel) for the pixels under the window of an output, in their order, until it says
// that this is enough.
template <typename Visit>
__device__ void VisitWindow(const Pool& pool, const PoolAxis::Range (&covers)[3],
                            const Visit& visit) {
  for (int64_t z = covers[0].begin; z < covers[0].end; ++z) {
    for (int64_t y = covers[1].begin; y < covers[1].end; ++y) {
      for (int64_t x = covers[2].begin; x < covers[2].end; ++x) {
        if (!visit(PixelAt(pool, z, y, x))) return;
      }
    }
  }
}

__device__ void CoverAll(const Pool& pool, const int64_t (&window)[3],
                         PoolAxis::Range (&covers)[3]) {
  for (int axis = 0; axis < 3; ++axis) {
    covers[axis] = pool.axes[axis].Cover(window[axis], pool.exclusive);
  }
}

__device__ float DivisorOf(const PoolAxis::Range (&covers)[3]) {
  return static_cast<float>(covers[0].divisor * covers[1].divisor * covers[2].divisor);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    PoolOutputs(const Pool pool, const ImageWalk outputs, int64_t in_pixels, const T* x, T* out) {
  const int64_t step = outputs.channels_last ? outputs.num_channels : 1;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < outputs.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const Element element = ElementAt(outputs, i, in_pixels);
    PoolAxis::Range covers[3];
    CoverAll(pool, element.at, covers);
    const T* const image = x + element.first;
    const bool takes_max = pool.kind == PoolKind::kMax;
    float result = takes_max ? LeastFinite<T>() : 0.0f;
    VisitWindow(pool, covers, [&](int64_t pixel) {
      const float value = ToCompute(image[pixel * step]);
      if (takes_max) {
        result = result > value ? result : value;
      } else {
        result += value;
      }
      return true;
    });
    out[i] = FromCompute<T>(takes_max ? result : result / DivisorOf(covers));
  }
}

// The windows of an axis that may cover position `at`.
struct Windows {
  int64_t begin;
  int64_t end;
};
__device__ Windows WindowsOver(const PoolAxis& axis, int64_t at) {
  const nn::WindowAxis& window = axis.window;
  if (axis.adaptive) {
    const int64_t begin = at * window.out / window.in;
    const int64_t end = ((at + 1) * window.out + window.in - 1) / window.in;
    return {begin, end < window.out ? end : window.out};
  }
  const int64_t last = (at + window.pad_begin) / window.stride;
  const int64_t before = at + window.pad_begin - window.kernel;
  const int64_t begin = before < 0 ? 0 : before / window.stride + 1;
  return {begin, last + 1 < window.out ? last + 1 : window.out};
}

// What the window `at` gives to the element at `pixel`. Pointers stand at the image's and channel's
// first elements.
template <typename T, PoolKind kKind>
struct WindowGradient {
  const T* x;
  const T* out;
  const T* out_grad;
  int64_t step;

  __device__ float Of(const Pool& pool, const int64_t (&at)[3], int64_t pixel, float value) const {
    const int64_t window = WindowAt(pool, at[0], at[1], at[2]) * step;
    float most = 0;
    if constexpr (kKind == PoolKind::kMax) {
      most = ToCompute(out[window]);
      if (value != most) return 0.0f;
    }
    PoolAxis::Range covers[3];
    CoverAll(pool, at, covers);
    if constexpr (kKind == PoolKind::kAverage) {
      return ToCompute(out_grad[window]) / DivisorOf(covers);
    }
    int64_t first = pixel;
    VisitWindow(pool, covers, [&](int64_t other) {
      first = other;
      return ToCompute(x[other * step]) != most;
    });
    return first == pixel ? ToCompute(out_grad[window]) : 0.0f;
  }
};

// An element collects from the windows over it, so that none is written twice.
template <typename T, PoolKind kKind>
__global__ void __launch_bounds__(kBlockThreads)
    CollectGradients(const PoolGradientArguments args, const ImageWalk inputs, int64_t out_pixels) {
  const Pool& pool = args.pool;
  const int64_t step = args.channels_last ? inputs.num_channels : 1;
  constexpr bool kTakesMax = kKind == PoolKind::kMax;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < inputs.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const Element element = ElementAt(inputs, i, out_pixels);
    const int64_t pixel = PixelAt(pool, element.at[0], element.at[1], element.at[2]);
    const T* const x = static_cast<const T*>(args.x);
    const T* const out = static_cast<const T*>(args.out);
    const WindowGradient<T, kKind> gradient = {
        kTakesMax ? x + i - pixel * step : nullptr, kTakesMax ? out + element.first : nullptr,
        static_cast<const T*>(args.out_grad) + element.first, step};
    const float value = kTakesMax ? ToCompute(x[i]) : 0.0f;
    const Windows d = WindowsOver(pool.axes[0], element.at[0]);
    const Windows h = WindowsOver(pool.axes[1], element.at[1]);
    const Windows w = WindowsOver(pool.axes[2], element.at[2]);
    float total = 0;
    for (int64_t z = d.begin; z < d.end; ++z) {
      for (int64_t y = h.begin; y < h.end; ++y) {
        for (int64_t c = w.begin; c < w.end; ++c) {
          const int64_t at[3] = {z, y, c};
          total += gradient.Of(pool, at, pixel, value);
        }
      }
    }
    static_cast<T*>(args.x_grad)[i] = FromCompute<T>(total);
  }
}

// Of x, or of what the pooling gives.
absl::StatusOr<ImageWalk> WalkImages(const Pool& pool, bool channels_last, bool outputs) {
  ImageWalk walk = {};
  walk.channels_last = channels_last;
  walk.num_channels = pool.channels;
  walk.pixels = 1;
  walk.channels = Divisor(static_cast<uint32_t>(std::max<int64_t>(pool.channels, 1)));
  for (int axis = 0; axis < 3; ++axis) {
    const nn::WindowAxis& window = pool.axes[axis].window;
    const int64_t length = outputs ? window.out : window.in;
    walk.pixels *= length;
    walk.sizes[axis] = Divisor(static_cast<uint32_t>(std::max<int64_t>(length, 1)));
  }
  walk.size = pool.batch * pool.channels * walk.pixels;
  if (walk.size <= kMostElements) return walk;
  return Unimplemented("pooling of ", walk.size, " elements on a GPU, expected at most ",
                       kMostElements);
}

}  // namespace

absl::Status PoolWindows(DType dtype, const Pool& pool, bool channels_last, const void* x,
                         void* out, cudaStream_t stream) {
  INTERP_ASSIGN_OR_RETURN(const ImageWalk inputs, WalkImages(pool, channels_last, false));
  INTERP_ASSIGN_OR_RETURN(const ImageWalk outputs, WalkImages(pool, channels_last, true));
  return WithFloats("pooling", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(PoolOutputs<T>, outputs.size, stream, pool, outputs, inputs.pixels,
                          static_cast<const T*>(x), static_cast<T*>(out));
  });
}

absl::Status PoolGradient(DType dtype, const PoolGradientArguments& args, cudaStream_t stream) {
  INTERP_ASSIGN_OR_RETURN(const ImageWalk inputs, WalkImages(args.pool, args.channels_last, false));
  INTERP_ASSIGN_OR_RETURN(const ImageWalk outputs, WalkImages(args.pool, args.channels_last, true));
  if (inputs.size == 0) return absl::OkStatus();
  return WithFloats("the gradient of pooling", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto kernel = args.pool.kind == PoolKind::kMax ? CollectGradients<T, PoolKind::kMax>
                                                         : CollectGradients<T, PoolKind::kAverage>;
    return LaunchElements(kernel, inputs.size, stream, args, inputs, outputs.pixels);
  });
}

}  // namespace interp::cuda
