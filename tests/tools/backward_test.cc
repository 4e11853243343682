// interp backward: a training program from a forward program, and what can be done with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/io/npz.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

// A network of two layers whose parameters a startup program makes.
class Network {
 public:
  Network() {
    std::ofstream(forward()) << "program version=2006002\n"
                                "block 0\n"
                                "  var x float32[-1,2] check_feed stop_gradient\n"
                                "  var y float32[-1,1] check_feed stop_gradient\n"
                                "  var v float32[2,4] param\n"
                                "  var w float32[4,1] param\n"
                                "  var h float32[-1,4]\n"
                                "  var a float32[-1,4]\n"
                                "  var p float32[-1,1]\n"
                                "  var d float32[-1,1]\n"
                                "  var s float32[-1,1]\n"
                                "  var loss float32[]\n"
                                "  mul(X=x, Y=v) -> (Out=h)\n"
                                "  tanh(X=h) -> (Out=a)\n"
                                "  mul(X=a, Y=w) -> (Out=p)\n"
                                "  elementwise_sub(X=p, Y=y) -> (Out=d) {axis=-1}\n"
                                "  square(X=d) -> (Out=s)\n"
                                "  reduce_mean(X=s) -> (Out=loss) {reduce_all=true}\n";
    std::ofstream(made()) << "program version=2006002\n"
                             "block 0\n"
                             "  var v float32[2,4] param\n"
                             "  var w float32[4,1] param\n"
                             "  uniform_random() -> (Out=v) {shape=longs:[2,4], dtype=5, seed=1}\n"
                             "  uniform_random() -> (Out=w) {shape=longs:[4,1], dtype=5, seed=2}\n";
    std::vector<float> x;
    std::vector<float> y;
    for (int i = 0; i < 64; ++i) {
      x.insert(x.end(), {static_cast<float>(i % 8) / 8, static_cast<float>(i / 8) / 8});
      y.push_back(x[x.size() - 2] - x.back());
    }
    EXPECT_TRUE(WriteNpz(data(), {{"x", Tensor::Of<float>(Shape{64, 2}, x)},
                                  {"y", Tensor::Of<float>(Shape{64, 1}, y)}})
                    .ok());
  }
  std::string forward() const { return folder_ / "forward.txt"; }
  std::string made() const { return folder_ / "made.txt"; }
  std::string data() const { return folder_ / "data.npz"; }
  std::string main() const { return folder_ / "main.pdmodel"; }
  std::string startup() const { return folder_ / "startup.pdmodel"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }

  CommandResult Backward(const std::string& optimizer, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "backward", forward(), "--loss",    "loss",    "--optimizer",    optimizer,
        "-o",       main(),    "--startup", startup(), "--startup-from", made()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunInterp(arguments);
  }

 private:
  TemporaryFolder folder_;
};

