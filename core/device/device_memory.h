// DeviceMemory: the memory of a device as a source for pools.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/device/device.h"
#include "core/storage/memory_source.h"

namespace interp {

// Thread-safety: all methods.
class DeviceMemory final : public MemorySource {
 public:
  // Keeps the device alive.
  explicit DeviceMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // `device` must outlive the source.
  explicit DeviceMemory(Device& device)
      : device_(std::shared_ptr<Device>(std::shared_ptr<void>(), &device)) {}

  std::string name() const override { return Name(device_->place()); }
  Place place() const override { return device_->place(); }
  absl::StatusOr<void*> Take(size_t bytes) override { return device_->AllocateRaw(bytes); }
  void Give(void* address, size_t bytes) override { device_->FreeRaw(address, bytes); }
  // Nothing uses the memory of a lost device any more.
  void Quiesce() override { device_->Synchronize().IgnoreError(); }
  Device& device() const { return *device_; }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace interp
