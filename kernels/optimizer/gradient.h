// The gradient of one parameter, a tensor or selected rows, in chunks of the parameter.
#pragma once

#include <algorithm>
#include <memory>

#include "core/op_context.h"
#include "kernels/optimizer/chunk.h"
#include "kernels/util/rows.h"

namespace interp::optimizer {

// What an update does with rows of the parameter that selected rows do not list.
enum class MissingRows {
  kZero,       // updates them with a gradient of zero
  kUntouched,  // leaves them and their states as they are
  kAlone,      // updates them with a gradient of zero, and no others
};

// Some elements of a parameter and their gradient.
template <typename M>
struct GradientChunk {
  int64_t at = 0;
  int64_t size = 0;  // at most kChunk
  const M* values = nullptr;
};

template <typename M>
class Gradient {
 public:
  Gradient() = default;
  // `dense` is borrowed.
  explicit Gradient(const Tensor& dense) : numel_(dense.numel()), dense_(&dense) {}
  // Of selected rows, added up where they repeat, for a parameter of that shape.
  static absl::StatusOr<Gradient> OfRows(const KernelContext& ctx, const Variable& rows,
                                         const Shape& parameter, MissingRows missing);

  bool leaves_rows_untouched() const { return missing_ != MissingRows::kZero; }
  int64_t num_chunks() const {
    return leaves_rows_untouched() ? plan_->size() * NumChunks(width_) : NumChunks(numel_);
  }
  // The c-th chunk. `buffer` has room for kChunk elements.
  GradientChunk<M> Chunk(int64_t c, M* buffer) const {
    if (leaves_rows_untouched()) return ListedChunk(c);
    GradientChunk<M> chunk{.at = c * kChunk, .size = std::min(kChunk, numel_ - c * kChunk)};
    if (dense_ != nullptr) {
      chunk.values = LoadChunk(*dense_, chunk.at, chunk.size, buffer);
    } else {
      Scatter(chunk.at, chunk.size, buffer);
      chunk.values = buffer;
    }
    return chunk;
  }

 private:
  GradientChunk<M> ListedChunk(int64_t c) const;
  // Elements [at, at + n) of the tall tensor, zero where no row is listed.
  void Scatter(int64_t at, int64_t n, M* out) const;

  int64_t numel_ = 0;  // of the parameter
  const Tensor* dense_ = nullptr;
  // Of selected rows.
  std::shared_ptr<const MergePlan> plan_;
  std::shared_ptr<const Workspace> values_;  // of the merged rows; of kAlone one row of zeros
  int64_t width_ = 0;
  MissingRows missing_ = MissingRows::kZero;
};

}  // namespace interp::optimizer
