#include "core/device/device_heap.h"

#include <utility>

#include "core/base/check.h"
#include "core/device/device_memory.h"
#include "core/storage/pool.h"

namespace interp {
namespace {

std::shared_ptr<Allocator> MakeAllocator(std::shared_ptr<Device> device) {
  absl::StatusOr<std::shared_ptr<Pool>> pool =
      Pool::Create(std::make_shared<DeviceMemory>(std::move(device)), {.kind = PoolKind::kNaive});
  INTERP_CHECK(pool.ok());
  return *std::move(pool);
}

// A tensor like `tensor` in memory of `allocator`, whose bytes `copy` fills by work of `stream`.
template <typename Copy>
absl::StatusOr<Tensor> CopyWith(const Tensor& tensor, Stream& stream, Allocator& allocator,
                                const Copy& copy) {
  Tensor out = tensor;
  out.DropMemory();
  INTERP_RETURN_IF_ERROR(out.Allocate(allocator));
  if (out.size_bytes() == 0) return out;
  WorkErrors errors;
  const absl::Status enqueued = copy(out, Work{.errors = &errors});
  const absl::Status done = stream.Synchronize();
  if (std::optional<WorkError> error = errors.Take()) return error->status;
  INTERP_RETURN_IF_ERROR(enqueued);
  INTERP_RETURN_IF_ERROR(done);
  return out;
}

absl::StatusOr<Tensor> CopyFromDevice(const Tensor& tensor, Stream& stream, Allocator& allocator) {
  return CopyWith(tensor, stream, allocator, [&](Tensor& out, const Work& work) {
    return stream.CopyToHost(out.mutable_raw_data(), out.buffer(), tensor.raw_data(),
                             tensor.size_bytes(), work);
  });
}

absl::Status OpenOnce(Device& device, std::unique_ptr<Stream>& stream) {
  if (stream != nullptr) return device.status();
  INTERP_ASSIGN_OR_RETURN(stream, device.CreateStream("parameters", /*priority=*/0));
  return absl::OkStatus();
}

}  // namespace

DeviceHeap::DeviceHeap(std::shared_ptr<Device> device)
    : device_(std::move(device)), allocator_(MakeAllocator(device_)) {}

absl::StatusOr<Tensor> DeviceHeap::Upload(const Tensor& tensor) {
  std::lock_guard<std::mutex> lock(mutex_);
  INTERP_RETURN_IF_ERROR(OpenOnce(*device_, stream_));
  return CopyWith(tensor, *stream_, *allocator_, [&](Tensor& out, const Work& work) {
    return stream_->CopyToDevice(out.mutable_raw_data(), tensor.raw_data(), tensor.buffer(),
                                 tensor.size_bytes(), work);
  });
}

absl::StatusOr<Tensor> DeviceHeap::Download(const Tensor& tensor, Allocator& allocator) {
  std::lock_guard<std::mutex> lock(mutex_);
  INTERP_RETURN_IF_ERROR(OpenOnce(*device_, stream_));
  return CopyFromDevice(tensor, *stream_, allocator);
}

absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Allocator& allocator) {
  const auto* pool = tensor.has_memory() ? dynamic_cast<Pool*>(tensor.buffer()->owner) : nullptr;
  const auto* memory = pool != nullptr ? dynamic_cast<DeviceMemory*>(&pool->source()) : nullptr;
  if (memory == nullptr) {
    return absl::FailedPreconditionError("the tensor is not in memory of a device's heap");
  }
  Device& device = memory->device();
  INTERP_RETURN_IF_ERROR(device.Synchronize());
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                          device.CreateStream("download", /*priority=*/0));
  return CopyFromDevice(tensor, *stream, allocator);
}

absl::Status MoveToHost(Tensor& tensor) {
  if (!tensor.has_memory() || tensor.place().on_host()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(tensor, CopyToHost(tensor, SystemAllocator()));
  return absl::OkStatus();
}

}  // namespace interp
