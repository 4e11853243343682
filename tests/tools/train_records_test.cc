// interp train --data FILE.rec: pictures of record files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/image/encode.h"
#include "core/io/file.h"
#include "core/io/image_record.h"
#include "core/io/record_file.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A line through the mean brightness of pictures of 10 x 8 pixels, cut to 6 x 6 at random: the
// label is how bright a picture is in tenths.
class Brightness {
 public:
  explicit Brightness(int count = 60) {
    std::ofstream(folder_ / "startup.txt")
        << "program version=0\n"
           "block 0\n"
           "  var w float32[1,1] persistable\n"
           "  var lr float32[1] persistable\n"
           "  fill_constant() -> (Out=w) {dtype=5, shape=longs:[1,1], value=1.0}\n"
           "  fill_constant() -> (Out=lr) {dtype=5, shape=longs:[1], value=0.5}\n";
    std::ofstream(main()) << Forward()
                          << "  matmul_v2(X=m, Y=d) -> (Out=g) {trans_x=true}\n"
                             "  scale(X=g) -> (Out=gm) {scale=0.1}\n"
                             "  sgd(Param=w, Grad=gm, LearningRate=lr) -> "
                             "(ParamOut=w)\n";
    std::ofstream(folder_ / "eval.txt") << Forward();
    WriteRecords(count);
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  std::string main() const { return folder_ / "main.txt"; }
  std::string data() const { return folder_ / "data.rec"; }

  std::vector<std::string> Arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {
        "train",        main(), "--startup", folder_ / "startup.txt",
        "--data",       data(), "--fetch",   "loss",
        "--batch-size", "8",    "--image",   "fit=random,resize=no,mirror=random"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  CommandResult Train(const std::vector<std::string>& more) const {
    return RunInterp(Arguments(more));
  }

 private:
  static std::string Forward() {
    return "program version=0\n"
           "block 0\n"
           "  var w float32[1,1] persistable\n"
           "  var lr float32[1] persistable\n"
           "  var x float32[-1,3,6,6] check_feed\n"
           "  var y float32[-1,1] check_feed\n"
           "  reduce_mean(X=x) -> (Out=flat) {dim=[1, 2, 3]}\n"
           "  reshape2(X=flat) -> (Out=m) {shape=[-1, 1]}\n"
           "  mul(X=m, Y=w) -> (Out=p)\n"
           "  elementwise_sub(X=p, Y=y) -> (Out=d)\n"
           "  square(X=d) -> (Out=s)\n"
           "  reduce_mean(X=s) -> (Out=loss) {reduce_all=true}\n";
  }
  void WriteRecords(int count) {
    RecordWriter writer = RecordWriter::Create(data()).value();
    for (int i = 0; i < count; ++i) {
      Picture<uint8_t> picture{10, 8};
      for (int p = 0; p < 10 * 8 * 3; ++p) {
        picture.pixels.push_back(static_cast<uint8_t>((i % 10) * 20 + p % 7));
      }
      const std::string png = EncodePng(picture).value();
      const std::string payload = FormatImageRecord({.labels = {static_cast<float>(i % 10) / 10},
                                                     .id = static_cast<uint64_t>(i),
                                                     .id2 = 0,
                                                     .picture = png});
      ASSERT_TRUE(writer.Append(i, payload).ok());
    }
    ASSERT_TRUE(writer.Commit().ok());
  }

  TemporaryFolder folder_;
};

std::string Read(const std::string& path) { return ReadFile(path).value_or("no file"); }

TEST(TrainRecords, TheLossFalls) {
  const Brightness net;
  const CommandResult result = net.Train(
      {"--epochs", "30", "--json", "--eval", net / "eval.txt", "--eval-data", net.data()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["steps"], 30 * 8);
  EXPECT_EQ(report["skipped_samples"], 0);
  EXPECT_LT(report["evaluation"][0]["mean"].get<double>(), 0.02);
}

TEST(TrainRecords, ThreadsAndTheIndexChangeNoBits) {
  const Brightness net;
  const auto train = [&](const std::string& name, const std::vector<std::string>& more,
                         const std::string& seed = "7") {
    std::vector<std::string> all = {"--steps", "40", "--seed", seed, "--save", net / name};
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(net.Train(all).exit_code, 0);
    return Read(net / name);
  };
  const std::string one = train("one.npz", {"--decode-threads", "1"});
  EXPECT_EQ(train("four.npz", {"--decode-threads", "4"}), one);
  EXPECT_NE(train("other.npz", {}, "8"), one);
  std::filesystem::remove(net / "data.idx");
  EXPECT_EQ(train("walked.npz", {}), one);
  EXPECT_EQ(train("skipping.npz", {"--skip-damaged"}), one);
}

TEST(TrainRecords, GoesOnToTheSameBits) {
  const Brightness net;
  const std::vector<std::string> order = {
      "--shuffle-block", "4", "--shuffle-buffer", "10",          "--num-parts", "2",
      "--part-index",    "1", "--checkpoint",     net / "state", "--resume"};
  const auto train = [&](const std::string& steps, std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", steps, "--save", net / (steps + ".npz")});
    const CommandResult result = net.Train(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Read(net / (steps + ".npz"));
  };
  for (const char* steps : {"3", "4", "9"}) train(steps, order);
  const std::string resumed = train("23", order);
  const std::vector<std::string> whole(order.begin(), order.end() - 3);
  EXPECT_EQ(train("23", whole), resumed);
  std::vector<std::string> other = order;
  other[7] = "0";
  const CommandResult refused = net.Train(other);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("was written with part 1, and now part is 0"));
}

TEST(TrainRecords, PartsTogetherAreTheWhole) {
  const Brightness net(11);
  int64_t samples = 0;
  for (int i = 0; i < 14; ++i) {
    const CommandResult result =
        net.Train({"--num-parts", "14", "--part-index", std::to_string(i), "--json"});
    if (result.exit_code == 0) {
      samples += nlohmann::json::parse(result.out)["steps"].get<int64_t>();
    } else {
      EXPECT_THAT(result.err, HasSubstr("of 14 has none of the 11 samples"));
    }
  }
  EXPECT_EQ(samples, 11);
}

TEST(TrainRecords, DamageIsAnErrorOrCounted) {
  const Brightness net(20);
  const RecordFile file = RecordFile::Open(net.data()).value();
  {
    std::fstream bytes(net.data(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<int64_t>(file.places()[3].offset)) << "x";        // its magic number
    bytes.seekp(static_cast<int64_t>(file.places()[12].offset) + 60) << "x";  // in the picture
  }
  const std::string at = std::to_string(file.places()[3].offset);
  const CommandResult stopped = net.Train({"--no-shuffle"});
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("data.rec: byte " + at + ": no record"));
  const CommandResult skipped = net.Train({"--epochs", "2", "--skip-damaged"});
  ASSERT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("damaged bytes in 1 place; the first: byte " + at));
  EXPECT_THAT(skipped.out, HasSubstr("skipped   2 damaged samples"));
}

// The second batch cannot be read.
TEST(TrainRecords, DamageLosesNoSteps) {
  const Brightness net(20);
  const std::string whole = Read(net.data());
  const int64_t picture =
      static_cast<int64_t>(RecordFile::Open(net.data()).value().places()[12].offset) + 60;
  const auto train = [&](const std::string& name) {
    return net.Train(
        {"--no-shuffle", "--checkpoint", net / name, "--resume", "--save", net / (name + ".npz")});
  };
  {
    std::fstream bytes(net.data(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(picture) << "x";
  }
  const CommandResult stopped = train("parts");
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("; --resume goes on after step 1"));
  EXPECT_TRUE(std::filesystem::exists(net / "parts/step-1/state.txt"));
  std::ofstream(net.data(), std::ios::binary) << whole;
  ASSERT_EQ(train("parts").exit_code, 0);
  ASSERT_EQ(train("whole").exit_code, 0);
  EXPECT_EQ(Read(net / "parts.npz"), Read(net / "whole.npz"));
}

// Of samples one by one the damaged ones have no step, and neither has the last.
TEST(TrainRecords, BatchesWithoutAWholeSampleAreLeftOut) {
  const Brightness net(5);
  const RecordFile file = RecordFile::Open(net.data()).value();
  {
    std::fstream bytes(net.data(), std::ios::in | std::ios::out | std::ios::binary);
    for (const int i : {1, 4}) {
      bytes.seekp(static_cast<int64_t>(file.places()[i].offset) + 60) << "x";
    }
  }
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--no-shuffle", "--skip-damaged", "--json", "--eval", net / "eval.txt",
                             "--eval-data", net.data()});
    std::vector<std::string> all = net.Arguments(more);
    *std::ranges::find(all, "8") = "1";  // --batch-size
    const CommandResult result = RunInterp(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const auto epochs = train({"--epochs", "2", "--checkpoint", net / "state"});
  EXPECT_EQ(epochs["steps"], 6);
  EXPECT_EQ(epochs["epochs"], 2);
  EXPECT_EQ(epochs["skipped_samples"], 4);
  EXPECT_EQ(epochs["skipped_evaluation_samples"], 2);
  EXPECT_GT(epochs["evaluation"][0]["mean"].get<double>(), 0);
  EXPECT_EQ(train({"--epochs", "2", "--checkpoint", net / "state", "--resume"})["steps"], 6);
  EXPECT_EQ(train({"--epochs", "3", "--checkpoint", net / "state", "--resume"})["steps"], 9);
  // What is made ahead is not counted.
  const auto steps = train({"--steps", "3"});
  EXPECT_EQ(steps["steps"], 3);
  EXPECT_EQ(steps["skipped_samples"], 1);
}

// The flag is for the program that is trained.
TEST(TrainRecords, AnEvaluationMayFeedLess) {
  const Brightness net(9);
  std::ofstream(net / "mean.txt") << "program version=0\n"
                                     "block 0\n"
                                     "  var x float32[-1,3,6,6] check_feed\n"
                                     "  reduce_mean(X=x) -> (Out=loss) {reduce_all=true}\n";
  const CommandResult result = net.Train({"--label-feed", "y", "--image-feed", "x", "--eval",
                                          net / "mean.txt", "--eval-data", net.data()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("evaluated loss 0.3"));
}

TEST(TrainRecords, WhatAnIndexLeavesOutIsTold) {
  const Brightness net(9);
  const RecordFile file = RecordFile::Open(net.data()).value();
  std::ofstream(net / "data.idx") << "0\t0\n1\t" << file.places()[1].offset << "\n";
  const CommandResult result = net.Train({"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("data.rec: the index names no record in bytes " +
                                    std::to_string(file.places()[2].offset) + " to "));
}

TEST(TrainRecords, SaysWhatIsWrong) {
  const Brightness net(5);
  const auto error = [&](const std::vector<std::string>& more) {
    const CommandResult result = net.Train(more);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(error({"--image-feed", "z"}), HasSubstr("--image-feed: no feed is named 'z'"));
  EXPECT_THAT(error({"--label-feed", "x"}), HasSubstr("'x' is the feed of the pictures"));
  EXPECT_THAT(error({"--image", "crop=random"}), HasSubstr("--image: crop: no option is named"));
  EXPECT_THAT(error({"--image", "size"}), HasSubstr("--image: expected OPTION=VALUE"));
  EXPECT_THAT(error({"--image", "size=7"}), HasSubstr("takes no pictures of [3,7,7]"));
  EXPECT_THAT(error({"--image", "area=0.5/2"}), HasSubstr("area: expected LOW/HIGH"));
  EXPECT_THAT(error({"--image", "fit=stretch"}),
              HasSubstr("resize has no effect without fit=crop"));
  EXPECT_THAT(error({"--image", "aspect=0.5/1"}), HasSubstr("aspect has no effect without area"));
  EXPECT_THAT(error({"--image", "color=gray,mean=1/2/3"}),
              HasSubstr("expected one number for color=gray"));
  EXPECT_THAT(error({"--data", "x=" + net.data()}), HasSubstr("without 'x='"));
  EXPECT_THAT(error({"--part-index", "1"}), HasSubstr("no effect without --num-parts"));
  EXPECT_THAT(error({"--num-parts", "1", "--part-index", "1"}),
              HasSubstr("--part-index 1 of --num-parts 1"));
  EXPECT_THAT(error({"--no-shuffle", "--shuffle-block", "2"}), HasSubstr("no effect with"));
  EXPECT_THAT(error({"--data", net / "none.npz"}), HasSubstr("cannot be mixed with other data"));
  EXPECT_THAT(error({"--data", net / "none.rec"}), HasSubstr("cannot open"));
  const CommandResult useless = RunInterp({"train", net.main(), "--startup", net.main(), "--data",
                                           "x.npz", "--batch-size", "8", "--decode-threads", "2"});
  EXPECT_THAT(useless.err, StartsWith("--decode-threads has no effect without --data FILE.rec"));
}

}  // namespace
}  // namespace interp::testing
