// Arrays, rank tables and masks over sequences, in programs of several ops: bad input, memory that
// elements share, and the same bits under every scheduler and on devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/differential.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

struct ProgramRun {
  std::string ops;
  std::vector<NamedTensor> feeds;
  std::vector<std::string> fetches;
};

// Tensors need no declaration but those that are fed; "array", "other" and "table" are what their
// names say.
std::string TextOf(const ProgramRun& run) {
  std::string text =
      "block 0\n  var array lod_tensor_array float32[-1]\n"
      "  var other lod_tensor_array float32[-1]\n  var table lod_rank_table\n";
  for (const auto& [name, tensor] : run.feeds) {
    absl::StrAppend(&text, "  var ", name, " ", Name(tensor.dtype), ToString(tensor.shape), "\n");
  }
  return text + run.ops;
}

// Runs feed other shapes than the first one's, which the program declares.
absl::StatusOr<std::unique_ptr<InterpreterCore>> MakeCore(const ProgramRun& run,
                                                          const CoreOptions& options = {
                                                              .check_feed_shapes = false}) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(TextOf(run)));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : run.feeds) names.push_back(name);
  return InterpreterCore::Create(std::move(program), names, run.fetches, nullptr, options);
}

absl::StatusOr<std::vector<Tensor>> RunProgram(const ProgramRun& run,
                                               const CoreOptions& options = {}) {
  INTERP_ASSIGN_OR_RETURN(auto core, MakeCore(run, options));
  std::vector<Tensor> feeds;
  for (const auto& [name, tensor] : run.feeds) feeds.push_back(tensor);
  return core->Run(feeds);
}

struct Failure {
  absl::StatusCode code;
  ProgramRun run;
  std::string message;
};

void ExpectAll(const std::vector<Failure>& failures) {
  for (const Failure& failure : failures) {
    EXPECT_THAT(RunProgram(failure.run), FailsWith(failure.code, failure.message))
        << TextOf(failure.run);
  }
}

Tensor Index(int64_t value) { return Tensor::Of<int64_t>({1}, {value}); }

TEST(ArrayOpsTest, IndicesThatAreNoneAreRefused) {
  const Tensor x = Numbers({2}, 1);
  const auto write = [&](const Tensor& index) {
    return ProgramRun{
        "  write_to_array(X=x, I=i) -> (Out=array)\n"
        "  lod_array_length(X=array) -> (Out=n)\n",
        {{"x", x}, {"i", index}},
        {"n"}};
  };
  const auto read = [&](const Tensor& index) {
    return ProgramRun{IndexOp("zero", 0) +
                          "  write_to_array(X=x, I=zero) -> (Out=array)\n"
                          "  read_from_array(X=array, I=i) -> (Out=y)\n",
                      {{"x", x}, {"i", index}},
                      {"y"}};
  };
  ExpectAll({
      {kInvalid, write(Index(-1)), "input 'I' is -1"},
      {kInvalid, write(Index(1'000'000'000'000)), "expected at most 1048576 beyond its end"},
      {kInvalid, write(Index(INT64_MAX)), "beyond its end"},
      {kInvalid, write(Tensor::Of<int64_t>({2}, {0, 1})), "expected one element"},
      {kInvalid, write(Tensor::Of<float>({1}, {0})), "expected int32 or int64"},
      {kInvalid, read(Index(-3)), "input 'I' is -3"},
      {kInvalid, read(Tensor::Of<int64_t>({0}, {})), "expected one element"},
  });
  EXPECT_THAT(RunProgram(write(Tensor::Of<int32_t>({1, 1}, {3}))), IsOk());
}

TEST(ArrayOpsTest, ElementsThatNobodyHasWrittenHaveNoValue) {
  const Tensor x = Numbers({2}, 1);
  const std::string write = IndexOp("two", 2) + IndexOp("one", 1) + IndexOp("nine", 9) +
                            "  write_to_array(X=x, I=two) -> (Out=array)\n";
  ExpectAll({
      {kNotFound,
       {write + "  read_from_array(X=array, I=one) -> (Out=y)\n", {{"x", x}}, {"y"}},
       "element 1 of the array has no value"},
      {kNotFound,
       {write + "  read_from_array(X=array, I=nine) -> (Out=y)\n  relu(X=y) -> (Out=z)\n",
        {{"x", x}},
        {"z"}},
       "input 'y' has no value"},
  });
}

