// Steps of programs that are written by hand: whatever computes them, the numbers are those of the
// whole batch, or there is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "core/program_parse.h"
#include "interpreter/train/sequence_rows.h"
#include "interpreter/train/trainer.h"
#include "tests/testing/matchers.h"
#include "tests/testing/rank_team.h"

namespace interp::testing {
namespace {

using absl::StatusCode;
using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr char kStep[] = R"(block 0
  var x float32[-1,3] check_feed
  var w float32[3,2] param
  var h float32[-1,2]
  var s float32[-1,2]
  var loss float32[1]
  var loss@GRAD float32[1]
  var s@GRAD float32[-1,2]
  var h@GRAD float32[-1,2]
  var w@GRAD float32[3,2]
  var lr float32[1] persistable
  mul(X=x, Y=w) -> (Out=h)
  square(X=h) -> (Out=s)
  mean(X=s) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {shape=longs:[1], value=1.0, dtype=5, op_role=257}
  mean_grad(X=s, Out@GRAD=loss@GRAD) -> (X@GRAD=s@GRAD) {op_role=1}
  square_grad(X=h, Out@GRAD=s@GRAD) -> (X@GRAD=h@GRAD) {op_role=1}
  mul_grad(X=x, Y=w, Out@GRAD=h@GRAD) -> (Y@GRAD=w@GRAD) {op_role=1}
  sgd(Param=w, Grad=w@GRAD, LearningRate=lr) -> (ParamOut=w) {op_role=2}
)";

using Changes = std::vector<std::pair<std::string, std::string>>;

// `more`: ops before the update.
std::string Step(const Changes& changes, const std::string& more = "") {
  return absl::StrReplaceAll(absl::StrReplaceAll(kStep, changes),
                             {{"  sgd(", absl::StrCat(more, "  sgd(")}});
}

template <typename T>
Tensor Numbers(Shape shape) {
  std::vector<T> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(static_cast<int>(i * 7 % 11) - 4) / static_cast<T>(8);
  }
  return Tensor::Of<T>(shape, values);
}

// The parameter after two steps.
template <typename T = float>
absl::StatusOr<std::vector<double>> Train(const std::string& text, TrainerOptions options,
                                          int64_t samples = 5) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  options.feeds = {"x"};
  if (options.fetches.empty()) options.fetches = {"loss"};
  options.core.num_threads = 1;
  INTERP_ASSIGN_OR_RETURN(const auto trainer,
                          Trainer::Create(std::move(program), nullptr, options));
  Scope& scope = *trainer->scope();
  scope.FindOrCreate("w")->tensor = Numbers<T>({3, 2});
  scope.FindOrCreate("lr")->tensor = Tensor::Of<T>({1}, {static_cast<T>(0.5)});
  scope.FindOrCreate("c")->tensor = Tensor::Of<float>({1}, {0});
  scope.FindOrCreate("acc")->tensor = Tensor::Of<float>({3, 2}, std::vector<float>(6));
  for (int step = 0; step < 2; ++step) {
    INTERP_RETURN_IF_ERROR(trainer->Step({Numbers<T>({samples, 3})}).status());
  }
  const std::vector<T> values = Values<T>(scope.Find("w")->tensor);
  return std::vector<double>(values.begin(), values.end());
}

TrainerOptions InParts(int32_t count, ScheduleKind schedule = ScheduleKind::k1F1B) {
  return {.micro_batches = MicroBatchOptions{.micro_batches = count, .schedule = schedule}};
}

void ExpectAsWhole(const std::string& text) {
  const auto whole = Train(text, {});
  ASSERT_THAT(whole, IsOk());
  for (const ScheduleKind schedule : {ScheduleKind::k1F1B, ScheduleKind::kFThenB}) {
    const auto parts = Train(text, InParts(2, schedule));
    ASSERT_THAT(parts, IsOk());
    EXPECT_THAT(*parts, Pointwise(DoubleNear(1e-6), *whole));
  }
}

TEST(MicroBatchProgramsTest, PersistableGradientsAreOfTheWholeBatch) {
  const std::string text = Step({{"w@GRAD float32[3,2]", "w@GRAD float32[3,2] persistable"}});
  ExpectAsWhole(text);
  const auto whole = Train(text, {});
  const auto replicas = Train(text, {.replicas = 2});
  ASSERT_THAT(replicas, IsOk());
  EXPECT_THAT(*replicas, Pointwise(DoubleNear(1e-6), *whole));
}

