// What the golden cases of kernels/sequence cannot hold: kernels that Paddle 2.6.2 does not have or
// that raise there, tensors without rows, threads, and LoDs that change from run to run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;

template <typename T>
Tensor Random(const Shape& shape, const Lod& lod = {}, uint32_t seed = 1) {
  std::mt19937 generator(seed);
  std::vector<T> values(static_cast<size_t>(shape.numel()));
  for (T& value : values) value = static_cast<T>(static_cast<int>(generator() % 2001) - 1000) / 512;
  return TensorOf<T>(shape, values, lod);
}

// The offsets of sequences of these lengths.
std::vector<int64_t> Level(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> level = {0};
  for (const int64_t length : lengths) level.push_back(level.back() + length);
  return level;
}

std::vector<Tensor> Compute(const OpRun& run, const CoreOptions& options = {}) {
  absl::StatusOr<std::vector<Tensor>> results = RunOp(run, options);
  EXPECT_THAT(results, IsOk()) << ProgramText(run);
  return results.ok() ? *std::move(results) : std::vector<Tensor>(run.outputs.size());
}

MATCHER(IsNear, "") {
  const auto [got, want] = arg;
  return std::abs(got - want) <= 1e-12 * (1 + std::abs(want));
}

// --- sequence_conv in float64, on which Paddle's kernel raises ---

struct Window {
  int64_t length;
  int64_t start;
};

