// What people get wrong: tests/tools/misuse.txt has a row for each, with the exit code and what the
// message must say. Every message is one line, and nothing is left in the folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/image/encode.h"
#include "core/io/file.h"
#include "core/io/npy.h"
#include "core/io/npz.h"
#include "core/io/params.h"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

const std::string kSource = INTERP_SOURCE_DIR;

void Write(const std::string& path, absl::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string Text(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.value_or("");
}

// A .npy file with this header and nothing behind it.
std::string NpyHeader(std::string header) {
  header.resize(118, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
}

void WritePrograms() {
  Write("relu.txt",
        "program version=0\nblock 0\n  var x float32[-1,2]\n  var y float32[-1,2]\n"
        "  relu(X=x) -> (Out=y)\n");
  Write("picture.txt",
        "program version=0\nblock 0\n  var x float32[-1,3,-1,-1]\n  var y float32[-1,3,-1,-1]\n"
        "  relu(X=x) -> (Out=y)\n");
  Write("log.txt",
        "program version=0\nblock 0\n  var x float32[-1,2]\n  var y float32[-1,2]\n"
        "  log(X=x) -> (Out=y)\n");
  Write("words.txt",
        "program version=0\nblock 0\n  var w float32[-1,2] lod=1\n  var y float32[-1,2] lod=1\n"
        "  sequence_pool(X=w) -> (Out=y) {pooltype=\"SUM\"}\n");
  Write("odd.txt",
        "program version=0\nblock 0\n  var x float32[2]\n  var y float32[2]\n"
        "  made_up(X=x) -> (Out=y)\n");
  Write("name.txt", absl::StrCat("program version=0\nblock 0\n  var ", std::string(300, 'n'),
                                 " float32[-1,2]\n  var loss float32[]\n  reduce_mean(X=",
                                 std::string(300, 'n'), ") -> (Out=loss) {reduce_all=true}\n"));
  Write("slot.txt",
        "program version=0\nblock 0\n  var x float32[2]\n  var y float32[2]\n"
        "  relu(Xs=x) -> (Out=y)\n");
  Write("syntax.txt", "program version=0\nblock 0\n  var x float32[2\n");
  Write("blockless.txt", "program version=0\n");
  Write("text.pdmodel", "program version=0\nblock 0\n");
  Write("complex.txt",
        "program version=0\nblock 0\n  var x complex64[2]\n  var y complex64[2]\n"
        "  assign(X=x) -> (Out=y)\n");
  Write("sum.txt",
        "program version=0\nblock 0\n  var a float32[1]\n  var b float32[1]\n"
        "  var c float32[1]\n  var d float32[1]\n  var e float32[1]\n  var f float32[1]\n"
        "  var g float32[1]\n  var h float32[1]\n  var i float32[1]\n  var j float32[1]\n"
        "  var y float32[1]\n  sum(X=[a,b,c,d,e,f,g,h,i,j]) -> (Out=y)\n");
  Write("concat.txt",
        "program version=0\nblock 0\n  var a float32[-1,-1]\n  var b float32[-1,-1]\n"
        "  var c float32[-1,-1]\n  concat(X=[a,b]) -> (Out=c) {axis=0}\n");
  Write("sparse.txt",
        "program version=0\nblock 0\n  var table float32[5,2] param\n  var copy float32[5,2]\n"
        "  var ids int64[-1] check_feed\n  var e float32[-1,2]\n  var loss float32[1]\n"
        "  tanh(X=table) -> (Out=copy)\n"
        "  lookup_table_v2(W=copy, Ids=ids) -> (Out=e) {is_sparse=true, padding_idx=-1}\n"
        "  mean(X=e) -> (Out=loss)\n");
  Write("loss.txt",
        "program version=0\nblock 0\n  var x float32[-1,2] check_feed stop_gradient\n"
        "  var w float32[2,1] param\n  var h float32[-1,1]\n  var loss float32[]\n"
        "  mul(X=x, Y=w) -> (Out=h)\n  reduce_mean(X=h) -> (Out=loss) {reduce_all=true}\n");
}

void WriteArrays() {
  ASSERT_TRUE(WriteNpy("wide.npy", Tensor::Of<float>({1, 2}, {1, 2})).ok());
  ASSERT_TRUE(WriteNpy("double.npy", Tensor::Of<double>({1, 2}, {1, 2})).ok());
  ASSERT_TRUE(WriteNpy("minus.npy", Tensor::Of<float>({1, 2}, {-1, 2})).ok());
  ASSERT_TRUE(WriteNpy("y.npy", Tensor::Of<float>({1, 2}, {1, 2})).ok());
  ASSERT_TRUE(WriteNpz("x.npz", {{"x", Tensor::Of<float>({1, 2}, {1, 2})}}).ok());
  ASSERT_TRUE(WriteNpz("empty.npz", {}).ok());
  ASSERT_TRUE(WriteNpz("other.npz", {{"other", Tensor::Of<float>({1, 2}, {1, 2})}}).ok());
  ASSERT_TRUE(WriteNpz("y.npz", {{"y", Tensor::Of<float>({1, 3}, {1, 2, 3})}}).ok());
  Write("text.npy", "1 2 3\n");
  Write("huge.npy", NpyHeader("{'descr': '<f4', 'fortran_order': False, 'shape': "
                              "(1000000000, 1000000000), }"));
  Write("objects.npy", NpyHeader("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }"));
  Write("cut.npy", NpyHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"));
  const std::string archive = Text("x.npz");
  Write("cut.npz", archive.substr(0, archive.size() / 2));
  Write("text.npz", "1 2 3\n");
}

// The folder that command lines are given in.
void WriteFixtures() {
  namespace fs = std::filesystem;
  for (const char* name : {"digits.pdmodel", "digits.pdiparams", "image.npy", "expected.npz"}) {
    fs::copy_file(kSource + "/tools/digits/" + name, name);
  }
  const std::string model = Text("digits.pdmodel");
  Write("alone.pdmodel", model);
  Write("cut.pdmodel", model.substr(0, model.size() / 2));
  const std::string params = Text("digits.pdiparams");
  Write("cut.pdiparams", params.substr(0, params.size() / 2));
  Write("long.pdiparams", params + params);
  Write("empty.pdmodel", "");
  Write("garbage.pdmodel", std::string(500, '\xff'));
  Write("model.onnx", std::string("\x08\x07\x12\x07pytorch", 11));
  Write("model.json", "{\"base_code\":{\"magic\":\"pir\"},\"program\":{}}");
  fs::create_directories("folder");
  fs::create_directories("weights");
  ASSERT_TRUE(WriteCombinedParams("weights/w", {{"w", Tensor::Of<float>({2, 1}, {1, 2})}}).ok());
  WritePrograms();
  WriteArrays();
  ASSERT_TRUE(WritePng("small.png", {2, 1, {255, 0, 0, 0, 0, 255}}).ok());
  fs::create_directories("pictures/a");
  fs::copy_file("small.png", "pictures/a/small.png");
  Write("pictures.lst", "0\t0\tsmall.png\n");
  Write("text.idx", "1 2 3\n");
  Write("columns.csv", "x0,x1\n1,2\n");
  ASSERT_EQ(mkfifo("pipe", 0600), 0);
  Write("lines.txt",
        "program version=0\nblock 0\n  var x float32[2]\n  var y float32[2]\n"
        "  rexlu(X=x) -> (Out=y)\n");
  ASSERT_EQ(
      RunInterp({"dump", "lines.txt", "--stage=program", "--format=pb"}, "lines.pb").exit_code, 0);
  Write("lines.pdmodel", absl::StrReplaceAll(Text("lines.pb"), {{"rexlu", "re\nlu"}}));
  Write("evil.pdparams",
        "\x80\x02"
        "cos\nsystem\nX\x04\x00\x00\x00true\x85R.");
  ASSERT_EQ(RunInterp({"compile", "digits.pdmodel", "-o", "digits.plan"}).exit_code, 0);
  const std::string plan = Text("digits.plan");
  Write("cut.plan", plan.substr(0, plan.size() / 2));
  ASSERT_EQ(RunInterp({"backward", "loss.txt", "--loss", "loss", "--optimizer", "sgd", "-o",
                       "train.pdmodel", "--startup", "startup.pdmodel"})
                .exit_code,
            0);
}

std::set<std::string> FilesHere() {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(".")) {
    files.insert(entry.path().string());
  }
  return files;
}

struct Row {
  int line = 0;
  int exit_code = 0;
  std::vector<std::string> arguments;
  std::vector<std::string> words;
};

// EXIT CODE | ARGUMENTS | WORDS; WORDS; ...
std::vector<Row> ReadRows() {
  std::vector<Row> rows;
  int line = 0;
  for (const absl::string_view text :
       absl::StrSplit(Text(kSource + "/tests/tools/misuse.txt"), '\n')) {
    ++line;
    if (text.empty() || text[0] == '#') continue;
    const std::vector<absl::string_view> columns = absl::StrSplit(text, " | ");
    Row row{.line = line, .arguments = {}, .words = {}};
    EXPECT_EQ(columns.size(), 3u) << "line " << line;
    if (columns.size() != 3) continue;
    EXPECT_TRUE(absl::SimpleAtoi(columns[0], &row.exit_code)) << "line " << line;
    row.arguments = absl::StrSplit(columns[1], ' ', absl::SkipEmpty());
    row.words = absl::StrSplit(columns[2], "; ");
    rows.push_back(row);
  }
  return rows;
}

TEST(MisuseTest, EveryMistakeIsExplained) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  WriteFixtures();
  const std::set<std::string> files = FilesHere();
  const std::vector<Row> rows = ReadRows();
  EXPECT_GE(rows.size(), 120u);
  for (const Row& row : rows) {
    SCOPED_TRACE("misuse.txt, line " + std::to_string(row.line));
    const CommandResult result = RunInterp(row.arguments);
    EXPECT_EQ(result.exit_code, row.exit_code) << result.err;
    for (const std::string& words : row.words) EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_EQ(FilesHere(), files);
  }
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace interp::testing
