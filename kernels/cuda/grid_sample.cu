#include <algorithm>

#include "kernels/cuda/grid_sample.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

template <typename T>
__device__ T Reflect(T position, T period) {
  const T magnitude = fabs(position);
  const T rest = magnitude - floor(magnitude / period) * period;
  return std::min(rest, period - rest);
}

// The pixel coordinate of `value` on an axis of `size` pixels, after padding.
template <typename T>
__device__ T PixelOf(const GridSample& sample, T value, int64_t size) {
  const T last = static_cast<T>(size - 1);
  const T half = static_cast<T>(0.5);
  T at = sample.align_corners ? (value + 1) * (last * half)
                              : (value + 1) * (static_cast<T>(size) * half) - half;
  if (sample.padding == SamplePadding::kReflection) {
    if (sample.align_corners) return size == 1 ? T{0} : Reflect(at, 2 * last);
    at = Reflect(at + half, 2 * static_cast<T>(size)) - half;
  }
  return sample.padding == SamplePadding::kZeros ? at : std::min(std::max(at, T{0}), last);
}

// The two neighbours on an axis, -1 outside of the image; the second of a nearest one has no
// weight.
template <typename T>
struct AxisNeighbours {
  int64_t index[2] = {-1, -1};
  T weight[2] = {0, 0};

  __device__ void Set(int side, T position, T its_weight, int64_t size) {
    const bool inside = position >= 0 && position <= static_cast<T>(size - 1);
    index[side] = inside ? static_cast<int64_t>(position) : -1;
    weight[side] = its_weight;
  }
};

template <typename T, int kAxes>
__device__ AxisNeighbours<T> NeighboursAt(const GridSample& sample, T position, int64_t size) {
  AxisNeighbours<T> neighbours;
  if (sample.nearest) {
    // As on the host, in volumes a point is outside before it is rounded.
    const bool outside = kAxes == 3 && !(position >= 0 && position <= static_cast<T>(size - 1));
    neighbours.Set(0, outside ? T{-1} : round(position), T{1}, size);
    return neighbours;
  }
  const T low = floor(position);
  neighbours.Set(0, low, low + 1 - position, size);
  neighbours.Set(1, low + 1, position - low, size);
  return neighbours;
}

// Where the neighbours of a point lie in a channel, -1 outside, and what they count.
template <typename T, int kAxes>
struct Corners {
  int64_t offset[1 << kAxes];
  T weight[1 << kAxes];

  // `point` has the innermost axis first.
  __device__ Corners(const GridSample& sample, const T* point) {
    offset[0] = 0;
    weight[0] = 1;
    int64_t stride = 1;
    INTERP_UNROLL
    for (int k = 0; k < kAxes; ++k) {
      const int64_t size = sample.size[kAxes - 1 - k];
      const AxisNeighbours<T> here =
          NeighboursAt<T, kAxes>(sample, PixelOf(sample, point[k], size), size);
      INTERP_UNROLL
      for (int from = 0; from < 1 << k; ++from) {
        const int64_t base = offset[from];
        const T count = weight[from];
        INTERP_UNROLL
        for (int side = 0; side < 2; ++side) {
          const int64_t index = here.index[side];
          offset[from + (side << k)] = base < 0 || index < 0 ? -1 : base + index * stride;
          weight[from + (side << k)] = count * here.weight[side];
        }
      }
      stride *= size;
    }
  }
};

// A point for each thread, which goes through the channels: neighbours write neighbours.
template <typename T, int kAxes>
__global__ void __launch_bounds__(kBlockThreads) SamplePoints(const GridSample sample) {
  int64_t plane = 1;
  for (int axis = 0; axis < kAxes; ++axis) plane *= sample.size[axis];
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < sample.images * sample.points; i += int64_t{gridDim.x} * blockDim.x) {
    const Corners<T, kAxes> corners(sample, static_cast<const T*>(sample.grid) + i * kAxes);
    const int64_t image = i / sample.points;
    const T* in = static_cast<const T*>(sample.x) + image * sample.channels * plane;
    T* out =
        static_cast<T*>(sample.out) + image * sample.channels * sample.points + i % sample.points;
    for (int64_t c = 0; c < sample.channels; ++c, in += plane, out += sample.points) {
      T sum = 0;
      INTERP_UNROLL
      for (int k = 0; k < 1 << kAxes; ++k) {
        sum += (corners.offset[k] < 0 ? T{0} : in[corners.offset[k]]) * corners.weight[k];
      }
      *out = sum;
    }
  }
}

}  // namespace

absl::Status SampleGrid(DType dtype, const GridSample& sample, cudaStream_t stream) {
  if (sample.channels == 0) return absl::OkStatus();
  return WithWideFloats("grid_sampler", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(sample.axes == 2 ? SamplePoints<T, 2> : SamplePoints<T, 3>,
                          sample.images * sample.points, stream, sample);
  });
}

}  // namespace interp::cuda