// Element by element, straight from the definition.
std::vector<double> Convolve(const Tensor& x, const Tensor& filter, const Tensor* padding,
                             const Window& window) {
  const int64_t width = x.shape[1];
  const int64_t before = std::max<int64_t>(0, -window.start);
  std::vector<double> out;
  const std::vector<int64_t>& level = x.lod[0];
  const auto element = [&](int64_t row, int64_t column, int64_t begin, int64_t end) {
    if (row >= begin && row < end) return x.data<double>()[row * width + column];
    if (padding == nullptr) return 0.0;
    const int64_t at = row < begin ? before + row - begin : before + row - end;
    return padding->data<double>()[at * width + column];
  };
  for (size_t i = 0; i + 1 < level.size(); ++i) {
    for (int64_t t = level[i]; t < level[i + 1]; ++t) {
      for (int64_t m = 0; m < filter.shape[1]; ++m) {
        double sum = 0;
        for (int64_t k = 0; k < window.length * width; ++k) {
          const int64_t row = t + window.start + k / width;
          sum += element(row, k % width, level[i], level[i + 1]) *
                 filter.data<double>()[k * filter.shape[1] + m];
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

TEST(SequenceConvTest, Float64FollowsTheDefinition) {
  const Tensor x = Random<double>({13, 3}, {Level({4, 0, 1, 6, 2})});
  for (const int64_t length : {1, 2, 3, 8}) {
    for (const int64_t start : {-9, -8, -3, -1, 0, 2, 7}) {
      for (const bool padded : {false, true}) {
        const int64_t rows =
            std::max<int64_t>(0, -start) + std::max<int64_t>(0, start + length - 1);
        const Tensor filter = Random<double>({length * 3, 5}, {}, 2);
        const Tensor padding = Random<double>({rows, 3}, {}, 3);
        OpRun run{"sequence_conv", {{"X", x}}, {"Out"}, ""};
        if (padded) run.inputs.emplace_back("PaddingData", padding);
        run.inputs.emplace_back("Filter", filter);
        run.attrs = absl::StrCat("contextLength=", length, ", contextStart=", start,
                                 ", paddingTrainable=", padded ? "true" : "false");
        const Tensor out = Compute(run)[0];
        EXPECT_EQ(out.lod, x.lod);
        EXPECT_THAT(
            Values<double>(out),
            Pointwise(IsNear(), Convolve(x, filter, padded ? &padding : nullptr, {length, start})))
            << run.attrs;
      }
    }
  }
}

// --- sequence_topk_avg_pooling, which Paddle 2.6.2 does not have ---

struct TopkItem {
  int64_t rows;
  int64_t columns;
};

// By sorting whole rows.
void PoolTopk(const Tensor& x, const std::vector<TopkItem>& items, int64_t channels,
              const std::vector<int>& topks, std::vector<double>& out, std::vector<int>& pos) {
  const float* item_values = x.data<float>();
  for (const TopkItem& item : items) {
    for (int64_t r = 0; r < item.rows; ++r) {
      for (int64_t c = 0; c < channels; ++c) {
        const float* row = item_values + (c * item.rows + r) * item.columns;
        std::vector<int> order(static_cast<size_t>(item.columns));
        for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int>(k);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
        order.resize(static_cast<size_t>(topks.back()), -1);
        pos.insert(pos.end(), order.begin(), order.end());
        for (const int topk : topks) {
          double sum = 0;
          for (int k = 0; k < topk; ++k) sum += order[k] < 0 ? 0 : row[order[k]];
          out.push_back(sum / topk);
        }
      }
    }
    item_values += channels * item.rows * item.columns;
  }
}

TEST(SequenceTopkAvgPoolingTest, FollowsTheDefinition) {
  const std::vector<TopkItem> items = {{2, 7}, {0, 3}, {3, 1}, {1, 0}, {4, 5}};
  constexpr int64_t kChannels = 3;
  std::vector<int64_t> rows, columns, elements;
  for (const TopkItem& item : items) {
    rows.push_back(item.rows);
    columns.push_back(item.columns);
    elements.push_back(kChannels * item.rows * item.columns);
  }
  const int64_t total = Level(elements).back();
  Tensor x = Random<float>({total, 1}, {Level(elements)});
  for (int64_t i = 0; i < total; i += 3) x.mutable_data<float>()[i] = 0.5F;  // ties
  const std::vector<Tensor> got =
      Compute({.type = "sequence_topk_avg_pooling",
               .inputs = {{"X", x},
                          {"ROW", Random<float>({10, 2}, {Level(rows)})},
                          {"COLUMN", Random<float>({16, 2}, {Level(columns)})}},
               .outputs = {"Out", "pos"},
               .attrs = "topks=[1,3,4], channel_num=3"});
  std::vector<double> averages;
  std::vector<int> positions;
  PoolTopk(x, items, kChannels, {1, 3, 4}, averages, positions);
  EXPECT_EQ(got[0].shape, Shape({10, 9}));
  EXPECT_EQ(got[0].lod, Lod{Level(rows)});
  const std::vector<float> values = Values<float>(got[0]);
  ASSERT_EQ(values.size(), averages.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], averages[i], 1e-6) << i;
  EXPECT_EQ(Values<int>(got[1]), positions);
}

// --- LoD of three levels, where Paddle takes two ---

TEST(SequencePoolTest, PoolsTheLowestOfThreeLevels) {
  const Lod lod = {{0, 1, 2}, {0, 2, 3}, {0, 1, 1, 4}};
  const Tensor out = Compute({.type = "sequence_pool",
                              .inputs = {{"X", TensorOf<float>({4, 1}, {1, 2, 3, 4}, lod)}},
                              .outputs = {"Out"},
                              .attrs = "pooltype=\"SUM\", pad_value=7.0"})[0];
  EXPECT_THAT(Values<float>(out), ElementsAre(1, 7, 9));
  EXPECT_EQ(out.lod, Lod({{0, 1, 2}, {0, 2, 3}}));
}

// --- no rows, where Paddle's kernels divide by zero ---

TEST(SequenceOpsTest, NoRowsGiveNoRows) {
  const Lod empty = {{0, 0, 0}};
  const Tensor x = TensorOf<float>({0, 3}, {}, empty);
  const Tensor ids = TensorOf<int64_t>({0, 1}, {}, empty);
  const std::vector<OpRun> runs = {
      {"sequence_softmax", {{"X", TensorOf<float>({0, 1}, {}, empty)}}, {"Out"}, ""},
      {"sequence_expand_as", {{"X", Random<float>({2, 3})}, {"Y", x}}, {"Out"}, ""},
      {"sequence_expand", {{"X", x}, {"Y", Random<float>({3, 1}, {{0, 2, 3}})}}, {"Out"}, ""},
      {"sequence_concat", {{"X", x}, {"X", x}}, {"Out"}, ""},
      {"sequence_reverse", {{"X", x}}, {"Y"}, ""},
      {"sequence_reshape", {{"X", x}}, {"Out"}, "new_dim=2"},
      {"sequence_enumerate", {{"X", ids}}, {"Out"}, "win_size=2"},
      {"sequence_erase", {{"X", ids}}, {"Out"}, "tokens=[1]"},
      {"sequence_unpad",
       {{"X", Random<float>({2, 4, 3})}, {"Length", TensorOf<int64_t>({2}, {0, 0})}},
       {"Out"},
       ""},
      {"row_conv", {{"X", x}, {"Filter", Random<float>({2, 3})}}, {"Out"}, ""},
      {"lod_reset", {{"X", TensorOf<float>({0, 3}, {})}}, {"Out"}, "target_lod=[0,0,0]"},
      {"hash", {{"X", ids}}, {"Out"}, ""},
      {"add_position_encoding", {{"X", TensorOf<float>({0, 4}, {}, empty)}}, {"Out"}, ""},
  };
  for (const OpRun& run : runs) {
    const Tensor out = Compute(run)[0];
    EXPECT_EQ(out.numel(), 0) << run.type;
    EXPECT_EQ(out.shape.rank() == 0 ? 1 : out.shape[0], 0) << run.type;
  }
}

TEST(SequencePadTest, EmptySequencesAreAllPadding) {
  const std::vector<Tensor> got =
      Compute({.type = "sequence_pad",
               .inputs = {{"X", TensorOf<int64_t>({0, 2}, {}, {{0, 0, 0}})},
                          {"PadValue", TensorOf<int64_t>({2}, {8, 9})}},
               .outputs = {"Out", "Length"},
               .attrs = "padded_length=1"});
  EXPECT_EQ(got[0].shape, Shape({2, 1, 2}));
  EXPECT_THAT(Values<int64_t>(got[0]), ElementsAre(8, 9, 8, 9));
  EXPECT_THAT(Values<int64_t>(got[1]), ElementsAre(0, 0));
}

TEST(RowConvTest, SkipsEmptySequences) {
  const Tensor x = TensorOf<float>({3, 1}, {1, 2, 4}, {{0, 0, 2, 2, 3, 3}});
  const Tensor out = Compute({.type = "row_conv",
                              .inputs = {{"X", x}, {"Filter", TensorOf<float>({2, 1}, {1, 10})}},
                              .outputs = {"Out"}})[0];
  EXPECT_THAT(Values<float>(out), ElementsAre(21, 2, 4));
}

TEST(SequenceMaskTest, NoLengthsGiveNoColumns) {
  const Tensor y = Compute({.type = "sequence_mask",
                            .inputs = {{"X", TensorOf<int64_t>({2}, {-3, -1})}},
                            .outputs = {"Y"}})[0];
  EXPECT_EQ(y.shape, Shape({2, 0}));
}

// What ctc_align gives for no tokens has a row that no sequence owns.
TEST(EditDistanceTest, TakesWhatCtcAlignGivesForNoTokens) {
  const std::string text =
      "block 0\n  var x int64[2,1]\n  var refs int64[3,1]\n  var hyps int64[-1,1]\n"
      "  var out float32[-1,1]\n  var count int64[1]\n"
      "  ctc_align(Input=x) -> (Output=hyps) {blank=0}\n"
      "  edit_distance(Hyps=hyps, Refs=refs) -> (Out=out, SequenceNum=count)\n";
  absl::StatusOr<Program> program = ParseProgram(text);
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"x", "refs"}, {"out"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const auto out = (*core)->Run({TensorOf<int64_t>({2, 1}, {0, 0}, {{0, 1, 2}}),
                                 TensorOf<int64_t>({3, 1}, {5, 6, 7}, {{0, 2, 3}})});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(2, 1));
}

// --- runs with other LoDs, threads ---

TEST(SequenceOpsTest, ANewLodWithTheSameRowsIsNoticed) {
  OpRun run{
      "sequence_pool", {{"X", TensorOf<float>({3, 1}, {1, 2, 4})}}, {"Out"}, "pooltype=\"SUM\""};
  absl::StatusOr<Program> program = ParseProgram(ProgramText(run));
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"in0"}, {"Out"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const auto pool = [&](const Lod& lod) {
    const auto out = (*core)->Run({TensorOf<float>({3, 1}, {1, 2, 4}, lod)});
    EXPECT_THAT(out, IsOk());
    return out.ok() ? Values<float>((*out)[0]) : std::vector<float>();
  };
  EXPECT_THAT(pool({{0, 1, 3}}), ElementsAre(1, 6));
  EXPECT_THAT(pool({{0, 2, 3}}), ElementsAre(3, 4));
  EXPECT_THAT(pool({{0, 2, 3}}), ElementsAre(3, 4));
}

// x = lod_reset(x); out = sequence_pool(x)
TEST(LodResetTest, MayWriteTheVariableItReads) {
  const std::string text =
      "block 0\n  var x float32[4,1]\n  var out float32[-1,1]\n"
      "  lod_reset(X=x) -> (Out=x) {target_lod=[0,1,4]}\n"
      "  sequence_pool(X=x) -> (Out=out) {pooltype=\"SUM\"}\n";
  absl::StatusOr<Program> program = ParseProgram(text);
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"x"}, {"out"}, nullptr);
  ASSERT_THAT(core, IsOk());
  for (int i = 0; i < 3; ++i) {
    const Tensor x = TensorOf<float>({4, 1}, {1, 2, 4, 8}, {{0, 4}});
    const auto out = (*core)->Run({x});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 14)) << "run " << i;
    EXPECT_EQ(x.lod, Lod({{0, 4}}));
  }
}

