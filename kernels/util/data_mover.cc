#include "kernels/util/data_mover.h"

#include <array>
#include <atomic>
#include <cstring>

namespace interp {
namespace {

std::atomic<const DataMover*>& MoverOf(PlaceKind kind) {
  static std::array<std::atomic<const DataMover*>, static_cast<size_t>(PlaceKind::kCuda) + 1>
      movers;
  return movers[static_cast<size_t>(kind)];
}

absl::StatusOr<const DataMover*> DeviceMoverOf(const Tensor& out) {
  const DataMover* const mover = MoverOf(out.place().kind).load(std::memory_order_acquire);
  if (mover != nullptr) return mover;
  return Unimplemented("moving data on ", Name(out.place()), " without the library for it");
}

}  // namespace

void SetDataMover(PlaceKind kind, const DataMover* mover) {
  MoverOf(kind).store(mover, std::memory_order_release);
}

// Kernels of the host serve simulated devices, too.
bool MovesOnDevice(const Tensor& out) { return out.place().kind == PlaceKind::kCuda; }

absl::Status CopyStrided(const KernelContext& ctx, absl::Span<const CopyDim> dims,
                         const ReadFrom& from, const WriteTo& to) {
  const size_t bytes = SizeOf(to.tensor.dtype);
  const void* const src = At(from.tensor.raw_data(), from.offset, bytes);
  void* const dst = At(to.tensor.mutable_raw_data(), to.offset, bytes);
  if (!MovesOnDevice(to.tensor)) {
    CopyStrided(ctx.num_threads(), bytes, dims, src, dst);
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(const DataMover* const mover, DeviceMoverOf(to.tensor));
  return mover->Copy(ctx, bytes, dims, src, dst);
}

absl::Status CopyTensor(const KernelContext& ctx, const Tensor& in, Tensor& out) {
  const Strides from = StridesOf(in);
  const Strides to = StridesOf(out);
  CopyDims dims;
  for (int i = 0; i < in.shape.rank(); ++i) dims.push_back({in.shape[i], from[i], to[i]});
  return CopyStrided(ctx, dims, {in}, {out});
}

absl::Status CopyUnlessShared(const KernelContext& ctx, const Tensor& in, Tensor& out) {
  if (in.raw_data() == out.raw_data() || in.size_bytes() == 0) return absl::OkStatus();
  if (MovesOnDevice(out)) return CopyStrided(ctx, CopyDims{{in.numel(), 1, 1}}, {in}, {out});
  std::memcpy(out.mutable_raw_data(), in.raw_data(), in.size_bytes());
  return absl::OkStatus();
}

absl::Status FillElements(const KernelContext& ctx, const ScalarBytes& value, Tensor& out) {
  const size_t bytes = SizeOf(out.dtype);
  if (!MovesOnDevice(out)) {
    FillElements(ctx.num_threads(), bytes, value.bytes.data(), out.mutable_raw_data(), out.numel());
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(const DataMover* const mover, DeviceMoverOf(out));
  return mover->Fill(ctx, bytes, value, out.mutable_raw_data(), out.numel());
}

absl::Status FillZero(const KernelContext& ctx, Tensor& out) {
  return FillElements(ctx, ScalarBytes(), out);
}

std::vector<KernelDef> MoveKernels(KernelFn run) {
  return {{DType::kUndefined, run}, DeviceMoveKernel(DType::kUndefined, run)};
}

KernelDef DeviceMoveKernel(DType dtype, KernelFn run, bool (*takes)(const void* attrs)) {
  return {.dtype = dtype, .run = run, .place = PlaceKind::kCuda, .takes = takes};
}

}  // namespace interp
