// Attention, rotary positions and the ops of matching nets: what golden cases do not show.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "tests/kernels/op_runs.h"

namespace interp::testing::attention_ops_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

OpRun Flash(const Shape& q, const Shape& k, const std::string& attrs = "") {
  return {"flash_attn",
          {{"q", Numbers(q, 1)}, {"k", Numbers(k, 2)}, {"v", Numbers(k, 3)}},
          {"out"},
          attrs};
}

TEST(AttentionOpsTest, AQueryThatSeesNothingGetsZeros) {
  const auto outputs = OutputsOf(Flash({1, 3, 1, 2}, {1, 1, 1, 2}, "causal=true"));
  const std::vector<float> out = Values<float>(outputs[0]);
  EXPECT_THAT(std::vector<float>(out.begin(), out.begin() + 4), Each(0));
  EXPECT_NE(out[4], 0);
}

TEST(AttentionOpsTest, NoKeysGiveZeros) {
  EXPECT_THAT(Values<float>(OutputsOf(Flash({1, 2, 1, 2}, {1, 0, 1, 2}))[0]), Each(0));
}

// The largest score of a row passes NaN by, but what is not a number stays none.
TEST(AttentionOpsTest, ANaNInTheMaskIsSeen) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  OpRun run = Flash({1, 2, 1, 2}, {1, 3, 1, 2});
  run.inputs.push_back(
      {"attn_mask", TensorOf<float>({1, 1, 2, 3}, {kNever, NAN, kNever, kNever, 0, kNever})});
  const std::vector<float> out = Values<float>(OutputsOf(run)[0]);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_FALSE(std::isnan(out[2]));
}

// Values that no query of a block sees are not read.
TEST(AttentionOpsTest, ValuesBehindAllQueriesAreNotRead) {
  OpRun run = {"memory_efficient_attention",
               {{"query", Numbers({1, 6, 1, 4}, 1)},
                {"key", Numbers({1, 9, 1, 4}, 2)},
                {"value", Numbers({1, 9, 1, 40}, 3)}},
               {"output"},
               "causal=true"};
  const std::vector<float> expected = Values<float>(OutputsOf(run)[0]);
  std::vector<float> values = Values<float>(run.inputs[2].second);
  std::fill(values.begin() + 6 * 40, values.end(), NAN);
  EXPECT_EQ(Values<float>(OutputsOf(With(run, 2, TensorOf<float>({1, 9, 1, 40}, values)))[0]),
            expected);
}

TEST(AttentionOpsTest, ValuesOfNoWidthHaveWeights) {
  OpRun run = Flash({1, 2, 1, 4}, {1, 5, 1, 4}, "return_softmax=true");
  run.inputs[2].second = Numbers({1, 5, 1, 0}, 3);
  run.outputs = {"out", "softmax_lse", "seed_offset", "softmax"};
  const std::vector<float> weights = Values<float>(OutputsOf(run)[3]);
  EXPECT_NEAR(std::accumulate(weights.begin(), weights.begin() + 5, 0.0F), 1, 1e-6);
}

TEST(AttentionOpsTest, RefusesWhatDoesNotFit) {
  OpRun masked = Flash({1, 3, 2, 4}, {1, 5, 2, 4});
  masked.inputs.push_back({"attn_mask", Numbers({1, 2, 5, 3}, 4)});
  ExpectRefusals({
      {Flash({1, 3, 3, 4}, {1, 3, 2, 4}), "expected [batch,length,heads,width]"},
      {Flash({1, 3, 2, 4}, {1, 3, 2, 5}), "expected [batch,length,heads,width]"},
      {masked, "the mask has shape [1,2,5,3], expected [1,2,3,5]"},
      {Flash({1, 3, 2, 4}, {1, 3, 2, 4}, "dropout=0.1"), "not dropped in training"},
  });
}

OpRun Rotary(const Shape& q, const Shape& table, std::vector<int64_t> places) {
  return {"fused_rotary_position_embedding",
          {{"q", Numbers(q, 1)},
           {"sin", Numbers(table, 2)},
           {"cos", Numbers(table, 3)},
           {"position_ids", TensorOf<int64_t>({1, 2}, places)}},
          {"out_q"},
          ""};
}

TEST(AttentionOpsTest, RotaryPositionsLieInTheTables) {
  ExpectRefusals({
      {Rotary({1, 2, 1, 4}, {3, 4}, {0, 3}), "'position_ids' has 3"},
      {Rotary({1, 2, 1, 4}, {3, 4}, {-1, 0}), "'position_ids' has -1"},
      {Rotary({1, 2, 1, 4}, {3, 2}, {0, 1}), "expected rows of 4 elements"},
      {Rotary({1, 2, 1, 3}, {3, 3}, {0, 1}), "an even width"},
  });
}

// Node 0 has the neighbors 1 to 6.
TEST(AttentionOpsTest, KhopSamplesHaveNoRepeats) {
  const OpRun run = {"graph_khop_sampler",
                     {{"Row", TensorOf<int64_t>({6}, {1, 2, 3, 4, 5, 6})},
                      {"Col_Ptr", TensorOf<int64_t>({8}, {0, 6, 6, 6, 6, 6, 6, 6})},
                      {"X", TensorOf<int64_t>({1}, {0})}},
                     {"Out_Src", "Out_Dst", "Sample_Index", "Reindex_X"},
                     "sample_sizes=[4]"};
  const std::vector<Tensor> outputs = OutputsOf(run);
  EXPECT_THAT(Values<int64_t>(outputs[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Values<int64_t>(outputs[1]), Each(0));
  const std::vector<int64_t> nodes = Values<int64_t>(outputs[2]);
  EXPECT_EQ(std::set<int64_t>(nodes.begin(), nodes.end()).size(), 5u);
  EXPECT_EQ(*std::max_element(nodes.begin(), nodes.end()) <= 6, true);
  ExpectRefusals({{With(run, 2, TensorOf<int64_t>({1}, {7})), "there is no node 7"},
                  {With(run, 1, TensorOf<int64_t>({2}, {0, 9})), "has the edges 0 to 9 of 6"}});
}

TEST(AttentionOpsTest, PyramidHashRefusesWhatIsNoFilter) {
  const OpRun run = {"pyramid_hash",
                     {{"X", TensorOf<int32_t>({2, 1}, {1, 2}, {{0, 2}})},
                      {"W", Numbers({12, 1}, 1)},
                      {"WhiteList", Numbers({9, 1}, 2)}},
                     {"Out", "DropPos", "X_Temp_Out"},
                     "num_emb=4, space_len=10, rand_len=2, pyramid_layer=2, white_list_len=9"};
  ExpectRefusals({{run, "is no Bloom filter"},
                  {With(run, 1, Numbers({10, 1}, 1)), "input 'W' has shape [10,1]"}});
}

TEST(AttentionOpsTest, CorrelationNeedsImagesLargerThanDisplacements) {
  const OpRun run = {"correlation",
                     {{"Input1", Numbers({1, 1, 4, 4}, 1)}, {"Input2", Numbers({1, 1, 4, 4}, 2)}},
                     {"Output"},
                     "pad_size=0, kernel_size=1, max_displacement=2, stride1=1, stride2=1"};
  ExpectRefusals({{run, "smaller than 2 x 2 beyond the padding"}});
}

}  // namespace
}  // namespace interp::testing::attention_ops_test
