// Random programs of array, rank table and mask ops on tensors that mostly do not fit each other:
// each run ends with a result, the same under every scheduler, or says what is wrong. What is read
// beyond a tensor shows under AddressSanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_join.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

struct FuzzedProgram {
  std::string text;
  std::vector<Tensor> feeds;  // x, y, i, j and m
  std::vector<std::string> fetches;
};

class Fuzzer {
 public:
  explicit Fuzzer(uint32_t seed) : generator_(seed) {}

  FuzzedProgram Next() {
    sequences_ = Int(1, 3);
    tensors_ = {"x", "y"};
    made_.clear();
    std::vector<bool> bits(static_cast<size_t>(sequences_));
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = Int(0, 1) == 1;
    FuzzedProgram program;
    program.feeds = {NextTensor(), NextTensor(), Index(), Index(), Mask(bits)};
    program.text =
        "block 0\n  var x float32[-1]\n  var y float32[-1]\n  var i int64[1]\n  var j int64[1]\n"
        "  var m bool[-1,1]\n  var a lod_tensor_array float32[-1]\n"
        "  var b lod_tensor_array float32[-1]\n  var table lod_rank_table\n";
    // Most programs begin with what all others need.
    if (Int(0, 5) > 0) program.text += "  lod_rank_table(X=x) -> (Out=table)\n";
    for (int64_t ops = Int(1, 9); ops > 0; --ops) program.text += NextOp();
    program.fetches = made_;
    return program;
  }

 private:
  int64_t Int(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(generator_() % static_cast<uint32_t>(most - least + 1));
  }
  const std::string& Any(const std::vector<std::string>& names) {
    return names[static_cast<size_t>(Int(0, std::ssize(names) - 1))];
  }
  std::string Made() {
    // Some variables are written again.
    std::string name = Int(0, 4) == 0 && !made_.empty() ? Any(made_) : absl::StrCat("t", next_++);
    if (std::find(made_.begin(), made_.end(), name) == made_.end()) made_.push_back(name);
    return name;
  }

  std::string NextOp() {
    const std::string array = Any({"a", "b"});
    const std::string index = Any({"i", "j"});
    const std::string x = Any(tensors_);
    const std::string level = absl::StrCat(" {level=", Int(0, 4) == 0 ? 1 : 0, "}\n");
    switch (Int(0, 11)) {
      case 0:
        return absl::StrCat("  lod_rank_table(X=", x, ") -> (Out=table)", level);
      case 1:
        return absl::StrCat("  lod_tensor_to_array(X=", x, ", RankTable=table) -> (Out=", array,
                            ")\n");
      case 2:
      case 3:
        return absl::StrCat("  write_to_array(X=", x, ", I=", index, ") -> (Out=", array, ")\n");
      case 4:
        return absl::StrCat("  assign(X=", array, ") -> (Out=", array == "a" ? "b" : "a", ")\n");
      case 5:
        return absl::StrCat("  lod_array_length(X=", array, ") -> (Out=n", next_++, ")\n");
      case 6:
        return absl::StrCat("  scale(X=", x, ") -> (Out=", x, ") {scale=0.5}\n");
      default:
        return NextTensorOp(array, index, x, level);
    }
  }

  std::string NextTensorOp(const std::string& array, const std::string& index, const std::string& x,
                           const std::string& level) {
    const std::string y = Any(tensors_);
    const int64_t kind = Int(0, 5);
    const std::string out = Made();
    tensors_.push_back(out);
    switch (kind) {
      case 0:
        return absl::StrCat("  read_from_array(X=", array, ", I=", index, ") -> (Out=", out, ")\n");
      case 1:
        return absl::StrCat("  array_to_lod_tensor(X=", array, ", RankTable=table) -> (Out=", out,
                            ")\n");
      case 2:
        return absl::StrCat("  shrink_rnn_memory(X=", x, ", RankTable=table, I=", index,
                            ") -> (Out=", out, ")\n");
      case 3:
        return absl::StrCat("  reorder_lod_tensor_by_rank(X=", x,
                            ", RankTable=table) -> (Out=", out, ")\n");
      case 4:
        return absl::StrCat("  split_lod_tensor(X=", x, ", Mask=m) -> (OutTrue=", out,
                            ", OutFalse=rest", next_++, ")", level);
      default:
        return absl::StrCat("  merge_lod_tensor(X=x, Mask=m, InTrue=", x, ", InFalse=", y,
                            ") -> (Out=", out, ")", level);
    }
  }

  Tensor NextTensor() {
    const int64_t rows = Int(0, 2) == 0 ? sequences_ : Int(0, 6);
    Tensor tensor = Numbers({rows, Int(1, 2)}, static_cast<uint32_t>(Int(0, 1000)));
    if (Int(0, 5) == 0) return tensor;
    int64_t parts = rows;
    for (int64_t levels = Int(0, 3) == 0 ? 2 : 1; levels > 0; --levels) {
      std::vector<int64_t> level = {0};
      while (std::ssize(level) < sequences_) level.push_back(Int(level.back(), parts));
      level.push_back(parts);
      parts = std::ssize(level) - 1;
      tensor.lod.insert(tensor.lod.begin(), std::move(level));
    }
    return tensor;
  }

  Tensor Index() { return Tensor::Of<int64_t>({1}, {Int(0, 9) == 0 ? -1 : Int(0, 3)}); }

  std::mt19937 generator_;
  int64_t sequences_ = 1;  // that most LoDs of a program have
  std::vector<std::string> tensors_;
  std::vector<std::string> made_;
  int next_ = 0;
};

absl::StatusOr<std::vector<Tensor>> RunOn(const FuzzedProgram& fuzzed, SchedulerKind scheduler) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(fuzzed.text));
  INTERP_ASSIGN_OR_RETURN(auto core,
                          InterpreterCore::Create(std::move(program), {"x", "y", "i", "j", "m"},
                                                  fuzzed.fetches, nullptr,
                                                  {.scheduler = scheduler,
                                                   .num_workers = 2,
                                                   .num_threads = 1,
                                                   .check_feed_shapes = false}));
  return core->Run(fuzzed.feeds);
}

TEST(ArrayFuzzTest, RunsEndWithTheSameResultOrSayWhatIsWrong) {
  Fuzzer fuzzer(/*seed=*/5);
  int results = 0;
  for (int i = 0; i < 1500; ++i) {
    const FuzzedProgram program = fuzzer.Next();
    const absl::StatusOr<std::vector<Tensor>> trace = RunOn(program, SchedulerKind::kTrace);
    const absl::StatusOr<std::vector<Tensor>> async = RunOn(program, SchedulerKind::kAsync);
    ASSERT_EQ(trace.ok(), async.ok()) << trace.status() << "\n" << program.text;
    if (trace.ok()) {
      ++results;
      ASSERT_TRUE(SameBits(*trace, *async)) << program.text;
      continue;
    }
    const absl::StatusCode code = trace.status().code();
    ASSERT_TRUE(code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kNotFound)
        << trace.status() << "\n"
        << program.text;
  }
  EXPECT_GT(results, 300) << "most programs should not fit, but not nearly all";
}

}  // namespace
}  // namespace interp::testing
