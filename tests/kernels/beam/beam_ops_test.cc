// beam_search on inputs that are refused; beam_search_decode and tensor_array_to_tensor on arrays
// that are made here, good ones and bad ones.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

using Array = std::vector<Tensor>;

// The outputs of an op whose inputs are arrays, its kernel called by hand. `dtypes`: of the
// outputs.
absl::StatusOr<Array> RunOnArrays(absl::string_view type, const std::vector<Attr>& attrs,
                                  const std::vector<Array>& arrays,
                                  const std::vector<DType>& dtypes) {
  const OpDef& def = *OpRegistry::Global().Find(type);
  Op op;
  op.attrs = attrs;
  AttrReader reader(op);
  INTERP_ASSIGN_OR_RETURN(const ParsedAttrs parsed, def.parse(reader));
  std::vector<Variable> variables(arrays.size() + dtypes.size());
  BoundArgs args;
  for (size_t i = 0; i < variables.size(); ++i) {
    const bool input = i < arrays.size();
    if (input) variables[i].array = arrays[i];
    if (!input) variables[i].tensor.dtype = dtypes[i - arrays.size()];
    (input ? args.input_slots : args.output_slots).push_back({static_cast<int32_t>(i), 1});
    args.variables.push_back(&variables[i]);
    args.tensors.push_back(&variables[i].tensor);
  }
  KernelContext ctx(args, parsed.get(), {.allocator = &SystemAllocator()});
  INTERP_RETURN_IF_ERROR(def.kernels[0].run(ctx));
  Array outputs;
  for (size_t i = arrays.size(); i < variables.size(); ++i) outputs.push_back(variables[i].tensor);
  return outputs;
}

// ---- beam_search ----

const Lod kTwoSources = {{0, 1, 2}, {0, 1, 2}};

OpRun Search() {
  return {"beam_search",
          {{"pre_ids", TensorOf<int64_t>({2, 1}, {5, 6})},
           {"pre_scores", TensorOf<float>({2, 1}, {0.5f, 0.25f})},
           {"ids", TensorOf<int64_t>({2, 2}, {1, 2, 3, 4})},
           {"scores", TensorOf<float>({2, 2}, {1, 2, 4, 3}, kTwoSources)}},
          {"selected_ids", "selected_scores", "parent_idx"},
          "beam_size=1, end_id=0, level=0"};
}

TEST(BeamSearchTest, KeepsTheBestOfEachSource) {
  const std::vector<Tensor> out = OutputsOf(Search());
  EXPECT_THAT(Values<int64_t>(out[0]), ElementsAre(2, 3));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(2, 4));
  EXPECT_THAT(Values<int32_t>(out[2]), ElementsAre(0, 1));
  EXPECT_EQ(out[0].lod, kTwoSources);
}

TEST(BeamSearchTest, RefusesInputsThatDoNotFit) {
  const Tensor one = TensorOf<int64_t>({1, 1}, {5});
  OpRun level = Search();
  level.attrs = "beam_size=1, level=2";
  OpRun below = Search();
  below.attrs = "beam_size=1, level=-1";
  OpRun none = Search();
  none.attrs = "beam_size=0";
  ExpectRefusals({
      {With(Search(), 0, one), "'pre_ids' is int64[1,1], expected 2 elements"},
      {With(Search(), 1, TensorOf<float>({1, 1}, {5})), "'pre_scores' is float32[1,1]"},
      {With(Search(), 2, one), "'ids' is int64[1,1], expected 4 elements"},
      {With(Search(), 3, TensorOf<float>({2, 2}, {1, 2, 4, 3})), "without LoD"},
      {With(Search(), 3, TensorOf<float>({}, {1})), "without LoD"},
      {level, "expected a level 2"},
      {below, "expected a level -1"},
      {none, "'beam_size' is 0"},
  });
}

// ---- beam_search_decode ----

const std::vector<Attr> kBeamOfTwo = {{"beam_size", 2}, {"end_id", 0}};
const Lod kStart = {{0, 1}, {0, 2}};       // one prefix with two elements
const Lod kCrossed = {{0, 2}, {0, 0, 2}};  // both continue the second
const std::vector<DType> kSentences = {DType::kInt64, DType::kFloat32};

Array Ids(const Lod& second = kCrossed) {
  return {TensorOf<int64_t>({2, 1}, {7, 8}, kStart), TensorOf<int64_t>({2, 1}, {9, 0}, second)};
}
Array Scores() { return {TensorOf<float>({2, 1}, {1, 2}), TensorOf<float>({2, 1}, {3, 4})}; }

TEST(BeamSearchDecodeTest, FollowsTheWayBackAndSortsByScore) {
  const auto out = RunOnArrays("beam_search_decode", kBeamOfTwo, {Ids(), Scores()}, kSentences);
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<int64_t>((*out)[0]), ElementsAre(8, 0, 8, 9));
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(2, 4, 2, 3));
  EXPECT_EQ((*out)[0].lod, (Lod{{0, 2}, {0, 2, 4}}));
}

