// interp train: programs whose batches came through create_py_reader and read, beside Paddle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"
#include "core/io/npz.h"
#include "tests/testing/command.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kBatch[] = "4";  // of make_reader_cases.py
constexpr int kPasses = 2;

std::string CaseFolder(const std::string& name) {
  return INTERP_BINARY_DIR "/goldens/reader/programs/" + name;
}

// The rows of the batches of one pass, one behind the other.
Tensor Rows(const GoldenProgram& golden, size_t feed) {
  const size_t steps = golden.steps.size() / kPasses;
  const Tensor& first = golden.steps[0].feeds[feed].second;
  Shape shape = first.shape;
  shape[0] = 0;
  for (size_t k = 0; k < steps; ++k) shape[0] += golden.steps[k].feeds[feed].second.shape[0];
  Tensor rows;
  rows.dtype = first.dtype;
  rows.shape = shape;
  EXPECT_THAT(rows.Allocate(SystemAllocator()), IsOk());
  char* to = static_cast<char*>(rows.mutable_raw_data());
  for (size_t k = 0; k < steps; ++k) {
    const Tensor& batch = golden.steps[k].feeds[feed].second;
    std::memcpy(to, batch.raw_data(), batch.size_bytes());
    to += batch.size_bytes();
  }
  return rows;
}

