#include <bit>

#include "kernels/cuda/boxes.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

__device__ float Exp(float x) { return expf(x); }
__device__ double Exp(double x) { return exp(x); }
__device__ float LogOfSize(float x) { return logf(fabsf(x)); }
__device__ double LogOfSize(double x) { return log(fabs(x)); }
__device__ float Power(float x, float exponent) { return powf(x, exponent); }
__device__ double Power(double x, double exponent) { return pow(x, exponent); }

// The greater and the lesser one as std::max and std::min choose them where one is NaN.
template <typename T>
__device__ T Greater(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
__device__ T Lesser(T a, T b) {
  return b < a ? b : a;
}

// A pair of boxes for each thread.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) ComparePairs(const SimilarityArguments args) {
  const T pixel = args.normalized ? T{0} : T{1};
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.rows * args.columns;
       i += int64_t{gridDim.x} * blockDim.x) {
    const T* const a = static_cast<const T*>(args.x) + i / args.columns * 4;
    const T* const b = static_cast<const T*>(args.y) + i % args.columns * 4;
    const T area_a = (a[3] - a[1] + pixel) * (a[2] - a[0] + pixel);
    const T area_b = (b[3] - b[1] + pixel) * (b[2] - b[0] + pixel);
    const T height = Greater(Lesser(a[3], b[3]) - Greater(a[1], b[1]) + pixel, T{0});
    const T width = Greater(Lesser(a[2], b[2]) - Greater(a[0], b[0]) + pixel, T{0});
    const T shared = width * height;
    static_cast<T*>(args.out)[i] = shared / (area_a + area_b - shared + static_cast<T>(1e-10));
  }
}

template <typename T>
struct CenteredBox {
  T width, height, x, y;
};
template <typename T>
__device__ CenteredBox<T> Centered(const T* box, T pixel) {
  const T width = box[2] - box[0] + pixel;
  const T height = box[3] - box[1] + pixel;
  return {width, height, box[0] + width / 2, box[1] + height / 2};
}

template <typename T>
__device__ void Encode(const T* target, const CenteredBox<T>& prior, const T (&variance)[4],
                       T pixel, T* out) {
  const T x = (target[2] + target[0]) / 2;  // without the pixel that the width counts
  const T y = (target[3] + target[1]) / 2;
  out[0] = (x - prior.x) / prior.width / variance[0];
  out[1] = (y - prior.y) / prior.height / variance[1];
  out[2] = LogOfSize((target[2] - target[0] + pixel) / prior.width) / variance[2];
  out[3] = LogOfSize((target[3] - target[1] + pixel) / prior.height) / variance[3];
}

template <typename T>
__device__ void Decode(const T* offset, const CenteredBox<T>& prior, const T (&variance)[4],
                       T pixel, T* out) {
  const T x = variance[0] * offset[0] * prior.width + prior.x;
  const T y = variance[1] * offset[1] * prior.height + prior.y;
  const T width = Exp(variance[2] * offset[2]) * prior.width;
  const T height = Exp(variance[3] * offset[3]) * prior.height;
  out[0] = x - width / 2;
  out[1] = y - height / 2;
  out[2] = x + width / 2 - pixel;
  out[3] = y + height / 2 - pixel;
}

// A box for each thread.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) CodeEach(const BoxCoderArguments args) {
  const T pixel = args.normalized ? T{0} : T{1};
  const T* const target = static_cast<const T*>(args.target);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.rows * args.columns;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = i / args.columns;
    const int64_t p = args.decode && args.priors_of_rows ? row : i % args.columns;
    const CenteredBox<T> prior = Centered(static_cast<const T*>(args.priors) + p * 4, pixel);
    T variance[4];
    INTERP_UNROLL
    for (int k = 0; k < 4; ++k) {
      variance[k] = args.variances != nullptr ? static_cast<const T*>(args.variances)[p * 4 + k]
                                              : static_cast<T>(args.variance[k]);
    }
    T* const out = static_cast<T*>(args.out) + i * 4;
    if (args.decode) {
      Decode(target + i * 4, prior, variance, pixel, out);
    } else {
      Encode(target + row * 4, prior, variance, pixel, out);
    }
  }
}