TEST(BeamSearchDecodeTest, BeamsThatWereNotUsedAreEmptySentences) {
  const std::vector<Attr> three = {{"beam_size", 3}, {"end_id", 0}};
  const auto out = RunOnArrays("beam_search_decode", three, {Ids(), Scores()}, kSentences);
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ((*out)[0].lod, (Lod{{0, 3}, {0, 2, 4, 4}}));
}

struct BadArrays {
  Array ids;
  Array scores;
  std::string message;
};

TEST(BeamSearchDecodeTest, RefusesArraysThatAreNoSearch) {
  const Tensor number = TensorOf<int64_t>({}, {1});
  const std::vector<BadArrays> all = {
      {{}, {}, "0 and 0 elements"},
      {Ids(), {Scores()[0]}, "2 and 1 elements"},
      {{number}, {Scores()[0]}, "a step has ids int64[]"},
      {{Tensor()}, {Tensor()}, "expected as many of int64 and float32"},
      {{Ids()[0]}, {TensorOf<double>({2, 1}, {1, 2})}, "scores float64[2,1]"},
      {{TensorOf<int64_t>({2, 1}, {7, 8}, {{0, 2}})}, {Scores()[0]}, "LoD of 1 levels"},
      {Ids({{0, 2}, {0, 0, 3}}), Scores(), "does not fit its 2 rows"},
      {Ids({{0, 3}, {0, 0, 2}}), Scores(), "does not fit its 2 rows"},
      {Ids({{0, 1, 2}, {0, 0, 2}}), Scores(), "of 1 and 2 sources"},
      {Ids({{0, 3}, {0, 0, 0, 2}}), Scores(), "continues element 2"},
  };
  for (const BadArrays& bad : all) {
    EXPECT_THAT(RunOnArrays("beam_search_decode", kBeamOfTwo, {bad.ids, bad.scores}, kSentences),
                FailsWith(absl::StatusCode::kInvalidArgument, bad.message));
  }
}

TEST(BeamSearchDecodeTest, RefusesMoreSentencesThanBeams) {
  EXPECT_THAT(RunOnArrays("beam_search_decode", {{"beam_size", 1}, {"end_id", 0}},
                          {Ids(), Scores()}, kSentences),
              FailsWith(absl::StatusCode::kInvalidArgument, "more than 'beam_size' 1"));
  for (const int32_t size : {0, -1, 2147483647}) {
    EXPECT_THAT(
        RunOnArrays("beam_search_decode", {{"beam_size", size}}, {Ids(), Scores()}, kSentences),
        FailsWith(absl::StatusCode::kInvalidArgument, "attribute 'beam_size'"));
  }
}

// ---- tensor_array_to_tensor ----

const std::vector<DType> kOutAndIndex = {DType::kFloat32, DType::kInt32};
const Array kTwo = {TensorOf<float>({1, 2}, {1, 2}), TensorOf<float>({1, 2}, {3, 4})};

TEST(TensorArrayToTensorTest, IndexHasTheLengthsAlongTheAxis) {
  const Array array = {TensorOf<float>({2}, {1, 2}), TensorOf<float>({0}, {}),
                       TensorOf<float>({1}, {3})};
  const auto out = RunOnArrays("tensor_array_to_tensor", {}, {array}, kOutAndIndex);
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(Values<int32_t>((*out)[1]), ElementsAre(2, 0, 1));
}

TEST(TensorArrayToTensorTest, StacksAlongANewDimension) {
  const auto out = RunOnArrays("tensor_array_to_tensor", {{"axis", 1}, {"use_stack", true}}, {kTwo},
                               kOutAndIndex);
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ((*out)[0].shape, (Shape{1, 2, 2}));
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(1, 2, 3, 4));
}

TEST(TensorArrayToTensorTest, RefusesElementsThatDoNotFit) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const auto run = [](const Array& array, int32_t axis, bool stack) {
    return RunOnArrays("tensor_array_to_tensor", {{"axis", axis}, {"use_stack", stack}}, {array},
                       kOutAndIndex);
  };
  const Array ragged = {TensorOf<float>({1, 2}, {1, 2}), TensorOf<float>({2, 2}, {3, 4, 5, 6})};
  EXPECT_THAT(run({}, 0, false), FailsWith(kInvalid, "empty"));
  EXPECT_THAT(run(kTwo, 2, false), FailsWith(kInvalid, "'axis' is 2"));
  EXPECT_THAT(run(ragged, 1, false), FailsWith(kInvalid, "element 1 of array 'X' is float32[2,2]"));
  EXPECT_THAT(run(ragged, 0, true), FailsWith(kInvalid, "does not fit element 0"));
  EXPECT_THAT(run({kTwo[0], TensorOf<int64_t>({1, 2}, {3, 4})}, 0, false),
              FailsWith(kInvalid, "int64"));
  EXPECT_THAT(run({kTwo[0], Tensor()}, 0, false),
              FailsWith(absl::StatusCode::kNotFound, "element 1 of array 'X' has no value"));
}

}  // namespace
}  // namespace interp::testing
