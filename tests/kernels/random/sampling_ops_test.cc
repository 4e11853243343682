// Ops that choose rows, classes and nodes at random: with a seed of their own what Paddle 2.6.2
// draws, else by what a choice must hold. tdm_child, which goes with them.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "tests/kernels/op_runs.h"

namespace interp::testing::sampling_ops_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::UnorderedElementsAreArray;

OpRun ShuffleRun(int64_t rows, int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) values.insert(values.end(), {float(i), float(-i)});
  return {"shuffle_batch",
          {{"X", Tensor::Of<float>({rows, 2}, values)}, {"Seed", Tensor::Of<int64_t>({1}, {seed})}},
          {"Out", "ShuffleIdx", "SeedOut"},
          "startup_seed=1"};
}

TEST(ShuffleBatchTest, MovesEveryRow) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const std::vector<Tensor> out = OutputsOf(ShuffleRun(7, 5), {.random_seed = seed});
    const std::vector<int64_t> order = Values<int64_t>(out[1]);
    EXPECT_THAT(order, UnorderedElementsAreArray({0, 1, 2, 3, 4, 5, 6}));
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_NE(order[i], i);
      EXPECT_EQ(out[0].data<float>()[2 * order[i]], static_cast<float>(i));
      EXPECT_EQ(out[0].data<float>()[2 * order[i] + 1], static_cast<float>(-i));
    }
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 15);
}

TEST(ShuffleBatchTest, HandsOnASeed) {
  for (const auto& [seed, next] :
       {std::pair<int64_t, int64_t>{5, 84035}, {0, 16807}, {-7, 2147433226}}) {
    EXPECT_THAT(Values<int64_t>(OutputsOf(ShuffleRun(3, seed))[2]), ElementsAre(next));
  }
}

TEST(ShuffleBatchTest, ARowAloneStays) {
  EXPECT_THAT(Values<int64_t>(OutputsOf(ShuffleRun(1, 5))[1]), ElementsAre(0));
}

TEST(ShuffleBatchTest, TheGradientGoesBack) {
  const OpRun run = {"shuffle_batch_grad",
                     {{"Out@GRAD", Tensor::Of<int64_t>({3, 1}, {7, 8, 9})},
                      {"ShuffleIdx", Tensor::Of<int64_t>({3}, {2, 0, 1})}},
                     {"X@GRAD"}};
  EXPECT_THAT(Values<int64_t>(OutputsOf(run)[0]), ElementsAre(9, 7, 8));
  ExpectRefusals(
      {{With(run, 1, Tensor::Of<int64_t>({3}, {2, 0, 3})), "'ShuffleIdx' has the value 3"},
       {With(run, 1, Tensor::Of<int64_t>({2}, {1, 0})), "'ShuffleIdx' is int64[2]"}});
}

template <typename T = int64_t>
OpRun ClassRun(int samples, const std::string& attrs) {
  return {"class_center_sample",
          {{"Label", Tensor::Of<T>({10}, {11, 5, 1, 3, 12, 2, 15, 19, 18, 19})}},
          {"RemappedLabel", "SampledLocalClassCenter"},
          absl::StrCat("num_classes=20, num_samples=", samples, ", ", attrs)};
}

const std::vector<int64_t> kPlaces = {4, 3, 0, 2, 5, 1, 6, 8, 7, 8};

TEST(ClassCenterSampleTest, DrawsWhatPaddleDrawsWithASeed) {
  const std::vector<Tensor> one = OutputsOf(ClassRun(12, "fix_seed=true, seed=1"));
  EXPECT_EQ(Values<int64_t>(one[0]), kPlaces);
  EXPECT_THAT(Values<int64_t>(one[1]), ElementsAre(1, 2, 3, 5, 11, 12, 15, 18, 19, 9, 0, 7));
  const std::vector<Tensor> two = OutputsOf(ClassRun<int32_t>(12, "fix_seed=true, seed=2"));
  EXPECT_THAT(Values<int32_t>(two[0]), ElementsAreArray(kPlaces));
  EXPECT_THAT(Values<int32_t>(two[1]), ElementsAre(1, 2, 3, 5, 11, 12, 15, 18, 19, 17, 4, 0));
}

TEST(ClassCenterSampleTest, AllClassesOfLabelsAreKept) {
  const std::vector<Tensor> out = OutputsOf(ClassRun(6, "fix_seed=true, seed=1"));
  EXPECT_EQ(Values<int64_t>(out[0]), kPlaces);
  EXPECT_THAT(Values<int64_t>(out[1]), ElementsAre(1, 2, 3, 5, 11, 12, 15, 18, 19));
}

