// Rows of ops over the sequences of a LoD.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using SequenceRows = RowTest;

Tensor WithLod(Tensor tensor, std::vector<std::vector<int64_t>> lod) {
  tensor.lod.assign(lod.begin(), lod.end());
  return tensor;
}

// Three sequences, one of them empty, and more columns than a warp has lanes.
Tensor SequencesOf(uint32_t seed = 1) {
  return WithLod(SomeTensor<float>({7, 37}, seed), {{0, 3, 3, 7}});
}

TEST_F(SequenceRows, EveryPoolingGivesWhatTheHostGives) {
  for (const char* const type : {"AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST"}) {
    SCOPED_TRACE(type);
    ExpectSameAsHost(
        {"sequence_pool", {{"pooltype", type}, {"pad_value", 1.5f}}, {{"X", SequencesOf()}}});
    if (std::string(type) == "MAX") continue;
    ExpectSameAsHost({"sequence_pool_grad",
                      {{"pooltype", type}},
                      {{"X", SequencesOf()}, {"Out@GRAD", SomeTensor<float>({3, 37}, 2)}}});
  }
}

TEST_F(SequenceRows, GradientsOfMaximaGoToTheRowsOfMaxIndex) {
  const Tensor x = WithLod(SomeTensor<double>({5, 2}), {{0, 2, 2, 5}});
  const Tensor index = Tensor::Of<int32_t>(Shape({3, 2}), {1, 0, -1, -1, 4, 2});
  ExpectSameAsHost({"sequence_pool_grad",
                    {{"pooltype", "MAX"}},
                    {{"X", x}, {"MaxIndex", index}, {"Out@GRAD", SomeTensor<double>({3, 2}, 2)}}});
}

TEST_F(SequenceRows, MoreOffsetsThanALaunchTakes) {
  std::vector<int64_t> offsets(1201);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int64_t>(i * 2);
  const Tensor x = WithLod(SomeTensor<float>({2400, 2}), {offsets});
  ExpectSameAsHost({"sequence_pool", {{"pooltype", "SUM"}}, {{"X", x}}});
  ExpectSameAsHost({"sequence_reverse", {}, {{"X", x}}});
}

TEST_F(SequenceRows, SoftmaxWithinShortAndLongSequences) {
  for (const std::vector<int64_t>& offsets :
       {std::vector<int64_t>{0, 3, 3, 40}, {0, 1, 1030, 2100}}) {
    const int64_t rows = offsets.back();
    const Tensor x = WithLod(SomeTensor<float>({rows, 1}), {offsets});
    ExpectSameAsHost({"sequence_softmax", {}, {{"X", x}}});
    ExpectSameAsHost({"sequence_softmax_grad",
                      {},
                      {{"X", x},
                       {"Out", SomeTensor<float>({rows, 1}, 2)},
                       {"Out@GRAD", SomeTensor<float>({rows, 1}, 3)}}});
  }
}

TEST_F(SequenceRows, SequencesAndRowsAreRepeated) {
  const Tensor y = WithLod(SomeTensor<float>({6, 1}), {{0, 2, 2, 5}, {0, 1, 2, 3, 4, 6}});
  const std::vector<Attr> level = {{"ref_level", int32_t{0}}};
  ExpectSameAsHost({"sequence_expand", level, {{"X", SequencesOf()}, {"Y", y}}});
  ExpectSameAsHost(
      {"sequence_expand_grad",
       level,
       {{"X", SequencesOf()}, {"Y", y}, {"Out@GRAD", SomeTensor<float>({18, 37}, 2)}}});
  const Tensor rows = SomeTensor<int64_t>({5, 3});
  ExpectSameAsHost({"sequence_expand", {}, {{"X", rows}, {"Y", y}}});
}

TEST_F(SequenceRows, RowsAreRepeatedAsSequences) {
  const Tensor x = SomeTensor<float>({3, 5});
  ExpectSameAsHost({"sequence_expand_as", {}, {{"X", x}, {"Y", SequencesOf()}}});
  ExpectSameAsHost({"sequence_expand_as_grad",
                    {},
                    {{"X", x}, {"Y", SequencesOf()}, {"Out@GRAD", SomeTensor<float>({7, 5}, 2)}}});
}

TEST_F(SequenceRows, SequencesAreReversed) {
  ExpectSameAsHost({"sequence_reverse", {}, {{"X", SequencesOf()}}});
  const Tensor bytes = WithLod(SomeTensor<int8_t>({4, 3}), {{0, 1, 4}});
  ExpectSameAsHost({"sequence_reverse", {}, {{"X", bytes}}});
}