// One case of make_reader_cases.py and its samples as a file.
class ReaderCase {
 public:
  explicit ReaderCase(const std::string& name) : source_(CaseFolder(name)) {
    golden = *ReadGoldenProgram(source_);
    EXPECT_THAT(WriteNpz(folder_ / "first.npz", golden.initial), IsOk());
    std::vector<NamedTensor> samples;
    const std::vector<NamedTensor>& feeds = golden.steps[0].feeds;
    for (size_t i = 0; i < feeds.size(); ++i) samples.emplace_back(feeds[i].first, Rows(golden, i));
    EXPECT_THAT(WriteNpz(data(), samples), IsOk());
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  std::string data() const { return folder_ / "data.npz"; }

  CommandResult Train(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {
        "train",    source_ + "/main.pb",  "--startup",    source_ + "/startup.pb",
        "--params", folder_ / "first.npz", "--batch-size", kBatch,
        "--epochs", absl::StrCat(kPasses), "--fetch",      golden.loss,
        "--log",    folder_ / "log.csv",   "--no-shuffle"};
    all.insert(all.end(), more.begin(), more.end());
    return RunInterp(all);
  }
  // The losses that are logged are those of Paddle, which ran until its readers were at their end.
  void ExpectLosses() const {
    const std::vector<std::string> lines =
        absl::StrSplit(ReadFile(folder_ / "log.csv").value_or(""), '\n', absl::SkipEmpty());
    ASSERT_EQ(lines.size(), golden.steps.size() + 1);
    for (size_t k = 0; k < golden.steps.size(); ++k) {
      const std::vector<std::string> columns = absl::StrSplit(lines[k + 1], ',');
      double loss = 0;
      ASSERT_TRUE(absl::SimpleAtod(columns.at(1), &loss)) << lines[k + 1];
      EXPECT_NEAR(loss, golden.steps[k].fetches[0].second.data<float>()[0], 1e-5) << lines[k + 1];
    }
  }
  std::string source(const std::string& file) const { return source_ + "/" + file; }

  GoldenProgram golden;

 private:
  std::string source_;
  TemporaryFolder folder_;
};

class TrainReaders : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainReaders, AgreesWithPaddle) {
  const ReaderCase readers(GetParam());
  const CommandResult result = readers.Train({"--data", readers.data()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  readers.ExpectLosses();
}

INSTANTIATE_TEST_SUITE_P(Goldens, TrainReaders,
                         ::testing::Values("double_buffer", "no_double_buffer", "reader_of_startup",
                                           "three_variables"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TrainReaders, FeedsWordsWithTheirLod) {
  const ReaderCase readers("words_with_lod");
  std::ofstream text(readers / "a.slot");
  for (size_t k = 0; k < readers.golden.steps.size() / kPasses; ++k) {
    const Tensor& ids = readers.golden.steps[k].feeds[0].second;
    const Tensor& y = readers.golden.steps[k].feeds[1].second;
    const std::vector<size_t> lod(ids.lod.at(0).begin(), ids.lod.at(0).end());
    for (size_t s = 0; s + 1 < lod.size(); ++s) {
      text << lod[s + 1] - lod[s];
      for (size_t i = lod[s]; i < lod[s + 1]; ++i) text << " " << ids.data<int64_t>()[i];
      text << absl::StrFormat(" 1 %.9g\n", y.data<float>()[s]);
    }
  }
  text.close();
  const CommandResult result = readers.Train({"--data", readers / "a.slot"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  readers.ExpectLosses();
}

// Before a program is cut, its readers are gone.
TEST(TrainReaders, ReplicasAndMicroBatchesTrainTheSame) {
  const ReaderCase readers("double_buffer");
  for (const char* flag : {"--replicas", "--micro-batches"}) {
    const CommandResult result = readers.Train({"--data", readers.data(), flag, "2"});
    ASSERT_EQ(result.exit_code, 0) << flag << ": " << result.err;
    readers.ExpectLosses();
  }
}

TEST(TrainReaders, EvaluatesThroughReaders) {
  const ReaderCase readers("double_buffer");
  const CommandResult result =
      readers.Train({"--data", readers.data(), "--eval", readers.source("forward.pb"),
                     "--eval-data", readers.data()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("evaluated " + readers.golden.loss));
}

TEST(TrainReaders, SaysWhatIsWrongWithBatches) {
  const ReaderCase readers("double_buffer");
  const auto error = [&](const NamedTensor& x, const NamedTensor& y) {
    EXPECT_THAT(WriteNpz(readers / "bad.npz", {x, y}), IsOk());
    const CommandResult result = readers.Train({"--data", readers / "bad.npz"});
    EXPECT_NE(result.exit_code, 0);
    return result.err;
  };
  const NamedTensor x = {"x", Tensor::Of<float>({2, 4}, std::vector<float>(8))};
  const NamedTensor y = {"y", Tensor::Of<int64_t>({2, 1}, std::vector<int64_t>(2))};
  EXPECT_THAT(error({"x", Tensor::Of<float>({2, 5}, std::vector<float>(10))}, y),
              HasSubstr("array 'x': has samples of 5 elements (shape [2,5]), expected [-1,4]"));
  EXPECT_THAT(error(x, {"y", Tensor::Of<float>({2, 1}, std::vector<float>{0.5, 1})}),
              HasSubstr("array 'y': element 0 is 0.5, which is no int64"));
  EXPECT_THAT(error(x, {"z", y.second}),
              HasSubstr("no array for feed 'y' int64[-1,1], there are: x z"));
}

TEST(TrainReaders, RunsNeedWhatReadersGive) {
  const ReaderCase readers("double_buffer");
  const CommandResult nothing =
      RunInterp({"run", readers.source("main.pb"), "--params", readers / "first.npz", "--fetch",
                 readers.golden.loss, "--feed", "x=random:2x4"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("nothing is fed to 'y' int64[-1,1]"));
}

TEST(TrainReaders, RefusesASecondReadOfOneReader) {
  const ReaderCase readers("double_buffer");
  std::ofstream(readers / "twice.txt") << "program version=0\n"
                                          "block 0\n"
                                          "  var r reader persistable\n"
                                          "  var a float32[-1,4] check_feed\n"
                                          "  var b float32[-1,4] check_feed\n"
                                          "  var c float32[-1,4]\n"
                                          "  create_py_reader(blocking_queue=q) -> (Out=r)\n"
                                          "  read(Reader=r) -> (Out=a)\n"
                                          "  read(Reader=r) -> (Out=b)\n"
                                          "  elementwise_add(X=a, Y=b) -> (Out=c)\n";
  const CommandResult result =
      RunInterp({"train", readers / "twice.txt", "--params", readers / "first.npz", "--data",
                 readers.data(), "--fetch", "c", "--batch-size", "2"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("block 0, op #2 read: op #1 has read a batch of 'r' already"));
}

}  // namespace
}  // namespace interp::testing
