#include "kernels/conv/conv_winograd_tiles.h"

#include "core/machine/processor.h"

namespace interp::nn::winograd {

template <typename T>
void TransformInputs(const ConvProblem& p, const TilePlace& place, const T* in, float* points,
                     int64_t step) {
  static const T kZeros[kLanes] = {};
  const WindowAxis& h = p.window[0];
  const WindowAxis& w = p.window[1];
  std::array<const T*, kPoints> pixels;
  std::array<int64_t, kPoints> steps;
  for (int64_t i = 0; i < kPatch; ++i) {
    const int64_t y = place.y + i * h.dilation - h.pad_begin;
    for (int64_t j = 0; j < kPatch; ++j) {
      const int64_t x = place.x + j * w.dilation - w.pad_begin;
      const bool inside = y >= 0 && y < h.in && x >= 0 && x < w.in;
      const int64_t pixel = (place.image * h.in + y) * w.in + x;
      pixels[i * kPatch + j] = inside ? in + pixel * p.in_channels : kZeros;
      steps[i * kPatch + j] = inside ? 1 : 0;
    }
  }
  for (int64_t start = 0; start < p.in_channels; start += kLanes) {
    const int64_t c = std::min(start, p.in_channels - kLanes);
    Vector half[kPatch][kPatch];
    for (int j = 0; j < kPatch; ++j) {
      Vector d[kPatch];
      Vector v[kPatch];
      for (int i = 0; i < kPatch; ++i) {
        const int at = i * kPatch + j;
        d[i] = Load(pixels[at] + c * steps[at]);
      }
      TransformPatch(d, v);
      for (int i = 0; i < kPatch; ++i) half[i][j] = v[i];
    }
    for (int i = 0; i < kPatch; ++i) {
      Vector v[kPatch];
      TransformPatch(half[i], v);
      for (int j = 0; j < kPatch; ++j) {
        Store(v[j], points + (i * kPatch + j) * step + c);
      }
    }
  }
}

template void TransformInputs(const ConvProblem&, const TilePlace&, const float*, float*, int64_t);
template void TransformInputs(const ConvProblem&, const TilePlace&, const bfloat16*, float*,
                              int64_t);

bool Computes(const ConvProblem& p) {
  if (p.window.rank != 2 || p.in_channels < kLanes) return false;
  for (int i = 0; i < 2; ++i) {
    const WindowAxis& axis = p.window[i];
    if (axis.kernel != kWindow || axis.stride != 1) return false;
  }
  return true;
}

namespace {

double VectorsOf(int64_t channels) { return static_cast<double>((channels + kLanes - 1) / kLanes); }

double ProcessorVectorBytes() {
  static const absl::string_view kLevel = ProcessorLevel();
  if (kLevel == "x86-64-v4") return 64;
  if (kLevel == "x86-64-v3") return 32;
  return kVectorBytes;
}

}  // namespace

double TilesCost(const ConvProblem& p) {
  const double products = static_cast<double>(p.in_channels) * VectorsOf(p.group_out());
  const double transforms = kTransformCost * (VectorsOf(p.in_channels) + VectorsOf(p.out_channels));
  return static_cast<double>(GridOf(p).count) * (kPoints * products + transforms);
}

double DirectCost(const ConvProblem& p, DType dtype) {
  // Products of bfloat16 have twice the elements, of which memory takes a part.
  constexpr double kBf16Speed = 1.6;
  const bool fast = dtype == DType::kBFloat16 && ProcessorHasBf16Products();
  const double outputs = static_cast<double>(p.batch * p.window[0].out * p.window[1].out);
  return outputs * kTaps * static_cast<double>(p.in_channels) * VectorsOf(p.group_out()) *
         kVectorBytes / std::max<double>(kVectorBytes, ProcessorVectorBytes()) /
         (fast ? kBf16Speed : 1);
}

}  // namespace interp::nn::winograd