// a = op(a): XShape has the shape and LoD that `a` had, and `a` keeps its LoD with its rows.
TEST(ViewOpsTest, MayWriteTheVariableTheyRead) {
  const std::vector<std::pair<std::string, std::string>> ops = {
      {"reshape2", "shape=[3,4]"},
      {"flatten2", "axis=1"},
      {"squeeze2", "axes=[2]"},
      {"unsqueeze2", "axes=[1]"},
      {"flatten_contiguous_range", "start_axis=1, stop_axis=2"}};
  for (const auto& [type, attrs] : ops) {
    absl::StatusOr<Program> program = ParseProgram(
        absl::StrCat("block 0\n  var a float32[3,4,1]\n  var xshape float32[0,3,4,1]\n  ", type,
                     "(X=a) -> (Out=a, XShape=xshape) {", attrs, "}\n"));
    ASSERT_THAT(program, IsOk());
    auto core = InterpreterCore::Create(*std::move(program), {"a"}, {"a", "xshape"}, nullptr);
    ASSERT_THAT(core, IsOk());
    const Tensor a = TensorOf<float>({3, 4, 1}, std::vector<float>(12, 1.0f), {{0, 1, 3}});
    for (int i = 0; i < 2; ++i) {
      const auto out = (*core)->Run({a});
      ASSERT_THAT(out, IsOk());
      EXPECT_EQ((*out)[0].shape[0], 3) << type;
      EXPECT_EQ((*out)[0].lod, a.lod) << type;
      EXPECT_EQ((*out)[1].shape, Shape({0, 3, 4, 1})) << type;
      EXPECT_EQ((*out)[1].lod, a.lod) << type;
    }
  }
}

