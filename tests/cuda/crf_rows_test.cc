// The row of crf_decoding.
#include <limits>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class CrfRows : public RowTest {
 protected:
  // [rows, tags] and the scores of `tags` tags.
  static std::vector<RowCase::Input> Inputs(std::vector<int64_t> dims) {
    const int64_t tags = dims.back();
    return {{"Emission", SomeTensor<T>(dims, 1)},
            {"Transition", SomeTensor<T>({tags + 2, tags}, 2)}};
  }
};
using Scores = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CrfRows, Scores);

// Fewer and more tags than a block has threads, sequences of no row and of one, more sequences
// than blocks.
TYPED_TEST(CrfRows, JoinedSequencesGetTheTagsOfTheHost) {
  for (const int64_t tags : {1, 5, 57, 300}) {
    SCOPED_TRACE(tags);
    std::vector<RowCase::Input> inputs = this->Inputs({23, tags});
    inputs[0].tensor.lod = {{0, 4, 4, 5, 11, 20, 23}};
    this->ExpectSameAsHost({"crf_decoding", {}, inputs});
    std::vector<int64_t> label(23);
    for (size_t i = 0; i < label.size(); ++i) label[i] = static_cast<int64_t>(i) % tags;
    inputs.push_back({"Label", Tensor::Of<int64_t>(Shape({23, 1}), label)});
    this->ExpectSameAsHost({"crf_decoding", {}, inputs});
  }
}

TYPED_TEST(CrfRows, PaddedSequencesGetTheTagsOfTheHost) {
  std::vector<RowCase::Input> inputs = this->Inputs({4, 6, 7});
  inputs.push_back({"Length", Tensor::Of<int64_t>(Shape({4}), {6, 0, 1, 4})});
  this->ExpectSameAsHost({"crf_decoding", {}, inputs});
  inputs.back() = {"Length", Tensor::Of<int32_t>(Shape({4, 1}), {3, 6, 5, 2})};
  this->ExpectSameAsHost({"crf_decoding", {}, inputs});
  inputs.insert(inputs.end() - 1,
                {"Label", Tensor::Of<int32_t>(Shape({4, 6}), std::vector<int32_t>(24, 3))});
  this->ExpectSameAsHost({"crf_decoding", {}, inputs});
}

TYPED_TEST(CrfRows, LengthsOutOfRangeAreThoseNextToThem) {
  std::vector<RowCase::Input> inputs = this->Inputs({3, 4, 5});
  inputs.push_back({"Length", Tensor::Of<int64_t>(Shape({3}), {4, 0, 2})});
  const std::vector<Tensor> want = this->Run({"crf_decoding", {}, inputs}, PlaceKind::kCpu);
  inputs.back().tensor = Tensor::Of<int64_t>(Shape({3}), {1000, -7, 2});
  const std::vector<Tensor> got = this->Run({"crf_decoding", {}, inputs}, PlaceKind::kCuda);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(testing::Values<int64_t>(got[0]), testing::Values<int64_t>(want[0]));
}

// Equal scores, and scores that never win.
TYPED_TEST(CrfRows, TiesAndScoresThatAreNoneGoAsOnTheHost) {
  std::vector<RowCase::Input> inputs = this->Inputs({6, 4});
  inputs[0].tensor = Tensor::Of<TypeParam>(Shape({6, 4}), std::vector<TypeParam>(24, 1));
  inputs[1].tensor = Tensor::Of<TypeParam>(Shape({6, 4}), std::vector<TypeParam>(24, 0));
  inputs[0].tensor.lod = {{0, 6}};
  this->ExpectSameAsHost({"crf_decoding", {}, inputs});
  TypeParam* const scores = inputs[0].tensor.template mutable_data<TypeParam>();
  scores[9] = std::numeric_limits<TypeParam>::quiet_NaN();
  for (int i = 16; i < 20; ++i) scores[i] = -std::numeric_limits<TypeParam>::infinity();
  this->ExpectSameAsHost({"crf_decoding", {}, inputs});
}

TYPED_TEST(CrfRows, NoSequencesAreNoWork) {
  std::vector<RowCase::Input> inputs = this->Inputs({0, 4});
  inputs[0].tensor.lod = {{0}};
  this->ExpectSameAsHost({"crf_decoding", {}, inputs});
}

}  // namespace
}  // namespace interp::cuda_test
