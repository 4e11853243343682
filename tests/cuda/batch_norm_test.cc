// batch_norm, its gradient and that of layer_norm.
#include <string>
#include <vector>

#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

struct Images {
  std::vector<int64_t> dims;
  std::string layout = "NCHW";
};

const std::vector<Images>& SomeImages() {
  static const std::vector<Images> kAll = {{{4, 3, 5, 7}},   {{3, 5}},       {{2, 40, 9}},
                                           {{5, 2, 50, 31}}, {{1, 3, 1, 1}}, {{4, 5, 6, 3}, "NHWC"},
                                           {{2, 2, 3, 4, 5}}};
  return kAll;
}

int64_t ChannelsOf(const Images& images) {
  return images.layout == "NHWC" ? images.dims.back() : images.dims[1];
}

Tensor Vector(float least, int64_t channels, uint32_t seed) {
  return NumbersFrom(least, DType::kFloat32, {channels}, seed);
}

using CudaBatchNorm = KernelTest;

void ExpectTheHostsNorm(const Images& images, DType dtype, const std::vector<Attr>& attrs) {
  const int64_t channels = ChannelsOf(images);
  ExpectRowGivesTheSameAnyhow("batch_norm", attrs,
                              {{"X", SomeNumbers(dtype, images.dims)},
                               {"Scale", Vector(-1, channels, 2)},
                               {"Bias", Vector(-1, channels, 3)},
                               {"Mean", Vector(-1, channels, 4)},
                               {"Variance", Vector(0.5f, channels, 5)}},
                              dtype == DType::kFloat32 ? 2e-5 : 2e-2);
}

TEST_F(CudaBatchNorm, IsThatOfTheHost) {
  for (const Images& images : SomeImages()) {
    for (const bool test : {false, true}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        SCOPED_TRACE(absl::StrCat(ToString(Shape(images.dims)), images.layout, " test ", test, " ",
                                  Name(dtype)));
        ExpectTheHostsNorm(images, dtype, {{"is_test", test}, {"data_layout", images.layout}});
      }
    }
  }
}

TEST_F(CudaBatchNorm, EndsInRelu) {
  for (const bool global : {false, true}) {
    ExpectTheHostsNorm(
        SomeImages()[0], DType::kFloat32,
        {{"fuse_with_relu", true}, {"use_global_stats", global}, {"momentum", 0.3f}});
  }
}

TEST_F(CudaBatchNorm, TakesItsMomentumFromATensor) {
  ExpectRowGivesTheSame("batch_norm", {},
                        {{"X", SomeNumbers(DType::kFloat32, {3, 2, 4, 4})},
                         {"Scale", Vector(-1, 2, 2)},
                         {"Bias", Vector(-1, 2, 3)},
                         {"Mean", Vector(-1, 2, 4)},
                         {"Variance", Vector(0.5f, 2, 5)},
                         {"MomentumTensor", Numbers(DType::kFloat32, {1}, {0.25f})}});
}