// Micro-batches of one program add to the one variable, replicas would each to their own.
TEST(MicroBatchProgramsTest, SumsOverStepsAreOfTheWholeBatchOrRefused) {
  const std::string text =
      absl::StrReplaceAll(Step({{"  var lr ", "  var acc float32[3,2] persistable\n  var lr "}},
                               "  sum(X=[acc, w@GRAD]) -> (Out=acc) {op_role=1}\n"),
                          {{"Grad=w@GRAD, Learning", "Grad=acc, Learning"}});
  ExpectAsWhole(text);
  EXPECT_THAT(Train(text, {.replicas = 2}),
              FailsWith(StatusCode::kUnimplemented, "the update reads 'acc', a persistable"));
}

TEST(MicroBatchProgramsTest, ForwardOpsBehindTheBackwardPartStayThere) {
  ExpectAsWhole(Step({}, "  scale(X=h) -> (Out=h) {scale=3.0}\n"));
  ExpectAsWhole(Step({}, "  mean(X=w@GRAD) -> (Out=n)\n"));
}

TEST(MicroBatchProgramsTest, LossesThatAreNotAllMarkedGiveTheSame) {
  for (const char* role : {"1", "257"}) {
    SCOPED_TRACE(role);
    ExpectAsWhole(Step({}, absl::StrReplaceAll(R"(  mean(X=h) -> (Out=l2)
  fill_constant() -> (Out=l2@GRAD) {shape=longs:[1], value=1.0, dtype=5, op_role=$ROLE}
  mean_grad(X=h, Out@GRAD=l2@GRAD) -> (X@GRAD=hB) {op_role=1}
  mul_grad(X=x, Y=w, Out@GRAD=hB) -> (Y@GRAD=gB) {op_role=1}
  sum(X=[w@GRAD, gB]) -> (Out=w@GRAD) {op_role=1}
)",
                                               {{"$ROLE", role}})));
  }
}

// The part of the gradient that no loss has is there once, not once for each micro-batch.
TEST(MicroBatchProgramsTest, DecayInTheBackwardPartCountsOnce) {
  ExpectAsWhole(Step({},
                     "  scale(X=w) -> (Out=decay) {scale=0.25, op_role=1}\n"
                     "  sum(X=[w@GRAD, decay]) -> (Out=w@GRAD) {op_role=1}\n"));
}

// The weights are thirds: as exact as the program.
TEST(MicroBatchProgramsTest, DoublesAreWeightedAsDoubles) {
  for (const char* start : {"257", "1"}) {
    const std::string text = Step({{"float32", "float64"}, {"dtype=5", "dtype=6"}, {"257", start}});
    const auto whole = Train<double>(text, {}, /*samples=*/3);
    const auto parts = Train<double>(text, InParts(3), /*samples=*/3);
    ASSERT_THAT(whole, IsOk());
    ASSERT_THAT(parts, IsOk());
    EXPECT_THAT(*parts, Pointwise(DoubleNear(1e-14), *whole));
  }
}

// Those left over would advance it once more.
TEST(MicroBatchProgramsTest, FewerSamplesThanMicroBatchesAreRefusedWhereThereAreStates) {
  EXPECT_THAT(Train(Step({}), InParts(4), /*samples=*/1), IsOk());
  const std::string counts = Step({{"  var h ", "  var c float32[1] persistable\n  var h "}},
                                  "  increment(X=c) -> (Out=c) {step=1.0}\n");
  EXPECT_THAT(Train(counts, InParts(4), /*samples=*/4), IsOk());
  EXPECT_THAT(Train(counts, InParts(4), /*samples=*/3),
              FailsWith(StatusCode::kInvalidArgument,
                        "a batch has 3 samples for 4 micro-batches: those without samples would "
                        "change 'c', which goes from one to the next, once more; leave out a last "
                        "batch that is not full (--drop-last)"));
}

TEST(MicroBatchProgramsTest, RowsThatTheLastMicroBatchLeavesAreNoFetch) {
  const std::string text = Step({{"s float32[-1,2]", "s float32[-1,2] persistable"}});
  TrainerOptions options = InParts(2);
  EXPECT_THAT(Train(text, options), IsOk());
  options.fetches = {"s"};
  EXPECT_THAT(Train(text, options),
              FailsWith(StatusCode::kUnimplemented, "fetch 's' is persistable and has rows"));
}