TEST(ClassCenterSampleTest, DrawsOtherClassesFromTheStream) {
  std::set<std::vector<int64_t>> seen;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const std::vector<Tensor> out = OutputsOf(ClassRun(12, "seed=1"), {.random_seed = seed});
    const std::vector<int64_t> classes = Values<int64_t>(out[1]);
    ASSERT_EQ(classes.size(), 12);
    EXPECT_EQ(std::set<int64_t>(classes.begin(), classes.end()).size(), 12);
    EXPECT_GE(*std::min_element(classes.begin(), classes.end()), 0);
    EXPECT_LT(*std::max_element(classes.begin(), classes.end()), 20);
    seen.insert(classes);
  }
  EXPECT_GT(seen.size(), 10);
}

TEST(ClassCenterSampleTest, RefusesClassesThatThereAreNoneOf) {
  ExpectRefusals({{With(ClassRun(12, "seed=1"), 0, Tensor::Of<int64_t>({1}, {20})),
                   "'Label' has the value 20"},
                  {ClassRun(21, "seed=1"), "'num_samples' is 21"},
                  {ClassRun(12, "nranks=2"), "'nranks' is 2"}});
}

// Node 0 is none; 1 and 2 have the leaves 3, 4 and 5, 6.
template <typename T>
Tensor Tree() {
  return Tensor::Of<T>({7, 5}, {0, 0, 0, 1, 2, 0, 1, 0, 3, 4, 0, 1, 0, 5, 6, 1, 2, 1,
                                0, 0, 2, 2, 1, 0, 0, 3, 2, 2, 0, 0, 4, 2, 2, 0, 0});
}

template <typename T>
OpRun ChildRun(const Shape& shape, const std::vector<T>& nodes, const std::string& attrs) {
  return {"tdm_child",
          {{"X", Tensor::Of<T>(shape, nodes)}, {"TreeInfo", Tree<T>()}},
          {"Child", "LeafMask"},
          attrs};
}

TEST(TdmChildTest, ListsChildrenAndMarksItems) {
  // In Paddle's numbering of dtypes 3 is int64, 2 int32.
  const std::vector<Tensor> wide =
      OutputsOf(ChildRun<int64_t>({4, 1}, {1, 2, 3, 0}, "child_nums=2, dtype=3"));
  EXPECT_EQ(wide[0].shape, (Shape{4, 1, 2}));
  EXPECT_THAT(Values<int64_t>(wide[0]), ElementsAre(3, 4, 5, 6, 0, 0, 0, 0));
  EXPECT_THAT(Values<int64_t>(wide[1]), ElementsAre(1, 1, 1, 1, 0, 0, 0, 0));
  const std::vector<Tensor> narrow =
      OutputsOf(ChildRun<int32_t>({2, 2}, {1, 2, 3, 0}, "child_nums=2, dtype=2"));
  EXPECT_EQ(narrow[1].shape, (Shape{2, 2, 2}));
  EXPECT_THAT(Values<int32_t>(narrow[0]), ElementsAre(3, 4, 5, 6, 0, 0, 0, 0));
}

TEST(TdmChildTest, InnerNodesAreNoItems) {
  Tensor tree = Tree<int64_t>();
  tree.mutable_data<int64_t>()[1 * 5 + 3] = 2;  // the first child of node 1
  const std::vector<Tensor> out =
      OutputsOf(With(ChildRun<int64_t>({1}, {1}, "child_nums=2, dtype=3"), 1, tree));
  EXPECT_THAT(Values<int64_t>(out[1]), ElementsAre(0, 1));
}

TEST(TdmChildTest, RefusesNodesOutsideOfTheTree) {
  Tensor tree = Tree<int64_t>();
  tree.mutable_data<int64_t>()[1 * 5 + 4] = 7;
  const OpRun run = ChildRun<int64_t>({1}, {1}, "child_nums=2, dtype=3");
  ExpectRefusals({{ChildRun<int64_t>({1}, {7}, "child_nums=2"), "'X' has the value 7"},
                  {With(run, 1, tree), "'TreeInfo' has the value 7"},
                  {ChildRun<int64_t>({1}, {1}, "child_nums=3"), "expected [nodes,6]"},
                  {ChildRun<int64_t>({1}, {1}, "child_nums=2, dtype=5"), "'dtype' is float32"}});
}

