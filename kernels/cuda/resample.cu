#include "kernels/cuda/element_bytes.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/resample.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// The neighbours that a coordinate of the output lies between.
struct Neighbours {
  int64_t low;
  int64_t high;
  float distance;  // from `low`; the weight of `high`

  __device__ int64_t at(int k) const { return k == 0 ? low : high; }
  __device__ float weight(int k) const { return k == 0 ? 1.0f - distance : distance; }
};

// `position` cut off to a whole number and moved into [0, length); NaN goes to the end.
__device__ int64_t ToIndex(double position, int64_t length) {
  if (!(position < static_cast<double>(length))) return length - 1;
  return position > 0 ? static_cast<int64_t>(position) : 0;
}

// Rounded as often as on the host: a product that went through double is not contracted with what
// follows.
__device__ float Product(float a, float b) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
}

__device__ Neighbours NeighboursOf(const CoordinateMap& map, bool nearest, int64_t target) {
  const auto i = static_cast<float>(target);
  if (nearest) {
    const float source = Product(map.ratio, i);
    const double rounded = map.align_corners ? source + 0.5 : source;
    const int64_t index = ToIndex(rounded, map.in);
    return {index, index, 0.0f};
  }
  const float source = map.half_pixel ? Product(map.ratio, i + 0.5f) - 0.5f : Product(map.ratio, i);
  const float clipped = source < 0.0f ? 0.0f : source;  // NaN stays
  const int64_t low = ToIndex(clipped, map.in);
  return {low, ToIndex(static_cast<double>(low + 1), map.in), clipped - static_cast<float>(low)};
}

// An element of an image of `size`.
struct Position {
  int64_t outer;
  int64_t at[3];
  int64_t inner;
};
__device__ Position PositionOf(int64_t offset, const int64_t (&size)[3], int64_t inner) {
  Position position = {};
  position.inner = offset % inner;
  offset /= inner;
  for (int axis = 2; axis >= 0; --axis) {
    position.at[axis] = offset % size[axis];
    offset /= size[axis];
  }
  position.outer = offset;
  return position;
}
__device__ int64_t OffsetOf(const int64_t (&size)[3], int64_t inner, const Position& position) {
  int64_t offset = position.outer;
  for (int axis = 0; axis < 3; ++axis) offset = offset * size[axis] + position.at[axis];
  return offset * inner + position.inner;
}

__device__ int64_t ElementsOf(const ImageView& view, const int64_t (&size)[3]) {
  return view.outer * size[0] * size[1] * size[2] * view.inner;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) CopyNearest(const ResampleArguments args) {
  const ImageView& view = args.view;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < ElementsOf(view, view.out);
       i += int64_t{gridDim.x} * blockDim.x) {
    Position position = PositionOf(i, view.out, view.inner);
    for (int axis = 0; axis < 3; ++axis) {
      position.at[axis] = NeighboursOf(args.maps[axis], true, position.at[axis]).low;
    }
    static_cast<T*>(args.out)[i] =
        static_cast<const T*>(args.in)[OffsetOf(view.in, view.inner, position)];
  }
}

// As on the host, rows are blended before their pixels, and those of weight 0 are not read.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) BlendLinear(const ResampleArguments args) {
  using C = ComputeType<T>;
  const ImageView& view = args.view;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < ElementsOf(view, view.out);
       i += int64_t{gridDim.x} * blockDim.x) {
    Position position = PositionOf(i, view.out, view.inner);
    const Neighbours depth = NeighboursOf(args.maps[0], false, position.at[0]);
    const Neighbours height = NeighboursOf(args.maps[1], false, position.at[1]);
    const Neighbours width = NeighboursOf(args.maps[2], false, position.at[2]);
    C sums[2] = {};
    for (int row = 0; row < 4; ++row) {
      const C weight = C{depth.weight(row / 2)} * C{height.weight(row % 2)};
      if (weight == 0) continue;
      position.at[0] = depth.at(row / 2);
      position.at[1] = height.at(row % 2);
      for (int k = 0; k < 2; ++k) {
        position.at[2] = width.at(k);
        const int64_t from = OffsetOf(view.in, view.inner, position);
        sums[k] += ToCompute(static_cast<const T*>(args.in)[from]) * weight;
      }
    }
    static_cast<T*>(args.out)[i] =
        FromCompute<T>(sums[0] * C{width.weight(0)} + sums[1] * C{width.weight(1)});
  }
}