// kept = sequence_erase(ids); out = sequence_expand_as(x, kept): only a run tells the LoD of kept.
TEST(SequenceOpsTest, ALodThatAnOpFindsIsFollowed) {
  const std::string text =
      "block 0\n  var x float32[2,1]\n  var ids int64[4,1]\n  var kept int64[-1,1]\n"
      "  var out float32[-1,1]\n  sequence_erase(X=ids) -> (Out=kept) {tokens=[0]}\n"
      "  sequence_expand_as(X=x, Y=kept) -> (Out=out) {}\n";
  absl::StatusOr<Program> program = ParseProgram(text);
  ASSERT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), {"x", "ids"}, {"out"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const auto expand = [&](const std::vector<int64_t>& ids) {
    const auto out =
        (*core)->Run({TensorOf<float>({2, 1}, {5, 6}), TensorOf({4, 1}, ids, {{0, 2, 4}})});
    EXPECT_THAT(out, IsOk());
    return out.ok() ? Values<float>((*out)[0]) : std::vector<float>();
  };
  EXPECT_THAT(expand({0, 1, 1, 1}), ElementsAre(5, 6, 6));
  EXPECT_THAT(expand({1, 1, 0, 1}), ElementsAre(5, 5, 6));
  EXPECT_THAT(expand({0, 0, 0, 0}), IsEmpty());
}

