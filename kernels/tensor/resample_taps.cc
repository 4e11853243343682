// Where the pixels of a resampled image come from, and by which weights. A file of its own, as it
// is compiled without contraction into fused multiply-adds: a coordinate is rounded as often as
// Paddle's.
#include <cmath>

#include "kernels/tensor/resample.h"

namespace interp {
namespace {

template <typename Weight>
void Prepare(Taps<Weight>& taps, int count, int64_t out) {
  taps.count = count;
  taps.index.resize(count * out);
  taps.weight.resize(count * out);
}

// `position` cut off to a whole number and moved into [0, length); NaN goes to the end.
int32_t ToIndex(double position, int64_t length) {
  if (!(position < static_cast<double>(length))) return static_cast<int32_t>(length - 1);
  return position > 0 ? static_cast<int32_t>(position) : 0;
}

// The weights of the four neighbours of a point at distance t (0 to 1) behind the second of them:
// Keys' cubic kernel with A = -0.75.
template <typename Weight>
void CubicWeights(Weight t, Weight (&weights)[4]) {
  constexpr Weight a = static_cast<Weight>(-0.75);
  const auto near = [](Weight x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](Weight x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  weights[0] = far(t + 1);
  weights[1] = near(t);
  weights[2] = near(1 - t);
  weights[3] = far(2 - t);
}

// Where the centre of an output pixel lies in the input.
double CentreSource(const CoordinateMap& map, int64_t target) {
  if (!map.in_double) return map.ratio * (static_cast<float>(target) + 0.5f) - 0.5f;
  return map.ratio * (static_cast<double>(target) + 0.5) - 0.5;
}

template <typename Weight>
Weight CubicSource(const CoordinateMap& map, int64_t target) {
  if (map.align_corners) return map.ratio * static_cast<float>(target);
  return static_cast<Weight>(CentreSource(map, target));
}

}  // namespace

template <typename Weight>
void NearestTaps(const CoordinateMap& map, Taps<Weight>& taps) {
  Prepare(taps, 1, map.out);
  for (int64_t i = 0; i < map.out; ++i) {
    const float source = map.ratio * static_cast<float>(i);
    const double rounded = map.align_corners ? source + 0.5 : source;
    taps.index[i] = ToIndex(rounded, map.in);
    taps.weight[i] = 1;
  }
}

template <typename Weight>
void LinearTaps(const CoordinateMap& map, Taps<Weight>& taps) {
  Prepare(taps, 2, map.out);
  for (int64_t i = 0; i < map.out; ++i) {
    const float source = map.half_pixel ? static_cast<float>(CentreSource(map, i))
                                        : map.ratio * static_cast<float>(i);
    const float clipped = std::max(source, 0.0f);
    const int32_t low = ToIndex(clipped, map.in);
    const float distance = clipped - static_cast<float>(low);
    taps.index[i] = low;
    taps.index[map.out + i] = ToIndex(low + 1, map.in);
    taps.weight[i] = 1.0f - distance;
    taps.weight[map.out + i] = distance;
  }
}

template <typename Weight>
void CubicTaps(const CoordinateMap& map, Taps<Weight>& taps) {
  Prepare(taps, 4, map.out);
  for (int64_t i = 0; i < map.out; ++i) {
    const Weight source = CubicSource<Weight>(map, i);
    const Weight floor = std::floor(source);
    Weight weights[4];
    CubicWeights<Weight>(source - floor, weights);
    for (int k = 0; k < 4; ++k) {
      taps.index[k * map.out + i] = ToIndex(floor + k - 1, map.in);
      taps.weight[k * map.out + i] = weights[k];
    }
  }
}

template void NearestTaps(const CoordinateMap&, Taps<float>&);
template void NearestTaps(const CoordinateMap&, Taps<double>&);
template void LinearTaps(const CoordinateMap&, Taps<float>&);
template void LinearTaps(const CoordinateMap&, Taps<double>&);
template void CubicTaps(const CoordinateMap&, Taps<float>&);
template void CubicTaps(const CoordinateMap&, Taps<double>&);

}  // namespace interp