// Coordinates [begin, end) of the output.
struct Range {
  int64_t begin;
  int64_t end;
};

// The first coordinate of the output whose lower neighbour is `index` or a later one: those never
// decrease.
__device__ int64_t FirstReaching(const CoordinateMap& map, bool nearest, int64_t index) {
  int64_t low = 0;
  int64_t high = map.out;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (NeighboursOf(map, nearest, middle).low < index) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The coordinates that element `index` is a neighbour of.
__device__ Range TakersOf(const CoordinateMap& map, bool nearest, int64_t index) {
  return {FirstReaching(map, nearest, nearest ? index : index - 1),
          FirstReaching(map, nearest, index + 1)};
}

// What element `index` gives to coordinate `target`.
__device__ float WeightOf(const CoordinateMap& map, bool nearest, int64_t index, int64_t target) {
  const Neighbours neighbours = NeighboursOf(map, nearest, target);
  return (neighbours.low == index ? neighbours.weight(0) : 0.0f) +
         (neighbours.high == index ? neighbours.weight(1) : 0.0f);
}

// A thread for each element of the input adds up what it gave.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) AddUpTakers(const ResampleArguments args) {
  using C = ComputeType<T>;
  const ImageView& view = args.view;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < ElementsOf(view, view.in);
       i += int64_t{gridDim.x} * blockDim.x) {
    const Position own = PositionOf(i, view.in, view.inner);
    const auto takers = [&](int axis) {
      return TakersOf(args.maps[axis], args.nearest, own.at[axis]);
    };
    const auto weight = [&](int axis, int64_t target) {
      return C{WeightOf(args.maps[axis], args.nearest, own.at[axis], target)};
    };
    const Range depth = takers(0);
    const Range height = takers(1);
    const Range width = takers(2);
    C total{0};
    for (int64_t d = depth.begin; d < depth.end; ++d) {
      for (int64_t h = height.begin; h < height.end; ++h) {
        const C of_row = weight(0, d) * weight(1, h);
        if (of_row == 0) continue;
        C sum{0};
        for (int64_t w = width.begin; w < width.end; ++w) {
          const int64_t from = OffsetOf(view.out, view.inner, {own.outer, {d, h, w}, own.inner});
          sum += weight(2, w) * ToCompute(static_cast<const T*>(args.in)[from]);
        }
        total += of_row * sum;
      }
    }
    static_cast<T*>(args.out)[i] = FromCompute<T>(total);
  }
}

int64_t SizeOfImages(const ImageView& view, const int64_t (&size)[3]) {
  return view.outer * size[0] * size[1] * size[2] * view.inner;
}

// Calls function(Type<T>()) for the floats that are interpolated.
template <typename Function>
absl::Status WithPixels(DType dtype, Function function) {
  if (dtype == DType::kFloat64) return function(Type<double>());
  return WithFloats("interpolation", dtype, function);
}

}  // namespace

absl::Status Resample(DType dtype, const ResampleArguments& arguments, cudaStream_t stream) {
  const int64_t size = SizeOfImages(arguments.view, arguments.view.out);
  if (size == 0) return absl::OkStatus();
  if (arguments.nearest) {
    return WithBytes(static_cast<int>(SizeOf(dtype)), [&](auto type) {
      return LaunchElements(CopyNearest<typename decltype(type)::type>, size, stream, arguments);
    });
  }
  return WithPixels(dtype, [&](auto type) {
    return LaunchElements(BlendLinear<typename decltype(type)::type>, size, stream, arguments);
  });
}

absl::Status ResampleGradient(DType dtype, const ResampleArguments& arguments,
                              cudaStream_t stream) {
  const int64_t size = SizeOfImages(arguments.view, arguments.view.in);
  return WithPixels(dtype, [&](auto type) {
    return LaunchElements(AddUpTakers<typename decltype(type)::type>, size, stream, arguments);
  });
}

}  // namespace interp::cuda
