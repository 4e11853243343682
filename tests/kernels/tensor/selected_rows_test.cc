// Selected rows where Paddle 2.6.2 has no case to offer: ops that it lacks or crashes in, no rows
// at all, and refusals. A gradient of an embedding makes them.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kHeight = 5;

struct Rows {
  std::vector<int64_t> ids;
  std::vector<float> values;  // two for each
};

// `ops` on selected rows `rows` of a table of 5 x 2, on feed `x` and to variables of the op's
// choice.
absl::StatusOr<std::vector<Tensor>> RunRows(const Rows& rows, const Tensor& x,
                                            const std::string& vars, const std::string& ops,
                                            const std::vector<std::string>& fetches,
                                            const CoreOptions& options = {}) {
  const int64_t count = static_cast<int64_t>(rows.ids.size());
  const std::string text =
      absl::StrCat(R"(block 0
  var table float32[5,2]
  var ids int64[-1]
  var values float32[-1,2]
  var x float32)",
                   ToString(x.shape), "\n  var rows selected_rows float32[5,2]\n", vars,
                   "  lookup_table_v2_grad(W=table, Ids=ids, Out@GRAD=values) "
                   "-> (W@GRAD=rows) {is_sparse=true}\n",
                   ops);
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  INTERP_ASSIGN_OR_RETURN(
      auto core, InterpreterCore::Create(std::move(program), {"table", "ids", "values", "x"},
                                         fetches, nullptr, options));
  std::vector<Tensor> outputs;
  for (int run = 0; run < 2; ++run) {  // once more: with memory of the first run
    INTERP_ASSIGN_OR_RETURN(outputs,
                            core->Run({Numbers({kHeight, 2}, 1), VectorOf<int64_t>(rows.ids),
                                       Tensor::Of<float>({count, 2}, rows.values), x}));
  }
  return outputs;
}

// `op`, which gives selected rows, and then their tensor and rows.
std::vector<Tensor> Shown(const Rows& rows, const std::string& op) {
  const auto outputs =
      RunRows(rows, VectorOf<float>({2}),
              "  var out selected_rows float32[5,2]\n  var shown float32[-1,2]\n"
              "  var listed int64[-1,1]\n",
              absl::StrCat("  ", op,
                           "\n  get_tensor_from_selected_rows(X=out) -> (Out=shown)\n"
                           "  extract_rows(X=out) -> (Out=listed)\n"),
              {"shown", "listed"});
  EXPECT_THAT(outputs, IsOk());
  return outputs.ok() ? *outputs : std::vector<Tensor>(2);
}

const Rows& Repeating() {
  static const Rows* rows = new Rows{{3, 1, 3}, {1, -2, 3, 4, 5, 6}};
  return *rows;
}

TEST(SelectedRowsTest, ExtractRowsGivesThemAsTheyAre) {
  const auto outputs = Shown(Repeating(), "assign(X=rows) -> (Out=out)");
  EXPECT_THAT(Values<float>(outputs[0]), ElementsAre(1, -2, 3, 4, 5, 6));
  EXPECT_THAT(Values<int64_t>(outputs[1]), ElementsAre(3, 1, 3));
  EXPECT_EQ(outputs[1].shape, Shape({3, 1}));
}

TEST(SelectedRowsTest, ValuesAndRowsMakeThemAgain) {
  const auto outputs =
      Shown(Repeating(),
            "selected_rows_from_tensor(X=values, Rows=ids) -> (Out=out) {shape=longs:[5,2]}");
  EXPECT_THAT(Values<float>(outputs[0]), ElementsAre(1, -2, 3, 4, 5, 6));
  EXPECT_THAT(Values<int64_t>(outputs[1]), ElementsAre(3, 1, 3));
}

