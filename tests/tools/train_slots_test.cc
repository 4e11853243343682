// interp train --data FILE.slot: MultiSlot text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/io/file.h"
#include "core/io/npz.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// The sum of the embeddings of some ids: w of ids 0 to 9 learns what clicks say.
class Clicks {
 public:
  Clicks() {
    std::ofstream(folder_ / "forward.txt")
        << "program version=0\n"
           "block 0\n"
           "  var w float32[10,1] param persistable\n"
           "  var label float32[-1,1] check_feed stop_gradient\n"
           "  var ids int64[-1,1] lod=1 stop_gradient\n"
           "  var e float32[-1,1] lod=1\n"
           "  var p float32[-1,1]\n"
           "  var d float32[-1,1]\n"
           "  var s float32[-1,1]\n"
           "  var loss float32[]\n"
           "  lookup_table(W=w, Ids=ids) -> (Out=e)\n"
           "  sequence_pool(X=e) -> (Out=p) {pooltype=\"SUM\"}\n"
           "  elementwise_sub(X=p, Y=label) -> (Out=d)\n"
           "  square(X=d) -> (Out=s)\n"
           "  reduce_mean(X=s) -> (Out=loss) {reduce_all=true}\n";
    std::ofstream(folder_ / "start.txt")
        << "program version=0\n"
           "block 0\n"
           "  var w float32[10,1] param persistable\n"
           "  fill_constant() -> (Out=w) {dtype=5, shape=longs:[10,1], value=1.0}\n";
    const CommandResult made =
        RunInterp({"backward", folder_ / "forward.txt", "--loss", "loss", "--optimizer",
                   "sgd:learning_rate=0.1", "--startup-from", folder_ / "start.txt", "--startup",
                   folder_ / "first.pdmodel", "-o", folder_ / "train.pdmodel"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& text) const { std::ofstream(folder_ / "a.slot") << text; }
  CommandResult Train(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"train",        folder_ / "train.pdmodel",
                                    "--startup",    folder_ / "first.pdmodel",
                                    "--data",       folder_ / "a.slot",
                                    "--batch-size", "2",
                                    "--fetch",      "loss",
                                    "--no-shuffle"};
    all.insert(all.end(), more.begin(), more.end());
    return RunInterp(all);
  }

 private:
  TemporaryFolder folder_;
};

// Sums of embeddings that are all 1: 3 and 1. The labels are 1 and 0: loss ((3-1)^2 + 1^2) / 2.
TEST(TrainSlots, SparseSlotsHaveALod) {
  const Clicks clicks;
  clicks.Write("1 1.0 3 1 2 3\n1 0.0 1 9\n");
  const CommandResult result = clicks.Train({"--steps", "1", "--slots", "label,ids", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["fetches"][0]["mean"], 2.5);
}

TEST(TrainSlots, SlotsThatNobodyFeedsAreReadOver) {
  const Clicks clicks;
  clicks.Write("2 7 7.5 3 1 2 3 1 1.0 1 5\n2 8 8.5 1 9 1 0.0 3 5 6 7\n");
  const CommandResult result =
      clicks.Train({"--steps", "40", "--slots", "price,ids,label,other", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(nlohmann::json::parse(result.out)["fetches"][0]["mean"].get<double>(), 0.01);
}

TEST(TrainSlots, GoesOnToTheSameBits) {
  const Clicks clicks;
  std::string text;
  for (int i = 0; i < 11; ++i) {
    text += "1 0." + std::to_string(i % 10) + " " + (i % 2 == 0 ? "1 " : "2 5 ") +
            std::to_string(i % 9) + "\n";
  }
  clicks.Write(text);
  const auto train = [&](const std::string& steps, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--steps",   steps,    "--slots",
                                    "label,ids", "--save", clicks / (steps + ".npz")};
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(clicks.Train(all).exit_code, 0);
    return ReadFile(clicks / (steps + ".npz")).value_or("none");
  };
  const std::string whole = train("17", {});
  train("5", {"--checkpoint", clicks / "state", "--resume"});
  EXPECT_EQ(train("17", {"--checkpoint", clicks / "state", "--resume"}), whole);
}

// Sequences of different lengths, some in one share and some in another.
TEST(TrainSlots, SequencesAreCutIntoShares) {
  const Clicks clicks;
  clicks.Write("1 1.0 3 1 2 3\n1 0.0 1 9\n1 0.5 2 4 1\n1 0.25 4 9 1 5 6\n1 0.0 1 7\n");
  const auto train = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--steps",   "8",      "--slots",
                                    "label,ids", "--save", clicks / (name + ".npz")};
    all.insert(all.end(), more.begin(), more.end());
    const CommandResult result = clicks.Train(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto saved = ReadNpz(clicks / (name + ".npz"), 1 << 20);
    EXPECT_TRUE(saved.ok()) << saved.status();
    if (!saved.ok()) return std::vector<float>();
    const Tensor& w = (*saved)[0].second;
    return std::vector<float>(w.data<float>(), w.data<float>() + w.numel());
  };
  const std::vector<float> whole = train("whole", {});
  EXPECT_THAT(train("micro", {"--micro-batches", "2"}), Pointwise(FloatNear(1e-6F), whole));
  EXPECT_THAT(train("replicas", {"--replicas", "2"}), Pointwise(FloatNear(1e-6F), whole));
}

TEST(TrainSlots, SaysWhatIsWrong) {
  const Clicks clicks;
  clicks.Write("1 1.0 3 1 2 3\n1 0.0 1\n");
  const auto error = [&](const std::vector<std::string>& more) {
    const CommandResult result = clicks.Train(more);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(error({"--slots", "label,ids"}),
              HasSubstr("a.slot: line 2: slot 'ids': says 1 values, which the line does not have"));
  EXPECT_THAT(error({"--slots", "label,id"}), HasSubstr("--slots: none is for feed 'ids'"));
  EXPECT_THAT(error({"--slots", "label,ids,ids"}), HasSubstr("'ids' is there twice"));
  EXPECT_THAT(error({"--data", clicks / "x.npz"}), HasSubstr("cannot be mixed with other data"));
  EXPECT_THAT(error({"--slots", "label,ids", "--max-file-memory", "16"}), HasSubstr("a.slot"));
  EXPECT_THAT(error({"--data", "ids=b.slot"}), HasSubstr("without 'ids='"));
  clicks.Write("\n");
  EXPECT_THAT(error({"--slots", "label,ids"}), HasSubstr("there are no samples"));
}

}  // namespace
}  // namespace interp::testing
