// Ops of kernels/sequence on inputs that do not fit: each fails with what is wrong, and none reads
// beyond a tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

template <typename T = float>
Tensor Rows(const Shape& shape, const Lod& lod = {}) {
  Tensor tensor = Tensor::Of<T>(shape, std::vector<T>(static_cast<size_t>(shape.numel()), T{1}));
  tensor.lod = lod;
  return tensor;
}

Tensor Ints(const std::vector<int64_t>& values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size()), 1}, values);
}

const Lod kTwo = {{0, 1, 3}};                // 2 sequences, 3 rows
const Lod kThree = {{0, 1, 2, 3}};           // 3 sequences, 3 rows
const Lod kLevels = {{0, 1, 2}, {0, 1, 3}};  // 2 levels, 3 rows

TEST(SequenceErrorsTest, OpsThatNeedALodSayWhichInputHasNone) {
  const Tensor x = Rows({3, 2});
  const Tensor ids = Rows<int64_t>({3, 1});
  const std::string missing = "input 'X' is float32[3,2] without LoD";
  ExpectRefusals({
      {{"sequence_conv", {{"X", x}, {"Filter", Rows({2, 2})}}, {"Out"}, "contextLength=1"},
       missing},
      {{"sequence_pool", {{"X", x}}, {"Out"}, ""}, missing},
      {{"sequence_softmax", {{"X", Rows({3, 1})}}, {"Out"}, ""}, "without LoD"},
      {{"sequence_expand", {{"X", x}, {"Y", x}}, {"Out"}, ""}, "input 'Y' has no LoD"},
      {{"sequence_expand_as", {{"X", x}, {"Y", x}}, {"Out"}, ""},
       "input 'Y' is float32[3,2] without"},
      {{"sequence_concat", {{"X", x}, {"X", x}}, {"Out"}, ""}, missing},
      {{"sequence_slice", {{"X", x}, {"Offset", Ints({0})}, {"Length", Ints({1})}}, {"Out"}, ""},
       missing},
      {{"sequence_pad", {{"X", x}, {"PadValue", Rows({1})}}, {"Out", "Length"}, ""}, missing},
      {{"sequence_reverse", {{"X", x}}, {"Y"}, ""}, missing},
      {{"sequence_enumerate", {{"X", ids}}, {"Out"}, "win_size=2"}, "without LoD"},
      {{"sequence_erase", {{"X", ids}}, {"Out"}, "tokens=[1]"}, "without LoD"},
      {{"sequence_reshape", {{"X", x}}, {"Out"}, "new_dim=1"}, missing},
      {{"sequence_scatter", {{"X", x}, {"Ids", ids}, {"Updates", Rows({3, 1})}}, {"Out"}, ""},
       "input 'Ids' is int64[3,1] without LoD"},
      {{"lod_reset", {{"X", x}}, {"Out"}, ""}, "new LoD for 'X' of shape [3,2]: LoD level 0 is []"},
      {{"edit_distance", {{"Hyps", ids}, {"Refs", ids}}, {"Out", "SequenceNum"}, ""},
       "input 'Hyps' has a LoD of 0 levels"},
      {{"ctc_align", {{"Input", ids}}, {"Output"}, ""}, "'InputLength' with the lengths"},
      {{"row_conv", {{"X", x}, {"Filter", Rows({1, 2})}}, {"Out"}, ""}, "as it has no LoD"},
      {{"add_position_encoding", {{"X", x}}, {"Out"}, ""}, "as it has no LoD"},
  });
}

TEST(SequenceErrorsTest, LodsThatDisagreeAreRejected) {
  const Tensor two = Rows({3, 1}, kTwo);
  const Tensor three = Rows({3, 1}, kThree);
  const Tensor ids = Rows<int64_t>({3, 1}, kTwo);
  ExpectRefusals({
      {{"sequence_expand", {{"X", two}, {"Y", three}}, {"Out"}, ""},
       "input 'X' has 2 sequences, but the LoD of 'Y' has 3 parts"},
      {{"sequence_expand", {{"X", Rows({4, 1})}, {"Y", three}}, {"Out"}, ""},
       "input 'X' has 4 rows"},
      {{"sequence_expand", {{"X", Rows({2, 1})}, {"Y", two}}, {"Out"}, "ref_level=1"},
       "'ref_level' is 1"},
      {{"sequence_expand", {{"X", Rows({2, 1})}, {"Y", two}}, {"Out"}, "ref_level=-2"},
       "'ref_level' is -2"},
      {{"sequence_expand_as", {{"X", Rows({2, 1})}, {"Y", three}}, {"Out"}, ""},
       "input 'X' has 2 rows, but the LoD of 'Y' has 3"},
      {{"sequence_concat", {{"X", two}, {"X", three}}, {"Out"}, ""}, "2 and 3 sequences"},
      {{"sequence_concat", {{"X", two}, {"X", Rows({3, 2}, kTwo)}}, {"Out"}, ""},
       "rows of one size"},
      {{"sequence_scatter", {{"X", Rows({1, 9})}, {"Ids", ids}, {"Updates", two}}, {"Out"}, ""},
       "a row for each of them"},
      {{"sequence_scatter",
        {{"X", Rows({2, 9})}, {"Ids", ids}, {"Updates", Rows({2, 1})}},
        {"Out"},
        ""},
       "3 and 2 elements"},
  });
}

