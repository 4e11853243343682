// Nested loops over tensors, whatever their layout: as few as a walk over two tensors needs.
#pragma once

#include <array>
#include <cstdint>

#include "core/tensor.h"
#include "kernels/util/strides.h"

namespace interp {

// Logical dimensions of the tensor from the slowest to the fastest in memory.
std::array<int, kMaxRank> MemoryOrder(const Tensor& tensor);

// One loop of a walk over two tensors: how far each moves per iteration, in elements.
struct Loop {
  int64_t size = 1;
  int64_t x_step = 0;
  int64_t y_step = 0;
};

// Loops from the outermost to the innermost.
class LoopNest {
 public:
  // Adds a loop inside the others; where both tensors just go on, it lengthens the innermost.
  void Add(const Loop& loop) {
    if (size_ > 0) {
      Loop& outer = loops_[size_ - 1];
      if (outer.x_step == loop.size * loop.x_step && outer.y_step == loop.size * loop.y_step) {
        outer = {outer.size * loop.size, loop.x_step, loop.y_step};
        return;
      }
    }
    loops_[size_++] = loop;
  }
  // Removes and returns the innermost loop. REQUIRES: size() > 0.
  Loop Pop() { return loops_[--size_]; }

  int size() const { return size_; }
  const Loop& operator[](int i) const { return loops_[i]; }
  const Loop& innermost() const { return loops_[size_ - 1]; }
  // Iterations of all loops together; 1 without loops.
  int64_t count() const {
    int64_t count = 1;
    for (int i = 0; i < size_; ++i) count *= loops_[i].size;
    return count;
  }

 private:
  int size_ = 0;
  std::array<Loop, kMaxRank> loops_;
};

// Walks the iterations of a nest in order and knows where both tensors are.
class LoopCursor {
 public:
  // Starts at iteration `index` of nest.count(). `nest` must outlive the cursor.
  explicit LoopCursor(const LoopNest& nest, int64_t index = 0);
  int64_t x() const { return x_; }
  int64_t y() const { return y_; }
  void Next() {
    for (int i = nest_.size() - 1; i >= 0; --i) {
      const Loop& loop = nest_[i];
      x_ += loop.x_step;
      y_ += loop.y_step;
      if (++index_[i] < loop.size) return;
      index_[i] = 0;
      x_ -= loop.x_step * loop.size;
      y_ -= loop.y_step * loop.size;
    }
  }

 private:
  const LoopNest& nest_;
  std::array<int64_t, kMaxRank> index_ = {};
  int64_t x_ = 0;
  int64_t y_ = 0;
};

}  // namespace interp
