// Engines with a GPU and a simulated device, whose streams cannot wait for its events.
#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "tests/testing/devices.h"
#include "tests/testing/engines.h"

namespace interp::cuda_test {
namespace {

using engine::Engine;
using engine::RunContext;
using testing::IsOk;

constexpr int kElements = 16;

// Values that go round between the host and two devices of different kinds.
class Relay {
 public:
  explicit Relay(uint64_t seed)
      : sim_(testing::MakeDevice({.seed = seed, .max_copy_delay_ns = 50'000})),
        gpu_(*cuda::MakeCudaDevice(0)),
        engine_(testing::MakeEngine({.workers = 2, .devices = {sim_, gpu_}})),
        value_(engine_->NewVariable("value")),
        host_(testing::VectorOf<float>(std::vector<float>(kElements, 0))) {}

  // Takes the value to the device, back, and adds one on the host.
  void Pass(Device& device) {
    float* const there = testing::Floats(device, kElements);
    Push(device, [this, there](const RunContext& ctx) {
      return ctx.stream->CopyToDevice(there, host_.raw_data(), host_.buffer(), host_.size_bytes(),
                                      ctx.work);
    });
    Push(device, [this, there](const RunContext& ctx) {
      return ctx.stream->CopyToHost(host_.mutable_raw_data(), host_.buffer(), there,
                                    host_.size_bytes(), ctx.work);
    });
  }

  void Run(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Pass(*sim_);
      Pass(*gpu_);
      EXPECT_THAT(engine_->Push(
                      [this] {
                        for (int k = 0; k < kElements; ++k) host_.mutable_data<float>()[k] += 1;
                      },
                      {.reads = {value_}, .writes = {value_}}),
                  IsOk());
    }
    EXPECT_THAT(engine_->WaitForAll(), IsOk());
  }

  std::vector<float> value() const { return testing::Values<float>(host_); }

 private:
  template <typename Function>
  void Push(Device& device, Function function) {
    EXPECT_THAT(engine_->Push(std::move(function), {.reads = {value_}, .writes = {value_}},
                              {.place = device.place()}),
                IsOk());
  }

  std::shared_ptr<Device> sim_;
  std::shared_ptr<Device> gpu_;
  std::unique_ptr<Engine> engine_;
  engine::Variable value_;
  Tensor host_;
};

TEST(CudaEngine, OrdersAGpuAndADeviceOfAnotherKind) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto machine = Machine::Start(
        {.seed = seed, .execution = SimOptions::Execution::kThreads, .max_delay_ns = 50'000});
    ASSERT_THAT(machine, IsOk());
    Relay relay(seed);
    relay.Run(/*rounds=*/10);
    EXPECT_EQ(relay.value(), std::vector<float>(kElements, 10)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace interp::cuda_test
