// Simulated devices in tests: making them, moving floats to and from them, running small kernels.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/host_kernels.h"
#include "core/device/sim_device.h"
#include "core/device/stream_pool.h"
#include "tests/testing/matchers.h"

namespace interp::testing {

using Execution = SimOptions::Execution;

// ThreadSanitizer would report what tests of missing events provoke.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kFindsRaces = true;
#else
inline constexpr bool kFindsRaces = false;
#endif

// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOf(const ::testing::TestParamInfo<Execution>& info) {
  return info.param == Execution::kThreads ? "Threads" : "Interleaved";
}

inline std::shared_ptr<Device> MakeDevice(const SimOptions& options) {
  absl::StatusOr<std::shared_ptr<Device>> device = MakeSimDevice(options);
  EXPECT_THAT(device, IsOk());
  return device.ok() ? *std::move(device) : nullptr;
}

inline std::unique_ptr<Stream> OpenStream(Device& device, const std::string& name = "s",
                                          int priority = 0) {
  absl::StatusOr<std::unique_ptr<Stream>> stream = device.CreateStream(name, priority);
  EXPECT_THAT(stream, IsOk());
  return stream.ok() ? *std::move(stream) : nullptr;
}

// Room for `count` floats, which goes with the device.
inline float* Floats(Device& device, size_t count) {
  const absl::StatusOr<void*> address = device.AllocateRaw(count * sizeof(float));
  EXPECT_THAT(address, IsOk());
  return address.ok() ? static_cast<float*>(*address) : nullptr;
}

inline void Put(Stream& stream, void* device, std::vector<float> values, const Work& work = {}) {
  const Tensor host = VectorOf<float>(std::move(values));
  EXPECT_THAT(stream.CopyToDevice(device, host.raw_data(), host.buffer(), host.size_bytes(), work),
              IsOk());
}

inline std::unique_ptr<DeviceEvent> MakeEvent(Device& device) {
  absl::StatusOr<std::unique_ptr<DeviceEvent>> event = device.CreateEvent();
  EXPECT_THAT(event, IsOk());
  return event.ok() ? *std::move(event) : nullptr;
}

// A tensor of the host that holds -1 until the copy is done.
inline Tensor Get(Stream& stream, const void* device, size_t count, const Work& work = {}) {
  Tensor host = VectorOf<float>(std::vector<float>(count, -1));
  EXPECT_THAT(
      stream.CopyToHost(host.mutable_raw_data(), host.buffer(), device, host.size_bytes(), work),
      IsOk());
  return host;
}

inline std::vector<float> Read(Stream& stream, const void* device, size_t count) {
  const Tensor host = Get(stream, device, count);
  EXPECT_THAT(stream.Synchronize(), IsOk());
  return Values<float>(host);
}

// A tensor over memory of a device, as one of a pool.
inline Tensor OnDevice(const Device& device, void* address, int64_t count) {
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {count};
  BufferRef buffer = BorrowBuffer(address, tensor.size_bytes(), /*writable=*/true);
  buffer->place = device.place();
  tensor.SetMemory(std::move(buffer), address);
  return tensor;
}

// The arguments of an op with one input and one output.
struct InOut {
  InOut(Tensor in, Tensor out) : input(std::move(in)), output(std::move(out)) {
    bound.input_slots = {{0, 1}};
    bound.output_slots = {{1, 1}};
    bound.tensors = {&input, &output};
    bound.variables = {nullptr, nullptr};
    bound.constant = {false, false};
  }
  InOut(const InOut&) = delete;
  InOut& operator=(const InOut&) = delete;

  Tensor input;
  Tensor output;
  BoundArgs bound;
};

// out = in + 1
inline absl::Status AddOne(KernelContext& ctx) {
  const float* in = ctx.input(0).data<float>();
  float* out = ctx.output(0).mutable_data<float>();
  for (int64_t i = 0; i < ctx.input(0).numel(); ++i) out[i] = in[i] + 1;
  return absl::OkStatus();
}

inline absl::Status Launch(Stream& stream, KernelFn kernel, InOut& args, const Work& work = {}) {
  return LaunchHostKernel(stream, kernel, args.bound, /*attrs=*/nullptr, /*services=*/{}, work);
}

}  // namespace interp::testing
