// Commands as several processes under mpirun, and what they train.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/io/file.h"
#include "core/io/npz.h"
#include "tests/testing/command.h"
#include "tests/testing/sample.h"
#include "tools/examples/digits.h"

namespace interp::testing {

inline constexpr char kMpirun[] = "/usr/bin/mpirun";

inline bool HasMpi() {
  return std::filesystem::exists(INTERP_BINARY_DIR "/libinterp_mpi.so") &&
         std::filesystem::exists(kMpirun);
}

#define SKIP_WITHOUT_MPI()                                                                      \
  if (!HasMpi()) {                                                                              \
    GTEST_SKIP() << "no MPI: install openmpi-bin and libopenmpi-dev, then configure";           \
  }                                                                                             \
  if (kSanitized) {                                                                             \
    GTEST_SKIP() << "MPI itself is not built for sanitizers, which report its leaks and races"; \
  }

inline std::vector<std::string> RanksOf(int count, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"--allow-run-as-root", "--oversubscribe", "-n"};
  all.push_back(std::to_string(count));
  all.emplace_back(INTERP_BINARY_DIR "/interp");
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

inline CommandResult RunRanks(int count, const std::vector<std::string>& arguments) {
  return RunProgram(kMpirun, RanksOf(count, arguments));
}

inline std::string Read(const std::string& path) { return ReadFile(path).value_or("no file"); }

// A program that sums x over ring 0 to y.
inline void WriteSumProgram(const std::string& path) {
  std::ofstream(path) << "program version=0\n"
                         "block 0\n"
                         "  var x float32[2] check_feed\n"
                         "  var y float32[2]\n"
                         "  c_allreduce_sum(X=x) -> (Out=y) {ring_id=0}\n";
}

// The column behind the step of a log.
inline std::vector<double> Losses(const std::string& path) {
  std::istringstream lines(Read(path));
  std::string line;
  std::getline(lines, line);
  std::vector<double> losses;
  while (std::getline(lines, line)) losses.push_back(std::atof(line.c_str() + line.find(',') + 1));
  return losses;
}

// A training program with its data, in a folder.
class Training {
 public:
  // Clicks: an embedding whose gradient is sparse, and two layers.
  static std::unique_ptr<Training> OfClicks() {
    auto training = std::make_unique<Training>();
    const std::string vars =
        "program version=0\n"
        "block 0\n"
        "  var table float32[50,8] param\n"
        "  var w1 float32[8,6] param\n"
        "  var w2 float32[6,1] param\n";
    std::ofstream(*training / "forward.txt")
        << vars
        << "  var ids int64[-1] check_feed\n"
           "  var y float32[-1,1] check_feed\n"
           "  var e float32[-1,8]\n"
           "  var h float32[-1,6]\n"
           "  var r float32[-1,6]\n"
           "  var p float32[-1,1]\n"
           "  var s float32[-1,1]\n"
           "  var loss float32[1]\n"
           "  lookup_table_v2(W=table, Ids=ids) -> (Out=e) {is_sparse=true, padding_idx=-1}\n"
           "  matmul_v2(X=e, Y=w1) -> (Out=h)\n"
           "  tanh(X=h) -> (Out=r)\n"
           "  matmul_v2(X=r, Y=w2) -> (Out=p)\n"
           "  sigmoid_cross_entropy_with_logits(X=p, Label=y) -> (Out=s)\n"
           "  mean(X=s) -> (Out=loss)\n";
    std::ofstream(*training / "startup.txt")
        << vars << Uniform("table", "50,8") << Uniform("w1", "8,6") << Uniform("w2", "6,1");
    std::vector<int64_t> ids;
    std::vector<float> labels;
    for (int i = 0; i < 200; ++i) {
      ids.push_back(i * 7 % 50);
      labels.push_back(static_cast<float>(ids.back() % 3 == 0));
    }
    training->Prepare(
        ".txt", "loss", "sgd:learning_rate=0.5",
        {{"ids", Tensor::Of<int64_t>({200}, ids)}, {"y", Tensor::Of<float>({200, 1}, labels)}});
    return training;
  }

  static std::unique_ptr<Training> OfLeNet() {
    auto training = std::make_unique<Training>();
    EXPECT_EQ(RunProgram("examples/train_lenet", {"--save", *training / ""}).exit_code, 0);
    const auto digits = examples::DrawDigits(200, /*seed=*/1);
    EXPECT_TRUE(digits.ok());
    training->Prepare(".pdmodel", "mean_0.tmp_0", "momentum:learning_rate=0.01",
                      {{"image", digits->images}, {"label", digits->labels}});
    return training;
  }

  std::string operator/(const std::string& name) const { return folder_ / name; }

  // Of one command line; files that it writes start with `name`.
  std::vector<std::string> Arguments(const std::string& name,
                                     const std::vector<std::string>& more) const {
    const std::string prefix = *this / name;
    std::vector<std::string> all = {"train",        *this / "train.pdmodel",
                                    "--startup",    *this / "first.pdmodel",
                                    "--data",       *this / "data.npz",
                                    "--fetch",      loss_,
                                    "--batch-size", "17",
                                    "--threads",    "1",
                                    "--log",        prefix + ".csv",
                                    "--save",       prefix + ".npz"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

 private:
  static std::string Uniform(const std::string& name, const std::string& shape) {
    return "  uniform_random() -> (Out=" + name + ") {dtype=5, shape=longs:[" + shape +
           "], min=-0.5, max=0.5, seed=" + std::to_string(name.size()) + "}\n";
  }
  // With forward.EXTENSION and startup.EXTENSION, which are there.
  void Prepare(const std::string& extension, const std::string& loss, const std::string& optimizer,
               const std::vector<NamedTensor>& data) {
    loss_ = loss;
    EXPECT_TRUE(WriteNpz(*this / "data.npz", data).ok());
    const CommandResult made =
        RunInterp({"backward", *this / ("forward" + extension), "--loss", loss, "--optimizer",
                   optimizer, "--startup-from", *this / ("startup" + extension), "--startup",
                   *this / "first.pdmodel", "-o", *this / "train.pdmodel"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }

  TemporaryFolder folder_;
  std::string loss_;
};

}  // namespace interp::testing