TEST(SequenceErrorsTest, LodResetChecksTheNewLod) {
  const Tensor two = Rows({3, 1}, kTwo);
  ExpectRefusals({
      {{"lod_reset", {{"X", Rows({4, 1})}, {"Y", two}}, {"Out"}, ""}, "ends with 3, expected 4"},
      {{"lod_reset", {{"X", two}}, {"Out"}, "target_lod=[0,2,1,3]"}, "do not descend"},
      {{"lod_reset", {{"X", two}}, {"Out"}, "target_lod=[0,1,3], append=true"},
       "LoD level 0 ends with 3"},
      {{"lod_reset", {{"X", two}, {"Y", Ints({1, 3})}}, {"Out"}, ""}, "start with 0"},
  });
}

TEST(SequenceErrorsTest, PairsOfSequencesMustBePairs) {
  const Tensor two = Rows({3, 1}, kTwo);
  const Tensor three = Rows({3, 1}, kThree);
  const Tensor ids = Rows<int64_t>({3, 1}, kTwo);
  ExpectRefusals({
      {{"edit_distance",
        {{"Hyps", ids}, {"Refs", Rows<int64_t>({3, 1}, kThree)}},
        {"Out", "SequenceNum"},
        ""},
       "different numbers of strings"},
      {{"sequence_topk_avg_pooling",
        {{"X", two}, {"ROW", two}, {"COLUMN", three}},
        {"Out"},
        "topks=[1], channel_num=1"},
       "2, 2 and 3 sequences"},
      {{"sequence_topk_avg_pooling",
        {{"X", two}, {"ROW", two}, {"COLUMN", two}},
        {"Out"},
        "topks=[1], channel_num=1"},
       "has 2 elements, expected 4"},
  });
}

TEST(SequenceErrorsTest, OpsOfOneLevelRejectMore) {
  const Tensor x = Rows({3, 1}, kLevels);
  const Tensor filter = Rows({1, 1});
  const std::string levels = "a LoD of 2 levels, expected 1";
  ExpectRefusals({
      {{"sequence_conv", {{"X", x}, {"Filter", filter}}, {"Out"}, "contextLength=1"}, levels},
      {{"sequence_concat", {{"X", x}, {"X", x}}, {"Out"}, ""}, levels},
      {{"sequence_pad", {{"X", x}, {"PadValue", filter}}, {"Out", "Length"}, ""}, levels},
      {{"sequence_reverse", {{"X", x}}, {"Y"}, ""}, levels},
      {{"sequence_reshape", {{"X", x}}, {"Out"}, "new_dim=1"}, levels},
      {{"sequence_expand", {{"X", x}, {"Y", x}}, {"Out"}, ""}, levels},
      {{"row_conv", {{"X", x}, {"Filter", filter}}, {"Out"}, ""}, levels},
  });
}

// concat hands on the LoD of its first input, which ends before the rows do.
TEST(SequenceErrorsTest, ALodShorterThanItsRowsIsRejected) {
  absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var x float32[3,1]\n  var y float32[2,1]\n  var joined float32[5,1]\n"
      "  var out float32[-1,1]\n  concat(X=[x, y]) -> (Out=joined) {axis=0}\n"
      "  sequence_pool(X=joined) -> (Out=out) {pooltype=\"SUM\"}\n");
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"x", "y"}, {"out"}, nullptr);
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT((*core)->Run({Rows({3, 1}, kTwo), Rows({2, 1})}),
              FailsWith(kInvalid, "the LoD of input 'X' does not fit its 5 rows"));
}