// In double where the host is, for what is compared with the threshold.
template <typename T>
__device__ T Logistic(T x) {
  return static_cast<T>(1.0 / (1.0 + static_cast<double>(Exp(-x))));
}

// A cell of the planes of one anchor in one image.
template <typename T>
struct Cell {
  const T* planes;  // x, y, width, height, confidence, classes: of this cell
  const T* overlap;
  int64_t in_plane;
  int64_t image;
  int anchor;
};

template <typename T>
__device__ Cell<T> CellOf(const YoloBoxArguments& args, int64_t i) {
  const int64_t cells = args.height * args.width;
  const int64_t anchor = i / cells % args.anchors;
  const int64_t image = i / cells / args.anchors;
  const int64_t planes = args.classes + 5 + (args.iou_aware ? 1 : 0);
  const T* x = static_cast<const T*>(args.x) + image * args.anchors * planes * cells + i % cells;
  const T* const overlap = args.iou_aware ? x + anchor * cells : nullptr;
  if (args.iou_aware) x += args.anchors * cells;
  return {x + anchor * (args.classes + 5) * cells, overlap, i % cells, image,
          static_cast<int>(anchor)};
}

template <typename T>
__device__ T ConfidenceOf(const YoloBoxArguments& args, const Cell<T>& cell) {
  const T confidence = Logistic(cell.planes[4 * args.height * args.width]);
  if (cell.overlap == nullptr) return confidence;
  return Power(confidence, static_cast<T>(1. - args.iou_aware_factor)) *
         Power(Logistic(*cell.overlap), static_cast<T>(args.iou_aware_factor));
}

template <typename T>
__device__ void WriteBox(const YoloBoxArguments& args, const Cell<T>& cell, T* box) {
  const int64_t cells = args.height * args.width;
  const auto image_height = static_cast<T>(args.image_sizes[2 * cell.image]);
  const auto image_width = static_cast<T>(args.image_sizes[2 * cell.image + 1]);
  const T* const p = cell.planes;
  const T scale = args.scale_x_y;
  const T bias = -0.5f * (args.scale_x_y - 1.0f);
  const auto column = static_cast<T>(cell.in_plane % args.width);
  const auto row = static_cast<T>(cell.in_plane / args.width);
  const T x = (column + Logistic(p[0]) * scale + bias) * image_width / static_cast<T>(args.width);
  const T y =
      (row + Logistic(p[cells]) * scale + bias) * image_height / static_cast<T>(args.height);
  const T width = Exp(p[2 * cells]) * static_cast<T>(args.anchor_sizes[2 * cell.anchor]) *
                  image_width / static_cast<T>(args.downsample_ratio * args.width);
  const T height = Exp(p[3 * cells]) * static_cast<T>(args.anchor_sizes[2 * cell.anchor + 1]) *
                   image_height / static_cast<T>(args.downsample_ratio * args.height);
  const T left = x - width / 2;
  const T top = y - height / 2;
  const T right = x + width / 2;
  const T bottom = y + height / 2;
  const T last_x = image_width - 1;
  const T last_y = image_height - 1;
  box[0] = !args.clip || left > 0 ? left : T{0};
  box[1] = !args.clip || top > 0 ? top : T{0};
  box[2] = !args.clip || right < last_x ? right : last_x;
  box[3] = !args.clip || bottom < last_y ? bottom : last_y;
}

