// What ops that only move data do to memory: on the host by the loops of strided_copy.h, on a
// device by what its library brings along. Such an op says with MoveKernels that its kernel touches
// memory in no other way, and runs wherever there is a mover:
//
//   absl::Status Flatten(KernelContext& ctx) {
//     return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
//   }
//   INTERP_REGISTER_OP(OpDef{.type = "flatten", .kernels = MoveKernels(Flatten), ...});
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/strided_copy.h"

namespace interp {

// Of one kind of device. Thread-safety: all methods from any thread.
class DataMover {
 public:
  virtual ~DataMover() = default;
  // CopyStrided and FillElements of strided_copy.h, enqueued on the stream of `ctx`.
  virtual absl::Status Copy(const KernelContext& ctx, size_t element_bytes,
                            absl::Span<const CopyDim> dims, const void* src, void* dst) const = 0;
  virtual absl::Status Fill(const KernelContext& ctx, size_t element_bytes,
                            const ScalarBytes& value, void* dst, int64_t count) const = 0;
};

// `mover`, which lives for ever, serves devices of that kind from now on.
void SetDataMover(PlaceKind kind, const DataMover* mover);

// Whether what the functions below write lies on a device, where each call is a launch.
bool MovesOnDevice(const Tensor& out);

// A place in a tensor: `offset` elements after the first one in memory.
struct ReadFrom {
  const Tensor& tensor;
  int64_t offset = 0;
};
struct WriteTo {
  Tensor& tensor;
  int64_t offset = 0;
};

// Copies a box of elements between tensors of one dtype on the place of `to`; strides are those of
// the tensors. REQUIRES: as CopyStrided of strided_copy.h. Unimplemented on a device without a
// mover, as with all functions here.
absl::Status CopyStrided(const KernelContext& ctx, absl::Span<const CopyDim> dims,
                         const ReadFrom& from, const WriteTo& to);

// Copies `in` to `out` across layouts. REQUIRES: same shape and dtype, both have memory.
absl::Status CopyTensor(const KernelContext& ctx, const Tensor& in, Tensor& out);

// Copies the elements of `in` to `out` unless both are the same memory already, which is how the
// plan realises a view. REQUIRES: same dtype, layout and number of elements.
absl::Status CopyUnlessShared(const KernelContext& ctx, const Tensor& in, Tensor& out);

// Sets every element of `out` to `value`, or to 0.
absl::Status FillElements(const KernelContext& ctx, const ScalarBytes& value, Tensor& out);
absl::Status FillZero(const KernelContext& ctx, Tensor& out);

// The rows of a kernel that touches memory by the functions above alone: every dtype, on the host
// and on devices with a mover.
std::vector<KernelDef> MoveKernels(KernelFn run);
// The row for devices of one kernel that has others, or only some dtypes.
KernelDef DeviceMoveKernel(DType dtype, KernelFn run, bool (*takes)(const void* attrs) = nullptr);

}  // namespace interp