TEST(ArrayOpsTest, VariablesOfAnotherKindAreRefused) {
  const Tensor x = Numbers({2}, 1);
  const std::string write = IndexOp("i", 0) + "  write_to_array(X=x, I=i) -> (Out=array)\n";
  ExpectAll({
      {kInvalid,
       {IndexOp("i", 0) + "  write_to_array(X=x, I=i) -> (Out=y)\n", {{"x", x}}, {"y"}},
       "variable 'y' is a tensor, but 'Out' takes an array"},
      {kInvalid,
       {write + "  relu(X=array) -> (Out=y)\n", {{"x", x}}, {"y"}},
       "variable 'array' is an array or a rank table, but 'X' takes a tensor"},
      {kInvalid,
       {write + "  relu(X=x) -> (Out=other)\n  assign(X=x) -> (Out=y)\n",
        {{"x", x}},
        {"y", "other"}},
       "variable 'other' is an array"},
      {kInvalid,
       {write + "  assign(X=array) -> (Out=y)\n", {{"x", x}}, {"y"}},
       "expected arrays only, or none"},
      {kInvalid,
       {write + "  assign(X=x) -> (Out=other)\n  lod_array_length(X=other) -> (Out=n)\n",
        {{"x", x}},
        {"n"}},
       "expected arrays only, or none"},
      // A table where an array is wanted, and the other way round, holds nothing.
      {kInvalid,
       {write + "  max_sequence_len(RankTable=array) -> (Out=n)\n", {{"x", x}}, {"n"}},
       "input 'RankTable' holds no rank table"},
  });
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var x float32[2]\n  var i int64[1]\n  var kept lod_tensor_array persistable\n"
      "  write_to_array(X=x, I=i) -> (Out=kept)\n  lod_array_length(X=kept) -> (Out=n)\n");
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(
      InterpreterCore::Create(*program, {"x", "i"}, {"n"}, nullptr),
      FailsWith(absl::StatusCode::kUnimplemented, "a persistable variable that is no tensor"));
}

TEST(ArrayOpsTest, ReadingBeyondTheEndNeverShowsAnotherTypesMemory) {
  // `y` held two bytes; the plan has floats from the read on.
  const ProgramRun run = {IndexOp("i", 0) + IndexOp("nine", 9) +
                              "  write_to_array(X=x, I=i) -> (Out=array)\n"
                              "  cast(X=x) -> (Out=y) {in_dtype=5, out_dtype=0}\n"
                              "  read_from_array(X=array, I=nine) -> (Out=y)\n"
                              "  relu(X=y) -> (Out=z)\n",
                          {{"x", Numbers({1000}, 1)}},
                          {"z"}};
  EXPECT_THAT(RunProgram(run), FailsWith(kNotFound, "input 'y' has no value"));
}

// What the array ops of `ops` say to a tensor `x` with that LoD.
ProgramRun Ranked(const Tensor& x, const std::string& ops, const std::string& fetch,
                  const Tensor& y = Numbers({3, 2}, 2), int level = 0) {
  return {absl::StrCat("  lod_rank_table(X=x) -> (Out=table) {level=", level, "}\n", ops),
          {{"x", x}, {"y", y}},
          {fetch}};
}