// A cell for each thread: neighbours read neighbouring elements of a plane.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) ReadCells(const YoloBoxArguments args) {
  const int64_t cells = args.height * args.width;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < args.images * args.anchors * cells; i += int64_t{gridDim.x} * blockDim.x) {
    const Cell<T> cell = CellOf<T>(args, i);
    const T confidence = ConfidenceOf(args, cell);
    const bool counts = !(confidence < static_cast<T>(args.threshold)) && confidence != T{0};
    T* const box = static_cast<T*>(args.boxes) + i * 4;
    if (confidence < static_cast<T>(args.threshold)) {
      for (int k = 0; k < 4; ++k) box[k] = T{0};
    } else {
      WriteBox(args, cell, box);
    }
    T* const scores = static_cast<T*>(args.scores) + i * args.classes;
    for (int64_t c = 0; c < args.classes; ++c) {
      scores[c] = counts ? confidence * Logistic(cell.planes[(5 + c) * cells]) : T{0};
    }
  }
}

// A box for each thread.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) PlacePriors(const PriorBoxArguments args) {
  const T image[2] = {static_cast<T>(args.image_width), static_cast<T>(args.image_height)};
  const T step[2] = {static_cast<T>(args.step_width), static_cast<T>(args.step_height)};
  const T offset = static_cast<T>(args.offset);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < args.height * args.width * args.priors; i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t cell = i / args.priors;
    const int64_t place[2] = {cell % args.width, cell / args.width};
    T* const box = static_cast<T*>(args.boxes) + i * 4;
    T* const variances = static_cast<T*>(args.variances) + i * 4;
    INTERP_UNROLL
    for (int d = 0; d < 2; ++d) {
      const T center = (static_cast<T>(place[d]) + offset) * step[d];
      const T half = static_cast<T>(std::bit_cast<double>(args.halves[i % args.priors * 2 + d]));
      const T from = (center - half) / image[d];
      const T to = (center + half) / image[d];
      box[d] = args.clip ? Lesser(Greater(from, T{0}), T{1}) : from;
      box[d + 2] = args.clip ? Lesser(Greater(to, T{0}), T{1}) : to;
    }
    INTERP_UNROLL
    for (int k = 0; k < 4; ++k) variances[k] = args.variance[k];
  }
}

absl::Status CheckBoxType(DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) return absl::OkStatus();
  return Unimplemented("boxes of ", Name(dtype), " on a GPU");
}

template <typename Arguments>
absl::Status RunEach(DType dtype, void (*of_float)(Arguments), void (*of_double)(Arguments),
                     int64_t size, const Arguments& args, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckBoxType(dtype));
  return LaunchElements(dtype == DType::kFloat32 ? of_float : of_double, size, stream, args);
}

}  // namespace

absl::Status BoxSimilarity(DType dtype, const SimilarityArguments& arguments, cudaStream_t stream) {
  return RunEach<SimilarityArguments>(dtype, ComparePairs<float>, ComparePairs<double>,
                                      arguments.rows * arguments.columns, arguments, stream);
}

absl::Status CodeBoxes(DType dtype, const BoxCoderArguments& arguments, cudaStream_t stream) {
  return RunEach<BoxCoderArguments>(dtype, CodeEach<float>, CodeEach<double>,
                                    arguments.rows * arguments.columns, arguments, stream);
}

absl::Status PriorBoxes(DType dtype, const PriorBoxArguments& arguments, cudaStream_t stream) {
  return RunEach<PriorBoxArguments>(dtype, PlacePriors<float>, PlacePriors<double>,
                                    arguments.height * arguments.width * arguments.priors,
                                    arguments, stream);
}

absl::Status YoloBoxes(DType dtype, const YoloBoxArguments& arguments, cudaStream_t stream) {
  if (arguments.anchors > kMostYoloAnchors) {
    return Unimplemented("yolo_box of ", arguments.anchors, " anchors on a GPU, expected at most ",
                         kMostYoloAnchors);
  }
  const int64_t size = arguments.images * arguments.anchors * arguments.height * arguments.width;
  return RunEach<YoloBoxArguments>(dtype, ReadCells<float>, ReadCells<double>, size, arguments,
                                   stream);
}

}  // namespace interp::cuda