TEST_F(CudaBatchNorm, KeepsDigitsWhereMeansAreLarge) {
  std::vector<float> values(6000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1000 + static_cast<float>(i % 4);
  ExpectRowGivesTheSame("batch_norm", {},
                        {{"X", Numbers(DType::kFloat32, {6000, 1}, values)},
                         {"Scale", Numbers(DType::kFloat32, {1}, {1})},
                         {"Bias", Numbers(DType::kFloat32, {1}, {0})},
                         {"Mean", Numbers(DType::kFloat32, {1}, {0})},
                         {"Variance", Numbers(DType::kFloat32, {1}, {1})}},
                        {.tolerance = 2e-4});
}

// A channel or a column whose sum is 1, which one float32 forgets on the way: a thread adds up all
// three.
Tensor Cancelling(const std::vector<int64_t>& dims = {1, 1, 3000}, size_t step = 1024) {
  std::vector<float> values(3000);
  values[0] = 1e8f;
  values[step] = 1;
  values[2 * step] = -1e8f;
  return Numbers(DType::kFloat32, dims, values);
}

TEST_F(CudaBatchNorm, AddsUpInDouble) {
  ExpectRowGivesTheSame("batch_norm", {},
                        {{"X", Cancelling()},
                         {"Scale", Numbers(DType::kFloat32, {1}, {1})},
                         {"Bias", Numbers(DType::kFloat32, {1}, {0})},
                         {"Mean", Numbers(DType::kFloat32, {1}, {0})},
                         {"Variance", Numbers(DType::kFloat32, {1}, {1})}});
}

using CudaBatchNormGradient = KernelTest;

TEST_F(CudaBatchNormGradient, AddsUpInDouble) {
  ExpectRowGivesTheSame("batch_norm_grad", {},
                        {{"X", SomeNumbers(DType::kFloat32, {1, 1, 3000})},
                         {"Scale", Numbers(DType::kFloat32, {1}, {1})},
                         {"SavedMean", Numbers(DType::kFloat32, {1}, {0})},
                         {"SavedVariance", Numbers(DType::kFloat32, {1}, {1e-4f})},
                         {"Y@GRAD", Cancelling()}});
}

TEST_F(CudaBatchNormGradient, IsThatOfTheHost) {
  for (const Images& images : SomeImages()) {
    for (const bool running : {false, true}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        SCOPED_TRACE(absl::StrCat(ToString(Shape(images.dims)), images.layout, " running ", running,
                                  " ", Name(dtype)));
        const int64_t channels = ChannelsOf(images);
        ExpectRowGivesTheSameAnyhow("batch_norm_grad",
                                    {{"use_global_stats", running}, {"data_layout", images.layout}},
                                    {{"X", SomeNumbers(dtype, images.dims)},
                                     {"Scale", Vector(-1, channels, 2)},
                                     {"Mean", Vector(-1, channels, 4)},
                                     {"Variance", Vector(0.5f, channels, 5)},
                                     {"SavedMean", Vector(-1, channels, 6)},
                                     {"SavedVariance", Vector(0.5f, channels, 7)},
                                     {"Y@GRAD", SomeNumbers(dtype, images.dims, 8)}},
                                    dtype == DType::kFloat32 ? 2e-4 : 3e-2);
      }
    }
  }
}

using CudaLayerNormGradient = KernelTest;

TEST_F(CudaLayerNormGradient, IsThatOfTheHost) {
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {11, 1}, {11, 5}, {3, 4, 64}, {7, 1500}, {100, 33}, {1100, 34}}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const bool scales : {false, true}) {
        SCOPED_TRACE(absl::StrCat(ToString(Shape(dims)), " ", Name(dtype), " scale ", scales));
        const auto axis = static_cast<int32_t>(dims.size() - 1);
        const int64_t rows = NumelOf(dims) / dims.back();
        std::vector<testing::OneOp::Input> inputs = {{"X", SomeNumbers(dtype, dims)},
                                                     {"Mean", Vector(-1, rows, 3)},
                                                     {"Variance", Vector(0.5f, rows, 4)},
                                                     {"Y@GRAD", SomeNumbers(dtype, dims, 5)}};
        if (scales) inputs.push_back({"Scale", Vector(-1, dims.back(), 2)});
        ExpectRowGivesTheSameAnyhow("layer_norm_grad", {{"begin_norm_axis", axis}}, inputs,
                                    dtype == DType::kFloat32 ? 5e-5 : 3e-2);
      }
    }
  }
}

TEST_F(CudaLayerNormGradient, AddsUpColumnsInDouble) {
  ExpectRowGivesTheSame(
      "layer_norm_grad", {{"begin_norm_axis", int32_t{1}}},
      {{"X", SomeNumbers(DType::kFloat32, {3000, 1})},
       {"Mean", Numbers(DType::kFloat32, {3000}, std::vector<float>(3000))},
       {"Variance", Numbers(DType::kFloat32, {3000}, std::vector<float>(3000, 1))},
       {"Y@GRAD", Cancelling({3000, 1}, /*step=*/160)}},
      {.absent = {"X@GRAD"}});
}

}  // namespace
}  // namespace interp::cuda_test
