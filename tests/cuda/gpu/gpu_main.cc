// Tests of CUDA on a GPU. None runs, and none counts as passed, where no GPU can be used.
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

// Tells which GPU the tests run on.
class GpuEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    std::printf("GPU: %s, compute capability %d.%d\n", properties.name, properties.major,
                properties.minor);
  }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const auto machine = interp::cuda_test::Machine::Start({});
  if (!machine.ok() && !GTEST_FLAG_GET(list_tests)) {
    std::printf("[  SKIPPED ] all tests: %s\n", std::string(machine.status().message()).c_str());
    return 0;
  }
  ::testing::AddGlobalTestEnvironment(new GpuEnvironment);
  return RUN_ALL_TESTS();
}