TEST(SelectedRowsTest, RowsThatTheTensorLacksAreRefused) {
  EXPECT_THAT(RunRows(Repeating(), VectorOf<float>({2}),
                      "  var out selected_rows float32[3,2]\n  var shown float32[-1,2]\n",
                      "  selected_rows_from_tensor(X=values, Rows=ids) -> (Out=out) "
                      "{shape=longs:[3,2]}\n"
                      "  get_tensor_from_selected_rows(X=out) -> (Out=shown)\n",
                      {"shown"}),
              FailsWith(absl::StatusCode::kInvalidArgument, "has row 3, expected 0 to 2"));
}

TEST(SelectedRowsTest, ClipAddsRepeatedRowsUpFirst) {
  const auto outputs = Shown(Repeating(), "clip(X=rows) -> (Out=out) {min=-1.0, max=5.0}");
  EXPECT_THAT(Values<float>(outputs[0]), ElementsAre(3, 4, 5, 4));
  EXPECT_THAT(Values<int64_t>(outputs[1]), ElementsAre(1, 3));
}

TEST(SelectedRowsTest, SignIsTakenOfTheValues) {
  const auto outputs = Shown(Repeating(), "sign(X=rows) -> (Out=out)");
  EXPECT_THAT(Values<float>(outputs[0]), ElementsAre(1, -1, 1, 1, 1, 1));
}

TEST(SelectedRowsTest, NoRowsAtAllAreAllowed) {
  const Rows none;
  for (const char* op :
       {"assign(X=rows) -> (Out=out)", "merge_selected_rows(X=rows) -> (Out=out)",
        "scale(X=rows) -> (Out=out) {scale=2.0}",
        "clip_by_norm(X=rows) -> (Out=out) {max_norm=1.0}", "sum(X=[rows, rows]) -> (Out=out)",
        "elementwise_mul(X=rows, Y=x) -> (Out=out)"}) {
    EXPECT_EQ(Shown(none, op)[0].shape, Shape({0, 2})) << op;
  }
}

TEST(SelectedRowsTest, UpdatesWithoutRowsKeepTheParameter) {
  const Tensor param = Numbers({kHeight, 2}, 7);
  const auto outputs =
      RunRows({}, param, "  var rate float32[1]\n",
              "  fill_constant() -> (Out=rate) {shape=longs:[1], value=0.5, dtype=5}\n"
              "  sgd(Param=x, Grad=rows, LearningRate=rate) -> (ParamOut=x)\n",
              {"x"});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_TRUE(SameBits((*outputs)[0], param));
}

TEST(SelectedRowsTest, UpdatesUnderAnotherNameKeepTheOtherRows) {
  const Tensor param = Numbers({kHeight, 2}, 7);
  const auto outputs =
      RunRows(Repeating(), param, "  var rate float32[1]\n  var y float32[5,2]\n",
              "  fill_constant() -> (Out=rate) {shape=longs:[1], value=0.5, dtype=5}\n"
              "  sgd(Param=x, Grad=rows, LearningRate=rate) -> (ParamOut=y)\n",
              {"y"});
  ASSERT_THAT(outputs, IsOk());
  std::vector<float> want = Values<float>(param);
  want[2] -= 0.5f * 3;
  want[3] -= 0.5f * 4;
  want[6] -= 0.5f * 6;
  want[7] -= 0.5f * 4;
  EXPECT_EQ(Values<float>((*outputs)[0]), want);
}

// Decay is of all rows; the moments and the step of adam are of listed rows alone.
TEST(SelectedRowsTest, LazyAdamwDecaysAllRows) {
  const Tensor param = Numbers({kHeight, 2}, 7);
  const auto outputs = RunRows(
      Repeating(), param, "  var rate float32[1]\n  var pow float32[1]\n  var m float32[5,2]\n",
      "  fill_constant() -> (Out=rate) {shape=longs:[1], value=0.5, dtype=5}\n"
      "  fill_constant() -> (Out=pow) {shape=longs:[1], value=0.25, dtype=5}\n"
      "  fill_constant() -> (Out=m) {shape=longs:[5,2], value=0.0, dtype=5}\n"
      "  adamw(Param=x, Grad=rows, LearningRate=rate, Moment1=m, Moment2=m, Beta1Pow=pow, "
      "Beta2Pow=pow) -> (ParamOut=x, Moment1Out=m1, Moment2Out=m2) {lazy_mode=true, "
      "coeff=0.5, with_decay=true}\n",
      {"x", "m1"});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_FLOAT_EQ(Values<float>((*outputs)[0])[0], Values<float>(param)[0] * 0.75f);
  EXPECT_NE(Values<float>((*outputs)[0])[2], Values<float>(param)[2] * 0.75f);
  EXPECT_EQ(Values<float>((*outputs)[1])[0], 0);
  EXPECT_NE(Values<float>((*outputs)[1])[2], 0);
}

