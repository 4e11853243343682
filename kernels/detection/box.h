// Area and overlap of axis-aligned boxes [xmin, ymin, xmax, ymax], as non-maximum suppression
// defines them.
//
// The arithmetic is Paddle's to the last bit, NaN and degenerate boxes included: which of two
// detections survives depends on a comparison of overlaps with a threshold. The folder is compiled
// without contraction into fused multiply-adds for the same reason.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace interp {

// 0 when a maximum lies below its minimum. Boxes that are not normalised count pixels: a box from 3
// to 3 is one pixel wide.
template <typename T>
T BoxArea(const T* box, bool normalized) {
  if (box[2] < box[0] || box[3] < box[1]) return T{0};
  const T pixel = normalized ? T{0} : T{1};
  return (box[2] - box[0] + pixel) * (box[3] - box[1] + pixel);
}

// Intersection over union. NaN when two boxes without area coincide.
template <typename T>
inline T BoxOverlap(T xmin, T ymin, T xmax, T ymax, T area, T other_xmin, T other_ymin,
                    T other_xmax, T other_ymax, T other_area, T pixel) {
  const bool apart =
      (other_xmin > xmax) | (other_xmax < xmin) | (other_ymin > ymax) | (other_ymax < ymin);
  const T width = std::min(xmax, other_xmax) - std::max(xmin, other_xmin) + pixel;
  const T height = std::min(ymax, other_ymax) - std::max(ymin, other_ymin) + pixel;
  const T inter = width * height;
  const T overlap = inter / (area + other_area - inter);
  return apart ? T{0} : overlap;
}

// Boxes by coordinate, so that one box can be compared with many in vector registers.
template <typename T>
class BoxList {
 public:
  explicit BoxList(bool normalized) : normalized_(normalized), pixel_(normalized ? T{0} : T{1}) {}

  int64_t size() const { return static_cast<int64_t>(area_.size()); }
  void clear() {
    for (std::vector<T>* v : {&xmin_, &ymin_, &xmax_, &ymax_, &area_}) v->clear();
  }
  void Add(const T* box) {
    xmin_.push_back(box[0]);
    ymin_.push_back(box[1]);
    xmax_.push_back(box[2]);
    ymax_.push_back(box[3]);
    area_.push_back(BoxArea(box, normalized_));
  }

  // Writes the overlaps of `box` with the boxes [begin, end) to out[0, end - begin).
  void Overlaps(const T* box, int64_t begin, int64_t end, T* out) const {
    const T area = BoxArea(box, normalized_);
    for (int64_t i = begin; i < end; ++i) {
      out[i - begin] = BoxOverlap(box[0], box[1], box[2], box[3], area, xmin_[i], ymin_[i],
                                  xmax_[i], ymax_[i], area_[i], pixel_);
    }
  }

  // True when every overlap of `box` is at most `threshold`; a NaN overlap is not.
  bool AllOverlapsWithin(const T* box, T threshold) const {
    constexpr int64_t kBlock = 32;  // long enough for vectors, short enough to stop early
    const T area = BoxArea(box, normalized_);
    for (int64_t begin = 0; begin < size(); begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, size());
      int beyond = 0;
      for (int64_t i = begin; i < end; ++i) {
        const T overlap = BoxOverlap(box[0], box[1], box[2], box[3], area, xmin_[i], ymin_[i],
                                     xmax_[i], ymax_[i], area_[i], pixel_);
        beyond |= !(overlap <= threshold);
      }
      if (beyond != 0) return false;
    }
    return true;
  }

 private:
  bool normalized_;
  T pixel_;
  std::vector<T> xmin_, ymin_, xmax_, ymax_, area_;
};

}  // namespace interp