TEST_F(SequenceRows, SequencesAreJoinedAndTakenApart) {
  const Tensor other = WithLod(SomeTensor<float>({4, 37}, 2), {{0, 0, 2, 4}});
  ExpectSameAsHost({"sequence_concat", {}, {{"X", SequencesOf()}, {"X", other}}});
  ExpectSameAsHost(
      {"sequence_concat_grad",
       {},
       {{"X", SequencesOf()}, {"X", other}, {"Out@GRAD", SomeTensor<float>({11, 37}, 3)}},
       {2}});
}

TEST_F(SequenceRows, BatchesArePaddedAndUnpadded) {
  const Tensor one = SomeTensor<float>({1});
  const Tensor row = SomeTensor<float>({37}, 2);
  for (const Tensor& value : {one, row}) {
    ExpectSameAsHost({"sequence_pad",
                      {{"padded_length", int32_t{5}}},
                      {{"X", SequencesOf()}, {"PadValue", value}}});
  }
  const Tensor batch = SomeTensor<float>({3, 5, 37});
  ExpectSameAsHost({"sequence_pad_grad", {}, {{"X", SequencesOf()}, {"Out@GRAD", batch}}});
  const Tensor lengths = Tensor::Of<int64_t>(Shape({3}), {3, 0, 4});
  ExpectSameAsHost({"sequence_unpad", {}, {{"X", batch}, {"Length", lengths}}});
  ExpectSameAsHost({"sequence_unpad_grad", {}, {{"X", batch}, {"Out@GRAD", SequencesOf()}}});
}