// Ops of all kinds on more rows than one thread takes.
std::vector<OpRun> LargeRuns() {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 400; ++i) lengths.push_back(i * 7 % 23);
  const Lod lod = {Level(lengths)};
  const int64_t rows = lod[0].back();
  const Tensor x = Random<float>({rows, 40}, lod);
  Tensor ids = TensorOf<int64_t>({rows, 1}, std::vector<int64_t>(static_cast<size_t>(rows)), lod);
  for (int64_t i = 0; i < rows; ++i) ids.mutable_data<int64_t>()[i] = i * i % 11;
  const Tensor counts = TensorOf<int64_t>({400}, lengths);
  return {
      {"sequence_conv",
       {{"X", x}, {"Filter", Random<float>({120, 9})}},
       {"Out"},
       "contextLength=3, contextStart=-1"},
      {"sequence_pool", {{"X", x}}, {"Out", "MaxIndex"}, "pooltype=\"MAX\""},
      {"sequence_pool", {{"X", x}}, {"Out"}, "pooltype=\"SQRT\""},
      {"sequence_softmax", {{"X", Random<float>({rows, 1}, lod)}}, {"Out"}, ""},
      {"sequence_expand",
       {{"X", x}, {"Y", Random<float>({400, 1}, {Level(std::vector<int64_t>(400, 1))})}},
       {"Out"},
       ""},
      {"sequence_slice",
       {{"X", x},
        {"Offset", TensorOf<int64_t>({400}, std::vector<int64_t>(400))},
        {"Length", counts}},
       {"Out"},
       ""},
      {"sequence_pad", {{"X", x}, {"PadValue", Random<float>({1})}}, {"Out", "Length"}, ""},
      {"sequence_unpad", {{"X", Random<float>({400, 22, 3})}, {"Length", counts}}, {"Out"}, ""},
      {"sequence_mask", {{"X", counts}}, {"Y"}, ""},
      {"sequence_erase", {{"X", ids}}, {"Out"}, "tokens=[3]"},
      {"lod_reset", {{"X", x}, {"Y", ids}}, {"Out"}, ""},
      {"row_conv", {{"X", x}, {"Filter", Random<float>({3, 40})}}, {"Out"}, ""},
      {"edit_distance", {{"Hyps", ids}, {"Refs", ids}}, {"Out", "SequenceNum"}, ""},
      {"hash", {{"X", ids}}, {"Out"}, "num_hash=3"},
      {"add_position_encoding", {{"X", x}}, {"Out"}, ""},
  };
}

TEST(SequenceOpsTest, ThreadsAndDevicesGiveTheSameBits) {
  CoreOptions one_thread;
  one_thread.num_threads = 1;
  CoreOptions threads;
  threads.num_threads = 3;
  CoreOptions device;
  device.plan.place = {PlaceKind::kSim, 0};
  for (const OpRun& run : LargeRuns()) {
    const std::vector<Tensor> expected = Compute(run, one_thread);
    EXPECT_TRUE(SameBits(expected, Compute(run, threads))) << run.type << run.attrs;
    EXPECT_TRUE(SameBits(expected, Compute(run, device))) << run.type << run.attrs;
  }
}

}  // namespace
}  // namespace interp::testing