// Layers {1, 2} and {3, 4, 5, 6}; item 1 has no node in the second one.
OpRun SamplerRun(const std::vector<int64_t>& items, const std::string& attrs) {
  return {"tdm_sampler",
          {{"X", Tensor::Of<int64_t>({std::ssize(items), 1}, items)},
           {"Travel", Tensor::Of<int64_t>({4, 2}, {1, 3, 1, 0, 2, 5, 2, 6})},
           {"Layer", Tensor::Of<int64_t>({6, 1}, {1, 2, 3, 4, 5, 6})}},
          {"Out", "Labels", "Mask"},
          absl::StrCat("neg_samples_num_list=[1,2], layer_offset_lod=[0,2,6], dtype=3, ", attrs)};
}

TEST(TdmSamplerTest, DrawsWhatPaddleDrawsWithASeed) {
  const std::vector<Tensor> out = OutputsOf(SamplerRun({0, 2, 3}, "seed=3"));
  EXPECT_EQ(out[0].shape, (Shape{3, 5}));
  EXPECT_THAT(Values<int64_t>(out[0]), ElementsAre(1, 2, 3, 5, 4, 2, 1, 5, 4, 3, 2, 1, 6, 3, 5));
  EXPECT_THAT(Values<int64_t>(out[1]), ElementsAre(1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(Values<int64_t>(out[2]), ElementsAreArray(std::vector<int64_t>(15, 1)));
  const std::vector<Tensor> others =
      OutputsOf(SamplerRun({0, 2, 3}, "seed=3, output_positive=false"));
  EXPECT_THAT(Values<int64_t>(others[0]), ElementsAre(2, 5, 4, 1, 4, 3, 1, 3, 5));
}

TEST(TdmSamplerTest, LayersWithoutANodeAreMasked) {
  const std::vector<Tensor> out = OutputsOf(SamplerRun({1}, "seed=0"));
  EXPECT_THAT(Values<int64_t>(out[0]), ElementsAre(1, 2, 0, 0, 0));
  EXPECT_THAT(Values<int64_t>(out[1]), ElementsAre(1, 0, 0, 0, 0));
  EXPECT_THAT(Values<int64_t>(out[2]), ElementsAre(1, 1, 0, 0, 0));
}

TEST(TdmSamplerTest, DrawsOtherNodesFromTheStream) {
  std::set<std::set<int64_t>> seen;
  for (uint64_t seed = 1; seed < 30; ++seed) {
    const std::vector<int64_t> nodes =
        Values<int64_t>(OutputsOf(SamplerRun({2}, "seed=0"), {.random_seed = seed})[0]);
    EXPECT_EQ(nodes[0], 2);
    EXPECT_EQ(nodes[1], 1);
    EXPECT_EQ(nodes[2], 5);
    const std::set<int64_t> others = {nodes[3], nodes[4]};
    EXPECT_EQ(others.size(), 2);
    for (const int64_t node : others) EXPECT_THAT(node, ::testing::AnyOf(3, 4, 6));
    seen.insert(others);
  }
  EXPECT_EQ(seen.size(), 3);
}

TEST(TdmSamplerTest, RefusesWhatDoesNotFit) {
  OpRun many = SamplerRun({0}, "seed=0");
  many.attrs = "neg_samples_num_list=[1,4], layer_offset_lod=[0,2,6]";
  ExpectRefusals(
      {{SamplerRun({4}, "seed=0"), "'X' has the value 4"},
       {many, "asks for 4 nodes of layer 1, which has 4"},
       {With(SamplerRun({0}, "seed=0"), 2, Tensor::Of<int64_t>({6, 1}, {1, 2, 3, 3, 5, 6})),
        "'Layer' has node 3 twice in layer 1"},
       {With(SamplerRun({0}, "seed=0"), 1, Numbers({4, 3}, 1)), "'Travel' has shape [4,3]"}});
}

// The attribute is there for tests: nothing is drawn then.
TEST(NceTest, TakesTheClassesThatItIsGiven) {
  const OpRun run = {"nce",
                     {{"Input", Numbers({2, 3}, 1)},
                      {"Label", Tensor::Of<int64_t>({2, 1}, {4, 0})},
                      {"Weight", Numbers({6, 3}, 2)}},
                     {"Cost", "SampleLogits", "SampleLabels"},
                     "num_total_classes=6, num_neg_samples=3, custom_neg_classes=[1, 2, 3]"};
  EXPECT_THAT(Values<int64_t>(OutputsOf(run)[2]), ElementsAre(4, 1, 2, 3, 0, 1, 2, 3));
  OpRun wrong = run;
  wrong.attrs = "num_total_classes=6, num_neg_samples=2, custom_neg_classes=[1, 2, 3]";
  ExpectRefusals({{wrong, "'custom_neg_classes' has 3 numbers, expected 2"}});
}

// Node 0 has the neighbors 1 to 6, node 1 has 7 alone.
OpRun SampleNeighbors(int64_t size, const std::vector<float>& weights = {}) {
  const bool weighted = !weights.empty();
  OpRun run = {
      .type = weighted ? "weighted_sample_neighbors" : "graph_sample_neighbors",
      .inputs = {{weighted ? "row" : "Row", Tensor::Of<int64_t>({7}, {1, 2, 3, 4, 5, 6, 7})},
                 {weighted ? "colptr" : "Col_Ptr", Tensor::Of<int64_t>({3}, {0, 6, 7})},
                 {weighted ? "input_nodes" : "X", Tensor::Of<int64_t>({2}, {0, 1})},
                 {weighted ? "eids" : "Eids",
                  Tensor::Of<int64_t>({7}, {10, 20, 30, 40, 50, 60, 70})}},
      .outputs = {"Out", "Out_Count", "Out_Eids"},
      .attrs = absl::StrCat("return_eids=true, sample_size=", size)};
  if (!weighted) return run;
  run.inputs.emplace_back("edge_weight", Tensor::Of<float>({7}, weights));
  run.outputs = {"out_neighbors", "out_count", "out_eids"};
  return run;
}

TEST(SampleNeighborsTest, AnInfiniteWeightComesFirst) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Tensor> out =
        OutputsOf(SampleNeighbors(1, {1, 1, 1, kInfinity, 1, 0, 1}), {.random_seed = seed});
    EXPECT_EQ(Values<int64_t>(out[0])[0], 4) << seed;
  }
}