TEST(ArrayOpsTest, RankTablesThatDoNotFitAreRefused) {
  const Tensor x = Numbers({5, 2}, 1, {{0, 1, 4, 5}});
  const std::string to_array =
      "  lod_tensor_to_array(X=y, RankTable=table) -> (Out=array)\n"
      "  lod_array_length(X=array) -> (Out=n)\n";
  const std::string max_len = "  max_sequence_len(RankTable=table) -> (Out=n)\n";
  const std::string reorder = "  reorder_lod_tensor_by_rank(X=y, RankTable=table) -> (Out=z)\n";
  const std::string shrink =
      IndexOp("i", 0) + "  shrink_rnn_memory(X=y, RankTable=table, I=i) -> (Out=z)\n";
  ExpectAll({
      {kInvalid, Ranked(Numbers({3}, 1), max_len, "n"), "with 0 LoD levels, expected more than 0"},
      {kInvalid, Ranked(x, max_len, "n", x, 1), "with 1 LoD levels, expected more than 1"},
      {kInvalid, Ranked(x, to_array, "n"), "input 'X' has 0 LoD levels, expected more than 0"},
      {kInvalid, Ranked(x, to_array, "n", Numbers({5, 2}, 1, {{0, 1, 5}})),
       "input 'X' has 2 sequences, but the rank table has one of index 2"},
      {kInvalid, Ranked(x, to_array, "n", Numbers({2, 2}, 1, {{0, 1, 1, 2}})),
       "the rank table has a sequence of 3 steps, input 'X' has 2"},
      {kInvalid, Ranked(x, to_array, "n", Numbers({3, 2}, 1, {{0, 1, 1, 3}})),
       "parts 3 to 4 are wanted of a tensor that has 3"},
      {kInvalid, Ranked(x, reorder, "z", Numbers({2, 2}, 1)), "parts 2 to 3 are wanted"},
      {kInvalid, Ranked(x, reorder, "z", Numbers({}, 1)), "expected a tensor with rows"},
      {kInvalid, Ranked(x, shrink, "z", Numbers({2, 2}, 1)), "3 sequences are longer than 0 steps"},
      {kInvalid,
       {max_len, {{"x", x}}, {"n"}},
       "input 'RankTable' holds no rank table: nothing has written it"},
  });
}

TEST(ArrayOpsTest, ArraysThatDoNotFitTheirRankTableAreRefused) {
  const Tensor x = Numbers({4, 2}, 1, {{0, 1, 4}});
  const std::string join = "  array_to_lod_tensor(X=array, RankTable=table) -> (Out=z)\n";
  const std::string steps = IndexOp("i0", 0) + IndexOp("i1", 1) + IndexOp("i2", 2);
  const auto write = [](const std::string& name, const std::string& index) {
    return absl::StrCat("  write_to_array(X=", name, ", I=", index, ") -> (Out=array)\n");
  };
  const Tensor two = Numbers({2, 3}, 1);
  ExpectAll({
      {kInvalid, Ranked(x, join, "z"), "the array 'X' has no elements"},
      {kInvalid, Ranked(x, steps + write("y", "i0") + join, "z", two),
       "a sequence of 3 steps, the array 'X' has 1 elements"},
      {kNotFound, Ranked(x, steps + write("y", "i2") + join, "z", two), "element 0 of the array"},
      {kInvalid,
       Ranked(x, steps + write("y", "i0") + write("x", "i1") + write("y", "i2") + join, "z", two),
       "LoD levels are to be joined"},
      {kInvalid,
       Ranked(x,
              steps + write("y", "i0") +
                  "  scale(X=y) -> (Out=w)\n  concat(X=[y, w]) -> (Out=v)"
                  " {axis=1}\n" +
                  write("v", "i1") + write("y", "i2") + join,
              "z", two),
       "are to be joined, expected one dtype"},
      {kInvalid,
       Ranked(x, steps + write("y", "i0") + write("y", "i1") + write("y", "i2") + join, "z",
              Numbers({1, 3}, 1)),
       "parts 1 to 2 are wanted of a tensor that has 1"},
  });
}

TEST(ArrayOpsTest, MasksThatDoNotFitAreRefused) {
  const Tensor x = Numbers({3, 2}, 1);
  const auto split = [&](const Tensor& tensor, const Tensor& mask, int level = 0) {
    return ProgramRun{absl::StrCat("  split_lod_tensor(X=x, Mask=m) -> (OutTrue=t, OutFalse=f) ",
                                   "{level=", level, "}\n"),
                      {{"x", tensor}, {"m", mask}},
                      {"t"}};
  };
  const auto merge = [&](const Tensor& t, const Tensor& f, const Tensor& mask, int level = 0) {
    return ProgramRun{absl::StrCat("  merge_lod_tensor(X=x, Mask=m, InTrue=t, InFalse=f) -> ",
                                   "(Out=z) {level=", level, "}\n"),
                      {{"x", x}, {"m", mask}, {"t", t}, {"f", f}},
                      {"z"}};
  };
  ExpectAll({
      {kInvalid, split(x, Numbers({3, 1}, 1)), "input 'Mask' is float32[3,1], expected bool[n,1]"},
      {kInvalid, split(x, Mask({true, false, true, true})), "parts 3 to 4 are wanted"},
      {kInvalid, split(x, Mask({true}), 1), "a tensor has 0 LoD levels, expected 1 at least"},
      {kInvalid, split(x, Mask({true}), -1), "attribute 'level' is negative"},
      {kInvalid, split(Numbers({}, 1), Mask({true})), "expected a tensor with rows"},
      {kInvalid, merge(x, x, Mask({true, true, true, true})), "parts 3 to 4 are wanted"},
      {kInvalid, merge(x, x, Mask({true}), 1), "input 'X' has 0 LoD levels, expected 1 at least"},
      {kInvalid, merge(x, Numbers({3, 4}, 1), Mask({true, false})), "are to be joined"},
      {kInvalid, merge(x, Numbers({3, 2}, 1, {{0, 3}}), Mask({true, false})), "to be joined"},
  });
}

