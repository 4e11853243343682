// Rows of group_norm and instance_norm.
#include <cmath>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class GroupNormRows : public RowTest {};
using NormElements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GroupNormRows, NormElements);

// Values in (0, 1), for variances.
template <typename T>
Tensor Positive(const std::vector<int64_t>& dims, uint32_t seed) {
  std::vector<T> values = SomeValues<T>(static_cast<size_t>(NumelOf(dims)), seed);
  for (T& value : values) value = T(0.55) + value * T(0.24);
  return Tensor::Of<T>(Shape(dims), values);
}

struct GroupCase {
  std::vector<int64_t> dims;
  std::string data_layout;
  int64_t channels;
  int32_t groups;
};
const GroupCase kCases[] = {{{2, 6, 5, 7}, "NCHW", 6, 3},   {{2, 4, 30, 33}, "NCHW", 4, 1},
                            {{1, 6, 50}, "NCHW", 6, 6},     {{3, 8}, "NCHW", 8, 2},
                            {{2, 5, 7, 6}, "NHWC", 6, 2},   {{1, 40, 40, 4}, "NHWC", 4, 2},
                            {{2, 4, 3, 5, 4}, "NCHW", 4, 2}};

TYPED_TEST(GroupNormRows, GroupsOfAnyLayoutGiveWhatTheHostGives) {
  for (const GroupCase& c : kCases) {
    const std::vector<Attr> attrs = {{"groups", c.groups}, {"data_layout", c.data_layout}};
    const Tensor x = SomeTensor<TypeParam>(c.dims);
    this->ExpectSameAsHost({"group_norm", attrs, {{"X", x}}});
    this->ExpectSameAsHost({"group_norm",
                            attrs,
                            {{"X", x},
                             {"Scale", SomeTensor<TypeParam>({c.channels}, 2)},
                             {"Bias", SomeTensor<TypeParam>({c.channels}, 3)}}});
  }
}

TYPED_TEST(GroupNormRows, GradientsOfGroupsGiveWhatTheHostGives) {
  for (const GroupCase& c : kCases) {
    const std::vector<int64_t> statistics = {c.dims[0], c.groups};
    RowCase row = {"group_norm_grad",
                   {{"groups", c.groups}, {"data_layout", c.data_layout}},
                   {{"X", SomeTensor<TypeParam>(c.dims)},
                    {"Mean", SomeTensor<TypeParam>(statistics, 2)},
                    {"Variance", Positive<TypeParam>(statistics, 3)},
                    {"Y@GRAD", SomeTensor<TypeParam>(c.dims, 4)}}};
    this->ExpectSameAsHost(row);
    row.inputs.push_back({"Scale", SomeTensor<TypeParam>({c.channels}, 5)});
    row.inputs.push_back({"Bias", SomeTensor<TypeParam>({c.channels}, 6)});
    this->ExpectSameAsHost(row);
  }
}

TYPED_TEST(GroupNormRows, InstancesAndTheirGradientsGiveWhatTheHostGives) {
  const Tensor x = SomeTensor<TypeParam>({2, 3, 9, 11});
  const Tensor scale = SomeTensor<TypeParam>({3}, 2);
  this->ExpectSameAsHost({"instance_norm", {}, {{"X", x}}});
  this->ExpectSameAsHost({"instance_norm",
                          {{"epsilon", 0.01f}},
                          {{"X", x}, {"Scale", scale}, {"Bias", SomeTensor<TypeParam>({3}, 3)}}});
  this->ExpectSameAsHost({"instance_norm_grad",
                          {},
                          {{"X", x},
                           {"Scale", scale},
                           {"SavedMean", SomeTensor<TypeParam>({6}, 4)},
                           {"SavedVariance", Positive<TypeParam>({6}, 5)},
                           {"Y@GRAD", SomeTensor<TypeParam>({2, 3, 9, 11}, 6)}}});
}

TYPED_TEST(GroupNormRows, NoImagesGiveGradientsOfZero) {
  this->ExpectSameAsHost({"group_norm_grad",
                          {{"groups", int32_t{2}}},
                          {{"X", SomeTensor<TypeParam>({0, 4, 3})},
                           {"Mean", SomeTensor<TypeParam>({0, 2})},
                           {"Variance", SomeTensor<TypeParam>({0, 2})},
                           {"Y@GRAD", SomeTensor<TypeParam>({0, 4, 3})}}});
}

}  // namespace
}  // namespace interp::cuda_test