TEST(SequenceErrorsTest, ValuesOutsideOfASequenceAreRejected) {
  const Tensor x = Rows({3, 2}, kTwo);
  const auto slice = [&](const std::vector<int64_t>& offset, const std::vector<int64_t>& length) {
    return OpRun{"sequence_slice",
                 {{"X", x}, {"Offset", Ints(offset)}, {"Length", Ints(length)}},
                 {"Out"},
                 ""};
  };
  const auto unpad = [&](const std::vector<int64_t>& length) {
    return OpRun{"sequence_unpad", {{"X", Rows({2, 3})}, {"Length", Ints(length)}}, {"Out"}, ""};
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ExpectRefusals({
      {slice({0, 1}, {1, 2}), "sequence 1 of 'X' has 2 rows, but 'Offset' is 1 and 'Length' 2"},
      {slice({-1, 0}, {1, 1}), "'Offset' is -1"},
      {slice({0, 0}, {1, -1}), "'Length' -1"},
      {slice({1, kMost}, {kMost, kMost}), "sequence 0 of 'X'"},
      {slice({0}, {1}), "expected 2 numbers"},
      {unpad({1, 4}), "input 'Length' has the value 4, expected 0 to 3"},
      {unpad({-1, 1}), "input 'Length' has the value -1"},
      {unpad({1, 1, 1}), "a batch [N,L,...] and N lengths"},
  });
}

TEST(SequenceErrorsTest, LengthsBeyondAStringAreRejected) {
  const auto distance = [&](const std::vector<int64_t>& hyps, const std::vector<int64_t>& refs,
                            const std::string& attrs) {
    return OpRun{"edit_distance",
                 {{"Hyps", Rows<int64_t>({2, 3})},
                  {"Refs", Rows<int64_t>({2, 2})},
                  {"HypsLength", Ints(hyps)},
                  {"RefsLength", Ints(refs)}},
                 {"Out", "SequenceNum"},
                 attrs};
  };
  ExpectRefusals({
      {distance({1, 4}, {1, 1}, ""), "input 'HypsLength' has the value 4, expected 0 to 3"},
      {distance({1, 1}, {-1, 1}, ""), "input 'RefsLength' has the value -1"},
      {distance({1, 1}, {1, 0}, "normalized=true"), "string 1 of input 'Refs' is empty"},
  });
}

TEST(SequenceErrorsTest, IndicesAndSizesOutsideAreRejected) {
  ExpectRefusals({
      {{"sequence_scatter",
        {{"X", Rows({2, 1})}, {"Ids", Rows<int64_t>({3, 1}, kTwo)}, {"Updates", Rows({3, 1})}},
        {"Out"},
        ""},
       "'Ids' has the value 1"},
      {{"ctc_align",
        {{"Input", Rows<int64_t>({1, 2})}, {"InputLength", Ints({3})}},
        {"Output"},
        ""},
       "the value 3, expected 0 to 2"},
      {{"sequence_mask", {{"X", Ints({1})}, {"MaxLenTensor", Ints({0})}}, {"Y"}, ""},
       "'MaxLenTensor' is 0"},
      {{"sequence_mask", {{"X", Tensor::Of<float>({1}, std::vector<float>{1e30F})}}, {"Y"}, ""},
       "input 'X' has the value 1e+30"},
      {{"im2sequence",
        {{"X", Rows({2, 1, 3, 3})}, {"Y", Ints({3, 3, 900, 3})}},
        {"Out"},
        "kernels=[1,1]"},
       "more than there are"},
      {{"im2sequence",
        {{"X", Rows({2, 1, 3, 3})}, {"Y", Ints({3, 3, 0, 3})}},
        {"Out"},
        "kernels=[1,1]"},
       "'Y' has the size 0 for image 1"},
      {{"im2sequence", {{"X", Rows({2, 1, 3, 3})}, {"Y", Ints({3, 3})}}, {"Out"}, "kernels=[1,1]"},
       "the sizes of 2 images"},
  });
}

TEST(SequenceErrorsTest, ShapesAndAttributesThatDoNotFitAreRejected) {
  const Tensor x = Rows({3, 2}, kTwo);
  const auto conv = [&](const Shape& filter, const std::string& attrs) {
    return OpRun{"sequence_conv", {{"X", x}, {"Filter", Rows(filter)}}, {"Out"}, attrs};
  };
  const Tensor ids = Rows<int64_t>({3, 2}, kTwo);
  ExpectRefusals({
      {conv({5, 2}, "contextLength=2"), "expected 4 rows"},
      {conv({4, 2}, "contextLength=0"), "'contextLength' is 0"},
      {conv({4, 2}, "contextLength=2, contextStride=2"), "'contextStride' is 2"},
      {conv({4, 2}, "contextLength=2, paddingTrainable=true"), "input 'PaddingData' is missing"},
      {{"sequence_conv",
        {{"X", x}, {"PaddingData", Rows({2, 2})}, {"Filter", Rows({4, 2})}},
        {"Out"},
        "contextLength=2, paddingTrainable=true"},
       "'PaddingData' has shape [2,2], expected [1,2]"},
      {{"sequence_pool", {{"X", x}}, {"Out"}, "pooltype=\"MEDIAN\""}, "'pooltype' is 'MEDIAN'"},
      {{"sequence_softmax", {{"X", x}}, {"Out"}, ""}, "rows of one element"},
      {{"sequence_pad", {{"X", x}, {"PadValue", Rows({3})}}, {"Out", "Length"}, ""},
       "'PadValue' is float32[3]"},
      {{"sequence_pad", {{"X", x}, {"PadValue", Rows({1})}}, {"Out", "Length"}, "padded_length=1"},
       "at least 2"},
      {{"sequence_reshape", {{"X", x}}, {"Out"}, "new_dim=3"},
       "sequence 0 of 'X' does not fill rows of 3"},
      {{"sequence_reshape", {{"X", x}}, {"Out"}, "new_dim=0"}, "'new_dim' is 0"},
      {{"sequence_enumerate", {{"X", ids}}, {"Out"}, "win_size=2"}, "rows of one element"},
      {{"sequence_enumerate", {{"X", ids}}, {"Out"}, "win_size=0"}, "'win_size' is 0"},
      {{"sequence_erase", {{"X", ids}}, {"Out"}, "tokens=[1]"}, "rows of one element"},
      {{"row_conv", {{"X", x}, {"Filter", Rows({1, 3})}}, {"Out"}, ""}, "'Filter' has shape [1,3]"},
      {{"add_position_encoding", {{"X", Rows({3, 3}, kTwo)}}, {"Out"}, ""},
       "an even number of columns"},
      {{"hash", {{"X", ids}}, {"Out"}, "mod_by=long:0"}, "'mod_by' 0"},
  });
}

TEST(SequenceErrorsTest, TopkCountsMustRise) {
  const Tensor x = Rows({3, 2}, kTwo);
  const auto topk = [&](const std::string& attrs) {
    return OpRun{"sequence_topk_avg_pooling",
                 {{"X", Rows({3, 1}, kTwo)}, {"ROW", x}, {"COLUMN", x}},
                 {"Out"},
                 attrs};
  };
  ExpectRefusals({
      {topk("topks=[2,1], channel_num=1"), "'topks' must list counts"},
      {topk("topks=[], channel_num=1"), "'topks' must list counts"},
      {topk("topks=[1], channel_num=0"), "'channel_num' is 0"},
  });
}

// Repeating empty sequences takes no memory of tensors, but offsets.
TEST(SequenceErrorsTest, AnAbsurdNumberOfSequencesIsRejected) {
  const Tensor empty = Rows({0, 1}, {{0, 0}});
  const Tensor many = Rows({int64_t{1} << 40, 0}, {{0, int64_t{1} << 40}});
  ExpectRefusals({{{"sequence_expand", {{"X", empty}, {"Y", many}}, {"Out"}, ""},
                   "asks for 1099511627776 sequences"}});
}

// Shapes without elements may be as long as they like, and so may what would be computed for them.
TEST(SequenceErrorsTest, NothingIsComputedForNoElements) {
  constexpr int64_t kLong = int64_t{1} << 30;
  EXPECT_THAT(RunOp({"sequence_conv",
                     {{"X", Rows({3, 1}, kTwo)}, {"Filter", Rows({kLong, 0})}},
                     {"Out"},
                     absl::StrCat("contextLength=", kLong)}),
              IsOk());
  EXPECT_THAT(RunOp({"add_position_encoding", {{"X", Rows({0, kLong << 10, 2})}}, {"Out"}, ""}),
              IsOk());
  EXPECT_THAT(RunOp({"im2sequence", {{"X", Rows({kLong, 0, 1, 1})}}, {"Out"}, "kernels=[1,1]"}),
              FailsWith(kInvalid, "at most 67108864 images"));
}

}  // namespace
}  // namespace interp::testing