// Paddle reads an empty sequence again instead of the next one.
TEST(ArrayOpsTest, MergeIsTheInverseOfSplitForEmptySequencesToo) {
  const Tensor x = Numbers({6, 2}, 1, {{0, 2, 2, 2, 5, 5, 6}});
  for (const char* const type : {"merge_lod_tensor", "merge_lod_tensor_infer"}) {
    const ProgramRun run = {
        absl::StrCat("  split_lod_tensor(X=x, Mask=m) -> (OutTrue=t, OutFalse=f)"
                     "\n  ",
                     type, "(X=x, Mask=m, InTrue=t, InFalse=f) -> (Out=z)\n"),
        {{"x", x}, {"m", Mask({true, true, false, true, false, false})}},
        {"z"}};
    const absl::StatusOr<std::vector<Tensor>> merged = RunProgram(run);
    ASSERT_THAT(merged, IsOk());
    EXPECT_TRUE(SameBits((*merged)[0], x));
  }
}

// A loop over time steps as DynamicRNN makes it, unrolled: a shrinking memory, outputs in an array,
// and variables that are updated in place after they were written to it.
ProgramRun Recurrence(const Tensor& x, const Tensor& h, int64_t steps) {
  std::string ops =
      "  lod_rank_table(X=x) -> (Out=table)\n"
      "  lod_tensor_to_array(X=x, RankTable=table) -> (Out=other)\n"
      "  reorder_lod_tensor_by_rank(X=h, RankTable=table) -> (Out=state)\n" +
      IndexOp("i", 0);
  for (int64_t t = 0; t < steps; ++t) {
    const std::string s = absl::StrCat(t);
    absl::StrAppend(&ops, "  read_from_array(X=other, I=i) -> (Out=x", s, ")\n");
    absl::StrAppend(&ops, "  shrink_rnn_memory(X=state, RankTable=table, I=i) -> (Out=h", s, ")\n");
    absl::StrAppend(&ops, "  elementwise_add(X=x", s, ", Y=h", s, ") -> (Out=sum", s, ")\n");
    absl::StrAppend(&ops, "  tanh(X=sum", s, ") -> (Out=state)\n");
    absl::StrAppend(&ops, "  write_to_array(X=state, I=i) -> (Out=array)\n");
    absl::StrAppend(&ops, "  scale(X=state) -> (Out=state) {scale=0.5}\n");
    absl::StrAppend(&ops, "  increment(X=i) -> (Out=i) {step=1.0}\n");
  }
  ops +=
      "  array_to_lod_tensor(X=array, RankTable=table) -> (Out=y)\n"
      "  lod_array_length(X=array) -> (Out=n)\n";
  return {ops, {{"x", x}, {"h", h}}, {"y", "n", "state", "i"}};
}

std::vector<Variant> AllVariants() {
  std::vector<Variant> variants = HostVariants();
  for (Variant& variant : DeviceVariants(/*seed=*/7)) {
    variant.name = "device " + variant.name;
    variants.push_back(std::move(variant));
  }
  for (Variant& variant : variants) variant.options.ops = nullptr;
  return variants;
}

