#include "core/array/op_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/testing/arrays.h"

namespace interp::op_cache_test {
namespace {

using testing::ArrayOf;
using testing::ArrayOps;
using testing::Got;
using testing::IsOk;
using testing::MakeDevice;
using testing::MakeRuntime;

struct CallCount final : KernelState {
  int calls = 0;
};
std::atomic<int> callers{0};
std::atomic<bool> met{false};

// As a kernel of a GPU, which workers call: gives how often its state was used. Stays long enough
// to meet another worker.
absl::Status CountCalls(KernelContext& ctx) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  if (callers.fetch_add(1) > 0) met = true;
  const int calls = ++ctx.state<CallCount>().calls;
  while (!met && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  callers.fetch_sub(1);
  return ctx.stream().Fill(ctx.output(0).mutable_raw_data(), static_cast<uint8_t>(calls), 4);
}

TEST(OpCache, WorkersShareTheStateOfAStreamInTurns) {
  static const auto* const kCount =
      new OpDef{.type = "count",
                .inputs = {{"X"}},
                .outputs = {{"Out"}},
                .infer = ArrayOps::Infer,
                .kernels = {{DType::kFloat32, CountCalls, PlaceKind::kSim}}};
  const auto device = MakeDevice({});
  auto runtime = MakeRuntime({.engine = {.device_workers = 2, .devices = {device}}});
  const Array x = ArrayOf(*runtime, {1}, {0}, device->place());
  met = false;
  std::vector<Array> counts;
  for (int i = 0; i < 4; ++i) counts.push_back(Got(Invoke(*runtime, *kCount, {{"X", {x}}})));
  ASSERT_THAT(runtime->WaitForAll(), IsOk());
  EXPECT_FALSE(met);
}

}  // namespace
}  // namespace interp::op_cache_test
