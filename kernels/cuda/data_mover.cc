// Moves data on GPUs for the ops of kernels/util/data_mover.h, which have rows of their own.
#include "kernels/util/data_mover.h"

#include <algorithm>

#include "kernels/cuda/box_copy.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/strided_copy.h"

namespace interp::cuda {
namespace {

class CudaMover : public DataMover {
 public:
  absl::Status Copy(const KernelContext& ctx, size_t element_bytes, absl::Span<const CopyDim> dims,
                    const void* src, void* dst) const override {
    return CopyBox(element_bytes, dims, src, dst, StreamOf(ctx));
  }

  absl::Status Fill(const KernelContext& ctx, size_t element_bytes, const ScalarBytes& value,
                    void* dst, int64_t count) const override {
    return FillWith(static_cast<int>(element_bytes), value.bytes.data(), dst, count, StreamOf(ctx));
  }
};

const bool registered = [] {
  static const CudaMover mover;
  SetDataMover(PlaceKind::kCuda, &mover);
  return true;
}();

}  // namespace

absl::Status CopyBox(size_t element_bytes, absl::Span<const CopyDim> dims, const void* src,
                     void* dst, cudaStream_t stream) {
  CopyDims sorted;
  for (const CopyDim& dim : dims) {
    if (dim.size != 1) sorted.push_back(dim);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const CopyDim& a, const CopyDim& b) { return a.dst_stride > b.dst_stride; });
  absl::InlinedVector<int64_t, kMaxCopyRank> sizes;
  absl::InlinedVector<int64_t, kMaxCopyRank> from;
  absl::InlinedVector<int64_t, kMaxCopyRank> to;
  for (const CopyDim& dim : sorted) {
    sizes.push_back(dim.size);
    from.push_back(dim.src_stride);
    to.push_back(dim.dst_stride);
  }
  return StridedCopy(static_cast<int>(element_bytes), sizes, {src, from}, {dst, to}, stream);
}

}  // namespace interp::cuda
