// The options of the C API that concern GPUs.
#include <cstddef>
#include <fstream>
#include <string>

#include "interp/interp.h"
#include "tests/cuda/kernel_test.h"
#include "tests/testing/temp_folder.h"

namespace interp::cuda_test {
namespace {

class CudaCApi : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    std::ofstream(path_) << "program version=0\nblock 0\n"
                            "  var x float32[1,1]\n  var y float32[1,1]\n  var z float32[1,1]\n"
                            "  matmul_v2(X=x, Y=x) -> (Out=y)\n"
                            "  relu(X=y) -> (Out=z)\n";
  }
  void TearDown() override {
    interp_predictor_free(predictor_);
    KernelTest::TearDown();
  }

  void Load(const interp_options& options) {
    ASSERT_EQ(interp_predictor_load(path_.c_str(), nullptr, &options, &predictor_), INTERP_OK)
        << interp_last_error();
  }
  // z of x.
  float Run(float x) {
    const int64_t dims[] = {1, 1};
    interp_tensor feed = {};
    feed.struct_size = sizeof(feed);
    feed.data = &x;
    feed.size_bytes = sizeof(x);
    feed.dims = dims;
    feed.rank = 2;
    feed.dtype = INTERP_FLOAT32;
    float z = 0;
    const interp_memory memory = {&z, sizeof(z)};
    EXPECT_EQ(interp_predictor_run_into(predictor_, &feed, 1, &memory, 1, nullptr, nullptr),
              INTERP_OK)
        << interp_last_error();
    return z;
  }
  static interp_options OnGpu() {
    interp_options options = {};
    options.struct_size = sizeof(options);
    static const char* const kFeed = "x";
    static const char* const kFetch = "z";
    options.feeds = &kFeed;
    options.num_feeds = 1;
    options.fetches = &kFetch;
    options.num_fetches = 1;
    options.place = "cuda:0";
    return options;
  }

  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "square.txt";
  interp_predictor* predictor_ = nullptr;
};

// Values with 12 bits of fraction, of which TF32 keeps 10.
constexpr float kFine = 1 + 0x1p-12f;

TEST_F(CudaCApi, MultipliesFloat32AsFloat32UnlessAskedForTf32) {
  interp_options options = OnGpu();
  Load(options);
  EXPECT_EQ(Run(kFine), kFine * kFine);
  interp_predictor_free(predictor_);
  options.tf32 = 1;
  Load(options);
  EXPECT_EQ(Run(kFine), 1);
}

TEST_F(CudaCApi, PutsWorkInGraphsWhereAskedTo) {
  interp_options options = OnGpu();
  options.cuda_graphs = 1;
  Load(options);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(Run(static_cast<float>(i)), static_cast<float>(i * i));
  EXPECT_GT(machine().calls("cudaGraphLaunch"), 1);
}

// Of a program that was compiled before there were places.
TEST_F(CudaCApi, OptionsOfAnOlderHeaderEndBeforeThePlace) {
  interp_options options = OnGpu();
  options.struct_size = offsetof(interp_options, place);
  Load(options);
  EXPECT_EQ(Run(3), 9);
  EXPECT_EQ(machine().calls("cudaLaunchKernel"), 0);
}

}  // namespace
}  // namespace interp::cuda_test