TEST(ArrayOpsTest, GiveTheSameBitsUnderEverySchedulerAndOnDevices) {
  const Tensor h = Numbers({4, 3}, 2);
  const Tensor x = Numbers({9, 3}, 1, {{0, 2, 6, 6, 9}});
  const ProgramRun run = Recurrence(x, h, 4);
  const absl::StatusOr<std::vector<Tensor>> want = RunProgram(run);
  ASSERT_THAT(want, IsOk());
  EXPECT_THAT((*want)[0].lod, ElementsAre(ElementsAre(0, 2, 6, 6, 9)));
  EXPECT_THAT(Values<int64_t>((*want)[1]), ElementsAre(4));
  for (const Variant& variant : AllVariants()) {
    SCOPED_TRACE(variant.name);
    const auto core = MakeCore(run, variant.options);
    ASSERT_THAT(core, IsOk());
    for (int i = 0; i < 3; ++i) {
      const absl::StatusOr<std::vector<Tensor>> got = (*core)->Run({x, h});
      ASSERT_THAT(got, IsOk());
      EXPECT_TRUE(SameBits(*got, *want)) << "in run " << i;
    }
  }
}

// Lengths differ from run to run: nothing of a rank table or an array is taken from the run before.
TEST(ArrayOpsTest, FollowTheLodOfEachRun) {
  const ProgramRun run = Recurrence(Numbers({6, 2}, 1, {{0, 3, 6}}), Numbers({2, 2}, 2), 3);
  const auto core = MakeCore(run);
  ASSERT_THAT(core, IsOk());
  for (const Lod& lod : {Lod{{0, 3, 6}}, Lod{{0, 0, 3, 6}}, Lod{{0, 2, 3, 6}}, Lod{{0, 3, 6}}}) {
    const Tensor x = Numbers({6, 2}, 1, lod);
    const Tensor h = Numbers({static_cast<int64_t>(lod[0].size()) - 1, 2}, 2);
    const absl::StatusOr<std::vector<Tensor>> warm = (*core)->Run({x, h});
    const absl::StatusOr<std::vector<Tensor>> cold = RunProgram(Recurrence(x, h, 3));
    ASSERT_THAT(warm, IsOk());
    ASSERT_THAT(cold, IsOk());
    EXPECT_TRUE(SameBits(*warm, *cold));
  }
}

// 100 elements of one tensor of 1 MiB, and copies of the array: none costs memory.
TEST(ArrayOpsTest, ElementsShareTheMemoryOfWhatIsWritten) {
  std::string ops = "  scale(X=x) -> (Out=y) {scale=2.0}\n" + IndexOp("i", 0);
  for (int i = 0; i < 100; ++i) {
    ops += "  write_to_array(X=y, I=i) -> (Out=array)\n  increment(X=i) -> (Out=i) {step=1.0}\n";
  }
  ops += "  assign(X=array) -> (Out=other)\n" + IndexOp("last", 99) +
         "  read_from_array(X=other, I=last) -> (Out=z)\n"
         "  lod_array_length(X=array) -> (Out=n)\n";
  const ProgramRun run = {ops, {{"x", Numbers({1 << 18}, 1)}}, {"z", "n"}};
  EXPECT_THAT(RunProgram(run, {.max_memory_bytes = 3 << 20}), IsOk());
}

// The elements of an array go when it does, in the middle of a run.
TEST(ArrayOpsTest, MemoryOfArraysIsFreedAfterTheirLastReader) {
  std::string ops = IndexOp("i", 0);
  std::string x = "x";
  for (int i = 0; i < 20; ++i) {
    const std::string n = absl::StrCat(i);
    absl::StrAppend(&ops, "  scale(X=", x, ") -> (Out=y", n, ") {scale=2.0}\n");
    absl::StrAppend(&ops, "  write_to_array(X=y", n, ", I=i) -> (Out=array", n, ")\n");
    absl::StrAppend(&ops, "  read_from_array(X=array", n, ", I=i) -> (Out=z", n, ")\n");
    x = "z" + n;
  }
  std::string arrays = "block 0\n  var x float32[262144]\n";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&arrays, "  var array", i, " lod_tensor_array\n");
  const absl::StatusOr<Program> program = ParseProgram(arrays + ops);
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*program, {"x"}, {"z19"}, nullptr,
                                            {.num_workers = 1, .max_memory_bytes = 4 << 20});
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT((*core)->Run({Numbers({1 << 18}, 1)}), IsOk());
}

}  // namespace
}  // namespace interp::testing
