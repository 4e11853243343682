// Rows of ops that sample images between pixels.
#include <cmath>
#include <limits>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class SamplingRows : public RowTest {};
using SampledElements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SamplingRows, SampledElements);

// Points of images and volumes, some of them outside, on borders and nowhere.
template <typename T>
Tensor Points(const std::vector<int64_t>& dims) {
  Tensor points = SomeTensor<T>(dims, 5);
  T* const values = points.mutable_data<T>();
  values[0] = -1;
  values[1] = 1;
  values[2] = 0;
  values[5] = std::numeric_limits<T>::quiet_NaN();
  values[9] = T(1e6);
  return points;
}

TYPED_TEST(SamplingRows, GridsAreSampledInEveryWay) {
  for (const char* const mode : {"bilinear", "nearest"}) {
    for (const char* const padding : {"zeros", "border", "reflection"}) {
      for (const bool align : {false, true}) {
        SCOPED_TRACE(absl::StrCat(mode, ", ", padding, ", align_corners ", align));
        const std::vector<Attr> attrs = {
            {"mode", mode}, {"padding_mode", padding}, {"align_corners", align}};
        this->ExpectSameAsHost({"grid_sampler",
                                attrs,
                                {{"X", SomeTensor<TypeParam>({2, 3, 7, 11})},
                                 {"Grid", Points<TypeParam>({2, 9, 41, 2})}}});
        this->ExpectSameAsHost({"grid_sampler",
                                attrs,
                                {{"X", SomeTensor<TypeParam>({2, 2, 3, 1, 5})},
                                 {"Grid", Points<TypeParam>({2, 3, 4, 5, 3})}}});
      }
    }
  }
}

TYPED_TEST(SamplingRows, NoPointsAreNoWork) {
  this->ExpectSameAsHost({"grid_sampler",
                          {},
                          {{"X", SomeTensor<TypeParam>({1, 3, 7, 11})},
                           {"Grid", SomeTensor<TypeParam>({1, 0, 4, 2})}}});
}

// Groups of the convolution and of the samples that cut channels in different places; several
// images are several pieces of memory.
TYPED_TEST(SamplingRows, ImagesAreConvolvedWhereOffsetsSay) {
  for (const bool masked : {false, true}) {
    for (const int32_t groups : {1, 2}) {
      for (const int32_t deformable_groups : {1, 3}) {
        SCOPED_TRACE(
            absl::StrCat("mask ", masked, ", groups ", groups, " and ", deformable_groups));
        const std::vector<Attr> attrs = {{"strides", std::vector<int32_t>{2, 1}},
                                         {"paddings", std::vector<int32_t>{1, 2}},
                                         {"dilations", std::vector<int32_t>{1, 2}},
                                         {"groups", groups},
                                         {"deformable_groups", deformable_groups}};
        std::vector<RowCase::Input> inputs = {
            {"Input", SomeTensor<TypeParam>({3, 6, 9, 8}, 1)},
            {"Offset", SomeTensor<TypeParam>({3, 2 * 6 * deformable_groups, 5, 10}, 2)},
            {"Filter", SomeTensor<TypeParam>({4, 6 / groups, 3, 2}, 3)}};
        if (masked) {
          inputs.push_back({"Mask", SomeTensor<TypeParam>({3, 6 * deformable_groups, 5, 10}, 4)});
        }
        this->ExpectSameAsHost({masked ? "deformable_conv" : "deformable_conv_v1", attrs, inputs});
      }
    }
  }
}

TYPED_TEST(SamplingRows, SamplesFarOutsideAndNowhereAreZero) {
  Tensor offset = SomeTensor<TypeParam>({1, 2, 4, 4}, 2);
  offset.template mutable_data<TypeParam>()[0] = std::numeric_limits<TypeParam>::quiet_NaN();
  offset.template mutable_data<TypeParam>()[1] = TypeParam(1e30);
  offset.template mutable_data<TypeParam>()[2] = TypeParam(-1);
  this->ExpectSameAsHost({"deformable_conv",
                          {},
                          {{"Input", SomeTensor<TypeParam>({1, 2, 4, 4}, 1)},
                           {"Offset", offset},
                           {"Filter", SomeTensor<TypeParam>({3, 2, 1, 1}, 3)},
                           {"Mask", SomeTensor<TypeParam>({1, 1, 4, 4}, 4)}}});
}

}  // namespace
}  // namespace interp::cuda_test
