#include "core/device/device_heap.h"

#include <cassert>
#include <utility>

#include "core/device/device_memory.h"
#include "core/storage/pool.h"

namespace interp {
namespace {

// A tensor like `tensor` in memory of `allocator`, whose bytes `copy` fills.
template <typename Copy>
absl::StatusOr<Tensor> CopyWith(const Tensor& tensor, Device& device, Allocator& allocator,
                                const Copy& copy) {
  Tensor out = tensor;
  out.DropMemory();
  INTERP_RETURN_IF_ERROR(out.Allocate(allocator));
  if (out.size_bytes() == 0) return out;
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                          device.CreateStream("upload", /*priority=*/0));
  WorkErrors errors;
  INTERP_RETURN_IF_ERROR(copy(*stream, out, Work{.errors = &errors}));
  const absl::Status done = stream->Synchronize();
  if (std::optional<WorkError> error = errors.Take()) return error->status;
  INTERP_RETURN_IF_ERROR(done);
  return out;
}

}  // namespace

std::shared_ptr<Allocator> MakeDeviceHeap(std::shared_ptr<Device> device) {
  absl::StatusOr<std::shared_ptr<Pool>> pool =
      Pool::Create(std::make_shared<DeviceMemory>(std::move(device)), {.kind = PoolKind::kNaive});
  assert(pool.ok());
  return *std::move(pool);
}

absl::StatusOr<Tensor> CopyToHeap(const Tensor& tensor, Device& device, Allocator& heap) {
  return CopyWith(tensor, device, heap, [&](Stream& stream, Tensor& out, const Work& work) {
    return stream.CopyToDevice(out.mutable_raw_data(), tensor.raw_data(), tensor.buffer(),
                               tensor.size_bytes(), work);
  });
}

absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Device& device, Allocator& allocator) {
  return CopyWith(tensor, device, allocator, [&](Stream& stream, Tensor& out, const Work& work) {
    return stream.CopyToHost(out.mutable_raw_data(), out.buffer(), tensor.raw_data(),
                             tensor.size_bytes(), work);
  });
}

absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Allocator& allocator) {
  const auto* pool = tensor.has_memory() ? dynamic_cast<Pool*>(tensor.buffer()->owner) : nullptr;
  const auto* memory = pool != nullptr ? dynamic_cast<DeviceMemory*>(&pool->source()) : nullptr;
  if (memory == nullptr) {
    return absl::FailedPreconditionError("the tensor is not in memory of a device's heap");
  }
  INTERP_RETURN_IF_ERROR(memory->device().Synchronize());
  return CopyToHost(tensor, memory->device(), allocator);
}

}  // namespace interp
