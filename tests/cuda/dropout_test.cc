#include "kernels/cuda/dropout.h"

#include <string>
#include <vector>

#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

using CudaDropout = KernelTest;

TEST_F(CudaDropout, DropsTheElementsThatTheHostDrops) {
  for (const std::string mode : {"upscale_in_train", "downgrade_in_infer"}) {
    for (const float probability : {0.0f, 0.3f, 1.0f}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        for (const int64_t size : {0, 1, 7, 5001}) {
          SCOPED_TRACE(absl::StrCat(mode, " ", probability, " of ", size, " ", Name(dtype)));
          ExpectRowGivesTheSameAnyhow(
              "dropout", {{"dropout_prob", probability}, {"dropout_implementation", mode}},
              {{"X", SomeNumbers(dtype, {size})}});
        }
      }
    }
  }
}

TEST_F(CudaDropout, DrawsFromASeedAsTheHostDoes) {
  for (const int32_t seed : {1, 1234567, -5}) {
    for (const int64_t size : {1, 311, 313, 1000}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", size ", size));
      const Tensor x = SomeNumbers(DType::kFloat32, {size});
      const std::vector<Attr> attrs = {{"dropout_prob", 0.4f}, {"fix_seed", true}, {"seed", seed}};
      ExpectRowGivesTheSame("dropout", attrs, {{"X", x}});
      for (const DType dtype : {DType::kInt32, DType::kInt64}) {
        ExpectRowGivesTheSame(
            "dropout", {{"dropout_prob", 0.4f}},
            {{"X", x}, {"Seed", Numbers(dtype, {1}, {static_cast<float>(seed)})}});
      }
    }
  }
}

TEST_F(CudaDropout, DrawsFromItsStreamWhereTheSeedIsZero) {
  ExpectRowGivesTheSame(
      "dropout", {{"dropout_prob", 0.4f}},
      {{"X", SomeNumbers(DType::kFloat32, {1000})}, {"Seed", Numbers(DType::kInt32, {1}, {0})}});
}

TEST_F(CudaDropout, ScalesInTests) {
  for (const std::string mode : {"upscale_in_train", "downgrade_in_infer"}) {
    const std::vector<Attr> attrs = {
        {"dropout_prob", 0.4f}, {"dropout_implementation", mode}, {"is_test", true}};
    ExpectRowGivesTheSameAnyhow("dropout", attrs, {{"X", SomeNumbers(DType::kFloat32, {1000})}});
    ExpectRowGivesTheSameAnyhow("dropout_grad", attrs,
                                {{"Out@GRAD", SomeNumbers(DType::kFloat32, {1000})}});
  }
}

TEST_F(CudaDropout, PassesTheGradientOnWhereTheMaskSaysSo) {
  std::vector<float> mask(1003);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0 ? 0 : 1;
  for (const std::string mode : {"upscale_in_train", "downgrade_in_infer"}) {
    for (const float probability : {0.3f, 1.0f}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        ExpectRowGivesTheSameAnyhow(
            "dropout_grad", {{"dropout_prob", probability}, {"dropout_implementation", mode}},
            {{"Mask", Numbers(DType::kUInt8, {17, 59}, mask)},
             {"Out@GRAD", SomeNumbers(dtype, {17, 59})}});
      }
    }
  }
}

}  // namespace
}  // namespace interp::cuda_test
