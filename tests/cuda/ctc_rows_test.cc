// Rows of warpctc and its gradient.
#include <cmath>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class CtcRows : public RowTest {
 protected:
  static Tensor Integers(const std::vector<int64_t>& dims, int64_t begin, int64_t end) {
    std::vector<int64_t> values(static_cast<size_t>(NumelOf(dims)));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = begin + static_cast<int64_t>(i * i / 2) % (end - begin);
    }
    return Tensor::Of<int64_t>(Shape(dims), values);
  }
  // Sequences of 0 to 9 rows, with more labels than rows, none, and equal neighbours.
  static std::vector<RowCase::Input> Joined(int64_t tags) {
    std::vector<RowCase::Input> inputs = {{"Logits", SomeTensor<T>({29, tags}, 1)},
                                          {"Label", Integers({11, 1}, 1, tags)}};
    inputs[0].tensor.lod = {{0, 9, 9, 17, 19, 28, 29}};
    inputs[1].tensor.lod = {{0, 3, 4, 4, 8, 11, 11}};
    return inputs;
  }
  static std::vector<RowCase::Input> Padded(int64_t steps, int64_t tags, int64_t labels,
                                            const std::vector<int64_t>& rows,
                                            const std::vector<int64_t>& counts) {
    const auto batch = static_cast<int64_t>(rows.size());
    return {{"Logits", SomeTensor<T>({steps, batch, tags}, 2)},
            {"Label", Integers({batch, labels}, 0, tags - 1)},
            {"LogitsLength", Tensor::Of<int64_t>(Shape({batch}), rows)},
            {"LabelLength", Tensor::Of<int64_t>(Shape({batch}), counts)}};
  }
};
using Scores = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CtcRows, Scores);

// Rows of a warp and of a block.
TYPED_TEST(CtcRows, JoinedSequencesHaveTheLossOfTheHost) {
  for (const int64_t tags : {2, 5, 1100}) {
    SCOPED_TRACE(tags);
    this->ExpectSameAsHost({"warpctc", {}, this->Joined(tags)});
  }
}

// More positions than a block has threads, and blanks that are tags.
TYPED_TEST(CtcRows, PaddedSequencesHaveTheLossOfTheHost) {
  this->ExpectSameAsHost({"warpctc",
                          {{"blank", int32_t{6}}},
                          this->Padded(7, 7, 3, {7, 0, 5, 1, 6}, {3, 2, 0, 1, 3})});
  if (sizeof(TypeParam) < sizeof(double)) return;  // sums of so many rows differ
  this->ExpectSameAsHost({"warpctc", {}, this->Padded(300, 4, 140, {300, 290}, {140, 130})});
}

TYPED_TEST(CtcRows, GradientsAreThoseOfTheHost) {
  for (const bool norm : {false, true}) {
    std::vector<RowCase::Input> inputs = {this->Joined(5)[0],
                                          {"WarpCTCGrad", SomeTensor<TypeParam>({9, 6, 5}, 3)},
                                          {"Loss@GRAD", SomeTensor<TypeParam>({6, 1}, 4)}};
    this->ExpectSameAsHost({"warpctc_grad", {{"norm_by_times", norm}}, inputs});
    inputs[0].tensor = SomeTensor<TypeParam>({9, 6, 5}, 1);
    inputs.push_back({"LogitsLength", Tensor::Of<int64_t>(Shape({6}), {9, 0, 1, 4, 8, 9})});
    this->ExpectSameAsHost({"warpctc_grad", {{"norm_by_times", norm}}, inputs});
  }
}

TYPED_TEST(CtcRows, ALabelThatIsNoTagMakesItsLossNaN) {
  std::vector<RowCase::Input> inputs = this->Padded(4, 3, 2, {4, 4}, {2, 2});
  inputs[1].tensor.template mutable_data<int64_t>()[1] = 3;
  const std::vector<Tensor> got = this->Run({"warpctc", {}, inputs}, PlaceKind::kCuda);
  const std::vector<TypeParam> loss = testing::Values<TypeParam>(got[0]);
  EXPECT_TRUE(std::isnan(loss[0]));
  EXPECT_FALSE(std::isnan(loss[1]));
  const std::vector<TypeParam> grad = testing::Values<TypeParam>(got[1]);
  for (size_t i = 0; i < grad.size(); ++i) EXPECT_EQ(std::isnan(grad[i]), i / 3 % 2 == 0) << i;
}

}  // namespace
}  // namespace interp::cuda_test