double LossAfter(const Network& network, int steps) {
  const CommandResult trained =
      RunInterp({"train", network.main(), "--startup", network.startup(), "--data", network.data(),
                 "--batch-size", "64", "--steps", std::to_string(steps), "--json"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  return nlohmann::json::parse(trained.out)["fetches"][0]["mean"];
}

TEST(Backward, WhatItWritesTrains) {
  const Network network;
  for (const std::string optimizer :
       {"sgd:learning_rate=0.1", "momentum:learning_rate=0.05,momentum=0.9,use_nesterov=true",
        "adam:learning_rate=0.01,beta1=0.9", "adamw:learning_rate=0.01,weight_decay=0.01"}) {
    const CommandResult made = network.Backward(optimizer);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("6 forward, 7 backward"));
    EXPECT_THAT(made.out, HasSubstr("2 parameters"));
    EXPECT_LT(LossAfter(network, 200), LossAfter(network, 1) / 4) << optimizer;
  }
}

TEST(Backward, SegmentsAreComputedAgainToTheSameNumbers) {
  const Network network;
  ASSERT_EQ(network.Backward("sgd:learning_rate=0.1").exit_code, 0);
  const double want = LossAfter(network, 20);
  const CommandResult made = network.Backward("sgd:learning_rate=0.1", {"--checkpoints", "p"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("2 ops computed again"));
  EXPECT_EQ(LossAfter(network, 20), want);
}

TEST(Backward, DumpsShowThePartsOfAStep) {
  const Network network;
  ASSERT_EQ(network.Backward("sgd:learning_rate=0.1").exit_code, 0);
  const CommandResult dump =
      RunInterp({"dump", network.main(), "--stage=plan", "--format=json", "--no-prune"});
  ASSERT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_THAT(dump.out, HasSubstr("\"part\":\"backward\""));
  EXPECT_THAT(dump.out, HasSubstr("\"part\":\"update\""));
}

// Replicas cut it there.
TEST(Backward, TextKeepsThePartsOfAStep) {
  const Network network;
  ASSERT_EQ(network.Backward("sgd:learning_rate=0.1").exit_code, 0);
  const CommandResult made =
      RunInterp({"backward", network.forward(), "--loss", "loss", "--optimizer",
                 "sgd:learning_rate=0.1", "-o", network / "main.txt"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const CommandResult trained = RunInterp(
      {"train", network / "main.txt", "--startup", network.startup(), "--data", network.data(),
       "--batch-size", "16", "--steps", "2", "--replicas", "2", "--fetch", "loss"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

TEST(Backward, SaysWhatIsWrongAndWritesNothing) {
  const Network network;
  const auto error = [&](const std::string& optimizer, const std::vector<std::string>& more) {
    const CommandResult result = network.Backward(optimizer, more);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(network.main()));
    return result.err;
  };
  EXPECT_THAT(error("adm", {}), HasSubstr("nearest: 'adam"));
  EXPECT_THAT(error("sgd:lr=1", {}), HasSubstr("lr"));
  EXPECT_THAT(error("sgd:learning_rate=x", {}), HasSubstr("'x'"));
  EXPECT_THAT(error("sgd", {"--no-grad", "nobody"}), HasSubstr("nobody"));
  EXPECT_THAT(error("sgd", {"--checkpoints", "nobody"}), HasSubstr("nobody"));
  EXPECT_THAT(error("sgd", {"--no-grad", "p"}), HasSubstr("depends on none of the 2 parameters"));
}

// A table that is copied before it is read.
std::string Lookup(const std::string& copy) {
  return "program version=0\n"
         "block 0\n"
         "  var table float32[50,4] param\n"
         "  var copy float32[50,4]\n"
         "  var ids int64[-1] check_feed\n"
         "  var e float32[-1,4]\n"
         "  var loss float32[1]\n" +
         copy +
         "  lookup_table_v2(W=copy, Ids=ids) -> (Out=e) {is_sparse=true, padding_idx=-1}\n"
         "  mean(X=e) -> (Out=loss)\n";
}

TEST(Backward, SparseGradientsGoOnWhereOpsTakeThem) {
  const TemporaryFolder folder;
  std::ofstream(folder / "made.txt")
      << "program version=0\nblock 0\n  var table float32[50,4] param\n"
         "  fill_constant() -> (Out=table) {shape=longs:[50,4], value=1.0, dtype=5}\n";
  ASSERT_TRUE(
      WriteNpz(folder / "data.npz", {{"ids", Tensor::Of<int64_t>({4}, {1, 1, 3, 7})}}).ok());
  const auto backward = [&](const std::string& copy) {
    std::ofstream(folder / "forward.txt") << Lookup(copy);
    return RunInterp({"backward", folder / "forward.txt", "--loss", "loss", "--optimizer",
                      "sgd:learning_rate=0.5", "--startup-from", folder / "made.txt", "--startup",
                      folder / "startup.pdmodel", "-o", folder / "main.pdmodel"});
  };
  for (const std::string copy :
       {"  assign(X=table) -> (Out=copy)\n", "  scale(X=table) -> (Out=copy) {scale=2.0}\n"}) {
    const CommandResult made = backward(copy);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const CommandResult result =
        RunInterp({"train", folder / "main.pdmodel", "--startup", folder / "startup.pdmodel",
                   "--data", folder / "data.npz", "--batch-size", "4", "--epochs", "5"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  const CommandResult refused = backward("  tanh(X=table) -> (Out=copy)\n");
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err, HasSubstr("op tanh_grad reads 'copy@GRAD', which is sparse: set "
                                     "is_sparse to false where 'copy' is read"));
}

}  // namespace
}  // namespace interp::testing