TEST(SampleNeighborsTest, GivesEachNeighborOnceAndAllEquallyOften) {
  std::map<int64_t, int> times;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const std::vector<Tensor> out = OutputsOf(SampleNeighbors(2), {.random_seed = seed});
    EXPECT_THAT(Values<int32_t>(out[1]), ElementsAre(2, 1));
    const std::vector<int64_t> nodes = Values<int64_t>(out[0]);
    ASSERT_EQ(nodes.size(), 3);
    EXPECT_NE(nodes[0], nodes[1]);
    EXPECT_EQ(nodes[2], 7);
    EXPECT_THAT(Values<int64_t>(out[2]), ElementsAre(10 * nodes[0], 10 * nodes[1], 70));
    for (const int64_t node : {nodes[0], nodes[1]}) ++times[node];
  }
  ASSERT_EQ(times.size(), 6);
  for (const auto& [node, count] : times) EXPECT_NEAR(count, 100, 40) << node;
}

TEST(SampleNeighborsTest, BelowZeroAsksForAll) {
  EXPECT_THAT(Values<int64_t>(OutputsOf(SampleNeighbors(-1))[0]), ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST(SampleNeighborsTest, TakesWhatWeighsMoreMoreOften) {
  std::map<int64_t, int> times;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const OpRun run = SampleNeighbors(1, {1, 0, 1, 0, 4, 0, 0});
    ++times[Values<int64_t>(OutputsOf(run, {.random_seed = seed})[0])[0]];
  }
  EXPECT_NEAR(times[5], 200, 40);
  EXPECT_NEAR(times[1], 50, 30);
  EXPECT_EQ(times[1] + times[3] + times[5], 300);
}

TEST(SampleNeighborsTest, WhatIsNoGraphIsRefused) {
  const OpRun run = SampleNeighbors(1);
  ExpectRefusals({
      {With(run, 2, Tensor::Of<int64_t>({1}, {2})), "there is no node 2: the graph has 2"},
      {With(run, 2, Tensor::Of<int64_t>({1}, {-1})), "there is no node -1"},
      {With(run, 1, Tensor::Of<int64_t>({3}, {0, 8, 7})), "node 0 has the edges 0 to 8 of 7"},
      {With(run, 1, Tensor::Of<int64_t>({3}, {0, 6, 5})), "node 1 has the edges 6 to 5 of 7"},
      {With(run, 3, Tensor::Of<int64_t>({2}, {1, 2})), "expected int64 for each of the 7 edges"},
  });
}

}  // namespace
}  // namespace interp::testing::sampling_ops_test