// Longer ones than a launch copies.
TEST_F(SequenceRows, LongBatchesArePadded) {
  const Tensor x = WithLod(SomeTensor<int8_t>({3, 1}), {{0, 1, 3}});
  ExpectSameAsHost({"sequence_pad",
                    {{"padded_length", int32_t{150'000}}},
                    {{"X", x}, {"PadValue", Tensor::Of<int8_t>(Shape({1}), {7})}}});
}

// Windows that reach beyond both ends of sequences, and windows that lie beside their rows.
TEST_F(SequenceRows, WindowsOfRowsAreMultipliedBothWays) {
  const Tensor x = WithLod(SomeTensor<double>({7, 37}), {{0, 3, 3, 7}});
  for (const auto& [start, length] :
       {std::pair<int, int>{0, 1}, {-1, 3}, {-3, 2}, {2, 3}, {-6, 12}}) {
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(absl::StrCat("start ", start, ", length ", length, ", padded ", padded));
      const std::vector<Attr> attrs = {
          {"contextStart", start}, {"contextLength", length}, {"paddingTrainable", padded}};
      const int64_t before = std::max(0, -start);
      const int64_t behind = std::max(0, start + length - 1);
      std::vector<RowCase::Input> inputs = {
          {"X", x},
          {"PaddingData", SomeTensor<double>({before + behind, 37}, 2)},
          {"Filter", SomeTensor<double>({length * 37, 5}, 3)}};
      ExpectSameAsHost({"sequence_conv", attrs, inputs});
      inputs.push_back({"Out@GRAD", SomeTensor<double>({7, 5}, 4)});
      ExpectSameAsHost({"sequence_conv_grad", attrs, inputs});
    }
  }
  ExpectSameAsHost({"sequence_conv",
                    {{"contextStart", int32_t{-1}}, {"contextLength", int32_t{3}}},
                    {{"X", WithLod(SomeTensor<float>({4, 2}), {{0, 1, 4}})},
                     {"Filter", SomeTensor<float>({6, 5})}}});
}

TEST_F(SequenceRows, WindowsOfNoRowsGiveGradientsOfZero) {
  const std::vector<Attr> attrs = {
      {"contextStart", int32_t{-1}}, {"contextLength", int32_t{3}}, {"paddingTrainable", true}};
  std::vector<RowCase::Input> inputs = {{"X", WithLod(SomeTensor<double>({0, 2}), {{0, 0}})},
                                        {"PaddingData", SomeTensor<double>({2, 2})},
                                        {"Filter", SomeTensor<double>({6, 5})}};
  ExpectSameAsHost({"sequence_conv", attrs, inputs});
  inputs.push_back({"Out@GRAD", SomeTensor<double>({0, 5})});
  ExpectSameAsHost({"sequence_conv_grad", attrs, inputs});
}

TEST_F(SequenceRows, WindowsOfImagesBecomeRowsAndGiveGradients) {
  // Windows that overlap, that leave pixels out, and larger ones than a block has threads.
  struct Way {
    std::vector<int32_t> kernels, strides, paddings;
  };
  for (const Way& way : {Way{{2, 3}, {1, 2}, {1, 0, 0, 2}}, Way{{1, 1}, {2, 3}, {0, 0, 0, 0}},
                         Way{{9, 11}, {4, 4}, {2, 3, 3, 2}}}) {
    SCOPED_TRACE(way.kernels[0]);
    const std::vector<Attr> attrs = {
        {"kernels", way.kernels}, {"strides", way.strides}, {"paddings", way.paddings}};
    const int64_t lines = (9 + way.paddings[0] + way.paddings[2] - way.kernels[0]) / way.strides[0];
    const int64_t across =
        (11 + way.paddings[1] + way.paddings[3] - way.kernels[1]) / way.strides[1];
    const int64_t size = int64_t{3} * way.kernels[0] * way.kernels[1];
    const Tensor x = SomeTensor<float>({2, 3, 9, 11});
    ExpectSameAsHost({"im2sequence", attrs, {{"X", x}}});
    ExpectSameAsHost(
        {"im2sequence_grad",
         attrs,
         {{"Out@GRAD", SomeTensor<float>({2 * (lines + 1) * (across + 1), size}, 2)}, {"X", x}}});
  }
  ExpectSameAsHost({"im2sequence",
                    {{"kernels", std::vector<int32_t>{1, 1}}},
                    {{"X", SomeTensor<int8_t>({0, 3, 2, 2})}}});
}

TEST_F(SequenceRows, ImagesOfSomeSizesHaveAsManyWindows) {
  const std::vector<Attr> attrs = {{"kernels", std::vector<int32_t>{2, 2}},
                                   {"out_stride", std::vector<int32_t>{2, 2}}};
  const Tensor x = SomeTensor<double>({3, 2, 5, 6});
  const Tensor sizes = Tensor::Of<float>(Shape({3, 2}), {10, 12, 4, 7, 9, 4});
  ExpectSameAsHost({"im2sequence", attrs, {{"X", x}, {"Y", sizes}}});
  // Windows of 5x6, 2x4 and 5x2 pixels.
  const Tensor grad = SomeTensor<double>({4 * 5 + 1 * 3 + 4 * 1, 8}, 2);
  ExpectSameAsHost({"im2sequence_grad", attrs, {{"Out@GRAD", grad}, {"X", x}, {"Y", sizes}}});
}

TEST_F(SequenceRows, LengthsOfAnyDtypeBecomeMasks) {
  const std::vector<int64_t> counts = {3, 0, -2, 7, 40};
  for (const DType out : {DType::kBool, DType::kUInt8, DType::kInt16, DType::kBFloat16,
                          DType::kFloat32, DType::kInt64, DType::kComplex64, DType::kComplex128}) {
    SCOPED_TRACE(Name(out));
    const std::vector<Attr> attrs = {{"maxlen", int32_t{7}},
                                     {"out_dtype", static_cast<int32_t>(out)}};
    ExpectSameAsHost({"sequence_mask", attrs, {{"X", Tensor::Of<int64_t>(Shape({5}), counts)}}});
  }
  const std::vector<float> floats = {0.0f, 2.5f, -1.0f, std::nanf(""), 1e30f, 7.0f};
  const std::vector<Attr> seven = {{"maxlen", int32_t{7}}};
  ExpectSameAsHost({"sequence_mask", seven, {{"X", Tensor::Of<float>(Shape({2, 3}), floats)}}});
  // As wide as the largest length, and more lengths than a launch takes.
  ExpectSameAsHost({"sequence_mask", {}, {{"X", SomeTensor<int32_t>({300, 3})}}});
  ExpectSameAsHost({"sequence_mask", {}, {{"X", SomeTensor<double>({0, 3})}}});
}

TEST_F(SequenceRows, SequencesGetAnotherLodAndOtherRows) {
  ExpectSameAsHost(
      {"lod_reset", {{"target_lod", std::vector<int32_t>{0, 1, 7}}}, {{"X", SequencesOf()}}});
  ExpectSameAsHost(
      {"lod_reset_grad", {}, {{"X", SequencesOf()}, {"Out@GRAD", SomeTensor<float>({7, 37}, 2)}}});
  const Tensor x = WithLod(SomeTensor<int64_t>({6, 4}), {{0, 2, 6}});
  ExpectSameAsHost({"sequence_reshape", {{"new_dim", int32_t{2}}}, {{"X", x}}});
  ExpectSameAsHost({"sequence_reshape_grad",
                    {{"new_dim", int32_t{2}}},
                    {{"X", x}, {"Out@GRAD", SomeTensor<int64_t>({12, 2}, 2)}}});
}

TEST_F(SequenceRows, NothingIsLaunchedForNoSequences) {
  const Tensor x = WithLod(SomeTensor<float>({0, 1}), {{0}});
  ExpectSameAsHost({"sequence_pool", {}, {{"X", x}}});
  ExpectSameAsHost({"sequence_softmax", {}, {{"X", x}}});
  ExpectSameAsHost({"sequence_reverse", {}, {{"X", x}}});
}

}  // namespace
}  // namespace interp::cuda_test