// The mean over words of the square of a word's number.
constexpr char kWords[] = R"(block 0
  var table float32[10,1] param
  var lr float32[1] persistable
  var ids int64[-1,1] lod=1
  var e float32[-1,1]
  var q float32[-1,1]
  var loss float32[1]
  var table@GRAD float32[10,1]
  lookup_table_v2(W=table, Ids=ids) -> (Out=e0)
  reshape2(X=e0) -> (Out=e, XShape=xs) {shape=[-1,1]}
  square(X=e) -> (Out=q)
  mean(X=q) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {shape=longs:[1], value=1.0, dtype=5, op_role=257}
  mean_grad(X=q, Out@GRAD=loss@GRAD) -> (X@GRAD=q@GRAD) {op_role=1}
  square_grad(X=e, Out@GRAD=q@GRAD) -> (X@GRAD=e@GRAD) {op_role=1}
  reshape2_grad(XShape=xs, Out@GRAD=e@GRAD) -> (X@GRAD=e0@GRAD) {op_role=1}
  lookup_table_v2_grad(W=table, Ids=ids, Out@GRAD=e0@GRAD) -> (W@GRAD=table@GRAD) {op_role=1}
  sgd(Param=table, Grad=table@GRAD, LearningRate=lr) -> (ParamOut=table) {op_role=2}
)";

Tensor WordsOf(const std::vector<int64_t>& words, const std::vector<int64_t>& offsets) {
  Tensor ids = Tensor::Of<int64_t>({static_cast<int64_t>(words.size()), 1}, words);
  ids.lod = {offsets};
  return ids;
}

// The loss of a batch, and the table after it.
absl::StatusOr<std::vector<double>> TrainWords(const Tensor& ids, TrainerOptions options) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(kWords));
  options.feeds = {"ids"};
  options.fetches = {"loss"};
  options.core.num_threads = 1;
  INTERP_ASSIGN_OR_RETURN(const auto trainer,
                          Trainer::Create(std::move(program), nullptr, options));
  Scope& scope = *trainer->scope();
  scope.FindOrCreate("table")->tensor = Tensor::Of<float>({10, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  scope.FindOrCreate("lr")->tensor = Tensor::Of<float>({1}, {0.5F});
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched, trainer->Step({ids}));
  const std::vector<float> values = Values<float>(scope.Find("table")->tensor);
  std::vector<double> all(values.begin(), values.end());
  all.push_back(*fetched[0].data<float>());
  return all;
}

std::vector<absl::StatusOr<std::vector<double>>> TrainWordsInShares(const Tensor& ids) {
  std::vector<absl::StatusOr<std::vector<double>>> results;
  results.push_back(TrainWords(ids, InParts(2)));
  results.push_back(TrainWords(ids, {.replicas = 2}));
  std::vector<absl::StatusOr<std::vector<double>>> of_ranks(2);
  OnAllRanks({.size = 2}, {.timeout = std::chrono::seconds(10)},
             [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
               of_ranks[rings->rank()] = TrainWords(
                   ids, {.data_parallel = DataParallelOptions{}, .core = {.rings = rings}});
               return absl::OkStatus();
             });
  results.insert(results.end(), of_ranks.begin(), of_ranks.end());
  return results;
}

TEST(MicroBatchProgramsTest, MeansOverRowsAreThoseOfTheBatchOrRefused) {
  const auto whole = TrainWords(WordsOf({1, 2, 3, 9}, {0, 3, 4}), {});
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(whole->back(), 23.75);
  for (const auto& result : TrainWordsInShares(WordsOf({1, 2, 3, 9}, {0, 3, 4}))) {
    EXPECT_THAT(result, FailsWith(StatusCode::kUnimplemented,
                                  "feed 'ids' has 4 rows of 2 sequences, and a share 3 of 1: "
                                  "'loss' may be a mean over rows"));
  }
  for (const auto& result : TrainWordsInShares(WordsOf({1, 2, 3, 9}, {0, 2, 4}))) {
    ASSERT_THAT(result, IsOk());
    EXPECT_THAT(*result, Pointwise(DoubleNear(1e-6), *whole));
  }
}

// Of words in sentences in paragraphs, which are the samples.
absl::Status CheckParagraphs(const std::string& ops, const Lod& lod,
                             const std::vector<std::string>& fetches = {}) {
  const absl::StatusOr<Program> program = ParseProgram(
      absl::StrCat("block 0\n  var x float32[-1,1] lod=2\n  var rows float32[-1,1]\n", ops));
  INTERP_RETURN_IF_ERROR(program.status());
  Tensor words = Numbers<float>({lod.back().back(), 1});
  words.lod = lod;
  const FeedSpec x{.name = "x", .dtype = DType::kFloat32, .shape = {-1, 1}};
  return SequenceRows(*program, {"x"}, fetches).Check({words}, {x}, /*count=*/2);
}

