#include "core/device/device_heap.h"

#include <atomic>
#include <utility>

namespace interp {
namespace {

class DeviceHeap final : public Allocator, public std::enable_shared_from_this<DeviceHeap> {
 public:
  explicit DeviceHeap(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override {
    void* data = nullptr;
    if (size_bytes > 0) {
      INTERP_ASSIGN_OR_RETURN(data, device_->AllocateRaw(size_bytes));
    }
    auto* block = new Block;
    block->data = data;
    block->size_bytes = size_bytes;
    block->owner = this;
    block->place = device_->place();
    block->serial = ++allocations_;
    block->heap = shared_from_this();
    current_ += size_bytes;
    size_t peak = peak_;
    while (peak < current_ && !peak_.compare_exchange_weak(peak, current_)) {
    }
    return BufferRef::First(block);
  }

  MemoryStats stats() const override {
    return {.current_bytes = current_,
            .peak_bytes = peak_,
            .reserved_bytes = current_,
            .allocations = static_cast<int64_t>(allocations_.load())};
  }
  void ResetPeak() override { peak_ = current_.load(); }
  Device& device() { return *device_; }

 private:
  struct Block : Buffer {
    std::shared_ptr<DeviceHeap> heap;
  };

  void Free(Buffer* buffer) override {
    const std::unique_ptr<Block> block(static_cast<Block*>(buffer));
    current_ -= block->size_bytes;
    if (block->data == nullptr) return;
    device_->Synchronize();
    device_->FreeRaw(block->data, block->size_bytes);
  }

  const std::shared_ptr<Device> device_;
  std::atomic<size_t> current_{0};
  std::atomic<size_t> peak_{0};
  std::atomic<uint64_t> allocations_{0};
};

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
  copy(*stream, out, Work{.errors = &errors});
  stream->Synchronize();
  if (std::optional<WorkError> error = errors.Take()) return error->status;
  return out;
}

}  // namespace

std::shared_ptr<Allocator> MakeDeviceHeap(std::shared_ptr<Device> device) {
  return std::make_shared<DeviceHeap>(std::move(device));
}

absl::StatusOr<Tensor> CopyToHeap(const Tensor& tensor, Device& device, Allocator& heap) {
  return CopyWith(tensor, device, heap, [&](Stream& stream, Tensor& out, const Work& work) {
    stream.CopyToDevice(out.mutable_raw_data(), tensor.raw_data(), tensor.buffer(),
                        tensor.size_bytes(), work);
  });
}

absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Device& device, Allocator& allocator) {
  return CopyWith(tensor, device, allocator, [&](Stream& stream, Tensor& out, const Work& work) {
    stream.CopyToHost(out.mutable_raw_data(), out.buffer(), tensor.raw_data(), tensor.size_bytes(),
                      work);
  });
}

absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, Allocator& allocator) {
  auto* heap = tensor.has_memory() ? dynamic_cast<DeviceHeap*>(tensor.buffer()->owner) : nullptr;
  if (heap == nullptr) {
    return absl::FailedPreconditionError("the tensor is not in memory of a device's heap");
  }
  heap->device().Synchronize();
  return CopyToHost(tensor, heap->device(), allocator);
}

}  // namespace interp