TEST(SelectedRowsTest, ThreadsGiveTheSameBits) {
  Rows rows;
  for (int64_t i = 0; i < 60000; ++i) {
    rows.ids.push_back(i * i % kHeight);
    rows.values.insert(rows.values.end(), {1.0f / static_cast<float>(i + 1), 0.1f});
  }
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {1, 2, 3}) {
    CoreOptions options;
    options.num_threads = threads;
    const auto outputs = RunRows(rows, Numbers({kHeight, 2}, 3), "  var out float32[5,2]\n",
                                 "  sum(X=[x, rows]) -> (Out=out)\n", {"out"}, options);
    ASSERT_THAT(outputs, IsOk());
    results.push_back(*outputs);
  }
  EXPECT_TRUE(SameBits(results[0], results[1]));
  EXPECT_TRUE(SameBits(results[0], results[2]));
}

void ExpectRefused(const std::string& vars, const std::string& ops, const std::string& message) {
  EXPECT_THAT(RunRows(Repeating(), Numbers({kHeight, 3}, 1), vars, ops, {"out"}),
              FailsWith(absl::StatusCode::kInvalidArgument, message))
      << ops;
}

TEST(SelectedRowsTest, BadUsesAreRefused) {
  const std::string tensor = "  var out float32[5,2]\n";
  const std::string shown = "  var o selected_rows float32[5,2]\n  var out float32[-1,2]\n";
  const std::string show = "  get_tensor_from_selected_rows(X=o) -> (Out=out)\n";
  ExpectRefused(tensor, "  scale(X=rows) -> (Out=out) {scale=2.0}\n", "declared as something else");
  ExpectRefused(tensor, "  merge_selected_rows(X=rows) -> (Out=out)\n", "declared as a tensor");
  ExpectRefused(tensor, "  sum(X=[x, rows]) -> (Out=out)\n", "a tensor of [5,3] and rows of [5,2]");
  ExpectRefused(tensor, "  sum(X=[rows, rows]) -> (Out=out)\n", "no argument that is a tensor");
  ExpectRefused(shown, "  sum(X=[x, rows]) -> (Out=o)\n" + show, "an argument of 'X' is a tensor");
  ExpectRefused(shown, "  elementwise_mul(X=rows, Y=x) -> (Out=o)\n" + show, "do not broadcast");
  ExpectRefused(tensor, "  get_tensor_from_selected_rows(X=x) -> (Out=out)\n",
                "'X' is a tensor, expected selected rows");
  ExpectRefused("  var rate float32[1]\n  var out float32[5,3]\n",
                "  fill_constant() -> (Out=rate) {shape=longs:[1], value=0.5, dtype=5}\n"
                "  sgd(Param=x, Grad=rows, LearningRate=rate) -> (ParamOut=out)\n",
                "'Grad' holds rows of [5,2], expected the shape of 'Param', [5,3]");
  ExpectRefused(tensor, "  relu(X=rows) -> (Out=out)\n",
                "is selected rows, but 'X' takes a tensor");
}

// Whoever wants to see them fetches what get_tensor_from_selected_rows gives.
TEST(SelectedRowsTest, TheyAreNotFetched) {
  EXPECT_THAT(RunRows(Repeating(), VectorOf<float>({1}), "", "", {"rows"}),
              FailsWith(absl::StatusCode::kInvalidArgument, "'rows' is selected rows"));
}

}  // namespace
}  // namespace interp::testing