TEST(SequenceRowsTest, APoolForEachLevelLeavesAValueForEachSample) {
  const std::string once = "  sequence_pool(X=x) -> (Out=s)\n";
  const std::string loss_of_once = once + "  mean(X=s) -> (Out=loss) {op_role=256}\n";
  const std::string loss_of_both =
      once + "  sequence_pool(X=s) -> (Out=p)\n  mean(X=p) -> (Out=loss) {op_role=256}\n";
  const Lod uneven = {{0, 2, 3}, {0, 1, 2, 6}};       // 2 sentences and 1
  const Lod even_sentences = {{0, 1, 2}, {0, 1, 6}};  // 1 and 1, of 1 word and 5
  EXPECT_THAT(CheckParagraphs(loss_of_both, uneven), IsOk());
  EXPECT_THAT(CheckParagraphs(loss_of_once, even_sentences), IsOk());
  EXPECT_THAT(CheckParagraphs(loss_of_once, uneven),
              FailsWith(StatusCode::kUnimplemented,
                        "feed 'x' has 3 rows of 2 sequences, and a share 2 of 1"));
}

TEST(SequenceRowsTest, PaddingToAGivenLengthLeavesARowForEachSequence) {
  const Lod even_sentences = {{0, 1, 2}, {0, 1, 6}};
  const auto padded_to = [](int length) {
    return absl::StrCat("  sequence_pad(X=x, PadValue=x) -> (Out=s, Length=n) {padded_length=",
                        length, "}\n  mean(X=s) -> (Out=loss) {op_role=256}\n");
  };
  EXPECT_THAT(CheckParagraphs(padded_to(8), even_sentences), IsOk());
  const auto refused = FailsWith(StatusCode::kUnimplemented, "'loss' may be a mean over rows");
  EXPECT_THAT(CheckParagraphs(padded_to(-1), even_sentences), refused);
  const std::string pad =
      "  sequence_pad(X=x, PadValue=x) -> (Out=s, Length=n) {padded_length=8}\n";
  EXPECT_THAT(CheckParagraphs(pad + "  sequence_unpad(X=s, Length=rows) -> (Out=u)\n"
                                    "  mean(X=u) -> (Out=loss) {op_role=256}\n",
                              even_sentences),
              refused);
  EXPECT_THAT(CheckParagraphs(pad + "  elementwise_mul(X=s, Y=n) -> (Out=u)\n"
                                    "  mean(X=u) -> (Out=loss) {op_role=256}\n",
                              even_sentences),
              refused);
}

TEST(SequenceRowsTest, LooksAtFetchesBlocksAndUnmarkedLosses) {
  const Lod uneven = {{0, 1, 2}, {0, 1, 6}};
  const auto refused = [](const std::string& name) {
    return FailsWith(StatusCode::kUnimplemented, absl::StrCat("'", name, "' may be a mean"));
  };
  const std::string aside =
      "  scale(X=x) -> (Out=rows)\n  mean(X=rows) -> (Out=metric)\n"
      "  fill_constant() -> (Out=loss) {op_role=256}\n";
  EXPECT_THAT(CheckParagraphs(aside, uneven), IsOk());
  EXPECT_THAT(CheckParagraphs(aside, uneven, {"rows"}), IsOk());
  EXPECT_THAT(CheckParagraphs(aside, uneven, {"metric"}), refused("metric"));
  EXPECT_THAT(CheckParagraphs("  mean(X=x) -> (Out=loss)\n", uneven), refused("loss"));
  EXPECT_THAT(CheckParagraphs("  mean(X=x) -> (Out=loss)\n"
                              "  fill_constant() -> (Out=loss@GRAD) {op_role=257}\n",
                              uneven),
              refused("loss"));
  EXPECT_THAT(CheckParagraphs("  while() -> () {sub_block=block:1}\n"
                              "  mean(X=h) -> (Out=loss) {op_role=256}\n"
                              "block 1 parent=0\n  scale(X=x) -> (Out=h)\n",
                              uneven),
              refused("loss"));
}

}  // namespace
}  // namespace interp::testing
