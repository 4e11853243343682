// save, load, save_combine and load_combine: the bytes that Paddle 2.6.2 writes and reads, what is
// refused, and that nothing outside of the folder for files is touched.
#include <filesystem>

#include "absl/strings/escaping.h"
#include "core/edit_op.h"
#include "core/io/file.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/temp_folder.h"

namespace interp::testing::save_load_test {
namespace {

using ::testing::ElementsAre;

// What Paddle's `save` made of x = float32[3,2] with LoD {0,1,3}, in float32 and in float16, of
// i = int64[2], and of selected rows 3, 1, 3 of a tensor of height 5.
constexpr absl::string_view kX =
    "0000000001000000000000001800000000000000000000000000000001000000000000000300000000000000000000"
    "00"
    "060000000805100310020000c03f000000c000004040000088400000a0400000c040";
constexpr absl::string_view kX16 =
    "0000000001000000000000001800000000000000000000000000000001000000000000000300000000000000000000"
    "00"
    "0600000008041003"
    "1002003e00c00042404400450046";
constexpr absl::string_view kI =
    "0000000000000000000000000000000004000000080310020700000000000000f7ffffffffffffff";
constexpr absl::string_view kI16 =
    "0000000000000000000000000000000004000000080410020047"
    "80c8";
constexpr absl::string_view kRows =
    "00000000030000000000000003000000000000000100000000000000030000000000000005000000000000000000"
    "0000060000000805100310020000803f000000c000004040000080400000a0400000c040";

std::string Bytes(absl::string_view hex) { return absl::HexStringToBytes(hex); }

Tensor X() {
  Tensor x = Tensor::Of<float>({3, 2}, {1.5F, -2, 3, 4.25F, 5, 6});
  x.lod = {{0, 1, 3}};
  return x;
}
Tensor I() { return VectorOf<int64_t>({7, -9}); }

class SaveLoadTest : public ::testing::Test {
 protected:
  // Runs a program on feeds, with `folder_` for its files.
  absl::StatusOr<std::vector<Tensor>> Run(absl::string_view text,
                                          const std::vector<NamedTensor>& feeds,
                                          const std::vector<std::string>& fetches) const {
    INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
    return RunProgram(std::move(program), feeds, fetches, {.file_folder = folder_.path()});
  }
  static absl::StatusOr<std::vector<Tensor>> RunProgram(Program program,
                                                        const std::vector<NamedTensor>& feeds,
                                                        const std::vector<std::string>& fetches,
                                                        const CoreOptions& options) {
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : feeds) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    INTERP_ASSIGN_OR_RETURN(
        auto core, InterpreterCore::Create(std::move(program), names, fetches, nullptr, options));
    return core->Run(tensors);
  }
  absl::Status Save(absl::string_view ops) const {
    return Run(absl::StrCat("block 0\n  var x float32[3,2]\n  var i int64[2]\n", ops, "\n"),
               {{"x", X()}, {"i", I()}}, {})
        .status();
  }
  absl::StatusOr<std::vector<Tensor>> Load(absl::string_view var, absl::string_view op) const {
    return Run(absl::StrCat("block 0\n  var out ", var, "\n  ", op, "\n"), {}, {"out"});
  }
  std::string Read(const std::string& name) const {
    const absl::StatusOr<std::string> bytes = ReadFile(folder_ / name);
    EXPECT_THAT(bytes, IsOk());
    return bytes.value_or("");
  }
  void Write(const std::string& name, absl::string_view bytes) const {
    absl::StatusOr<FileWriter> file = FileWriter::Create(folder_ / name);
    ASSERT_THAT(file, IsOk());
    ASSERT_THAT(file->Append(bytes), IsOk());
    ASSERT_THAT(file->Commit(), IsOk());
  }

  TempFolder folder_;
};

TEST_F(SaveLoadTest, SaveWritesWhatPaddleDoes) {
  ASSERT_THAT(Save(R"(  save(X=x) -> () {file_path="x"}
  save(X=i) -> () {file_path="deep/er/i"}
  save(X=x) -> () {file_path="x16", save_as_fp16=true}
  save_combine(X=[x,i]) -> () {file_path="xi"}
  save_combine(X=[x,i]) -> () {file_path="xi16", save_as_fp16=true})"),
              IsOk());
  EXPECT_EQ(Read("x"), Bytes(kX));
  EXPECT_EQ(Read("deep/er/i"), Bytes(kI));
  EXPECT_EQ(Read("x16"), Bytes(kX16));
  EXPECT_EQ(Read("xi"), Bytes(kX) + Bytes(kI));
  EXPECT_EQ(Read("xi16"), Bytes(kX16) + Bytes(kI16));
}

// Paddle's save_combine always names a variable Y for bytes in memory.
TEST_F(SaveLoadTest, SaveCombineWritesToFilesAlone) {
  const auto combine = [&](absl::string_view attrs) {
    return Run(absl::StrCat("block 0\n  var x float32[3,2]\n  var y raw\n  save_combine(X=x) -> "
                            "(Y=y) {file_path=\"x\"",
                            attrs, "}\n"),
               {{"x", X()}}, {})
        .status();
  };
  EXPECT_THAT(combine(", save_to_memory=true"),
              FailsWith(absl::StatusCode::kInvalidArgument, "'save_to_memory' is true"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_THAT(combine(""), IsOk());
  EXPECT_EQ(Read("x"), Bytes(kX));
}

TEST_F(SaveLoadTest, LoadReadsWhatPaddleWrote) {
  Write("x", Bytes(kX));
  Write("x16", Bytes(kX16));
  const auto x = Load("float32[3,2]", R"(load() -> (Out=out) {file_path="x"})");
  ASSERT_THAT(x, IsOk());
  EXPECT_TRUE(SameBits((*x)[0], X()));
  const auto half = Load("float16[3,2]", R"(load() -> (Out=out) {file_path="x16"})");
  const auto rounded =
      Load("float32[3,2]", R"(load() -> (Out=out) {file_path="x", load_as_fp16=true})");
  ASSERT_THAT(half, IsOk());
  ASSERT_THAT(rounded, IsOk());
  EXPECT_TRUE(SameBits((*half)[0], (*rounded)[0]));
  EXPECT_EQ((*half)[0].dtype, DType::kFloat16);
}

TEST_F(SaveLoadTest, LoadTakesAPart) {
  Write("x", Bytes(kX));
  const auto part = [&](absl::string_view attrs) {
    return Load("float32[-1]", absl::StrCat("load() -> (Out=out) {file_path=\"x\", ", attrs, "}"));
  };
  const auto middle = part("seek=long:2, shape=longs:[1,3]");
  ASSERT_THAT(middle, IsOk());
  EXPECT_THAT(Values<float>((*middle)[0]), ElementsAre(3, 4.25F, 5));
  EXPECT_EQ((*middle)[0].shape, Shape({1, 3}));
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(part("seek=long:4, shape=longs:[3]"),
              FailsWith(code, "attribute 'shape' is [3], with 'seek' 4 in a file of float32[3,2]"));
  EXPECT_THAT(part("seek=long:7, shape=longs:[0]"), FailsWith(code, "with 'seek' 7"));
  EXPECT_THAT(part("seek=long:0, shape=longs:[-1]"), FailsWith(code, "attribute 'shape' is [-1]"));
  EXPECT_THAT(part("seek=long:0"), FailsWith(code, "attribute 'shape' has 0 dims"));
  EXPECT_THAT(part("seek=long:-2"), FailsWith(code, "attribute 'seek' is -2"));
}

TEST_F(SaveLoadTest, LoadCombineReadsWhatPaddleWrote) {
  Write("xi", Bytes(kX) + Bytes(kI));
  Program program = *ParseProgram(R"(block 0
  var x float32[3,2]
  var i int64[2]
  load_combine() -> (Out=[x,i]) {file_path="xi"}
)");
  const CoreOptions options = {.file_folder = folder_.path()};
  const auto named = RunProgram(program, {}, {"x", "i"}, options);
  ASSERT_THAT(named, IsOk());
  EXPECT_TRUE(SameBits(*named, {X(), I()}));

  // From memory, which needs no leave.
  SetAttr(program.blocks[0].ops[0], "model_from_memory", true);
  SetAttr(program.blocks[0].ops[0], "file_path", Bytes(kX) + Bytes(kI));
  const auto bytes = RunProgram(program, {}, {"x", "i"}, {});
  ASSERT_THAT(bytes, IsOk());
  EXPECT_TRUE(SameBits(*bytes, {X(), I()}));
}

constexpr absl::string_view kMakeRows = R"(block 0
  var table float32[5,2]
  var ids int64[3]
  var values float32[3,2]
  var rows selected_rows float32[5,2]
  lookup_table_v2_grad(W=table, Ids=ids, Out@GRAD=values) -> (W@GRAD=rows) {is_sparse=true}
)";

TEST_F(SaveLoadTest, SelectedRowsGoThroughPaddlesFile) {
  const std::vector<NamedTensor> feeds = {
      {"table", Numbers({5, 2}, 1)},
      {"ids", VectorOf<int64_t>({3, 1, 3})},
      {"values", Tensor::Of<float>({3, 2}, {1, -2, 3, 4, 5, 6})}};
  ASSERT_THAT(
      Run(absl::StrCat(kMakeRows, "  save(X=rows) -> () {file_path=\"rows\"}\n"), feeds, {}),
      IsOk());
  EXPECT_EQ(Read("rows"), Bytes(kRows));
  const auto back = Run(R"(block 0
  var rows selected_rows float32[5,2]
  var values float32[-1,2]
  var listed int64[-1,1]
  load() -> (Out=rows) {file_path="rows"}
  get_tensor_from_selected_rows(X=rows) -> (Out=values)
  extract_rows(X=rows) -> (Out=listed)
)",
                        {}, {"values", "listed"});
  ASSERT_THAT(back, IsOk());
  EXPECT_THAT(Values<float>((*back)[0]), ElementsAre(1, -2, 3, 4, 5, 6));
  EXPECT_THAT(Values<int64_t>((*back)[1]), ElementsAre(3, 1, 3));
  EXPECT_THAT(
      Run(absl::StrCat(kMakeRows, "  save(X=rows) -> () {file_path=\"r\", save_as_fp16=true}\n"),
          feeds, {}),
      FailsWith(absl::StatusCode::kUnimplemented, "cannot be saved as float16"));
}

TEST_F(SaveLoadTest, LoadedParametersOutliveTheCore) {
  Write("x", Bytes(kX));
  const auto scope = std::make_shared<Scope>();
  const CoreOptions options = {.file_folder = folder_.path()};
  {
    auto core = InterpreterCore::Create(*ParseProgram(R"(block 0
  var x persistable float32[3,2]
  load() -> (Out=x) {file_path="x"}
)"),
                                        {}, {}, scope, options);
    ASSERT_THAT(core, IsOk());
    ASSERT_THAT((*core)->Run({}), IsOk());
  }
  EXPECT_TRUE(SameBits(scope->Find("x")->tensor, X()));
}

TEST_F(SaveLoadTest, LoadSeesWhatSaveHasWrittenBefore) {
  for (const SchedulerKind scheduler : {SchedulerKind::kTrace, SchedulerKind::kAsync}) {
    Write("x", Bytes(kI));
    const auto out = RunProgram(*ParseProgram(R"(block 0
  var x float32[3,2]
  var out float32[3,2]
  save(X=x) -> () {file_path="x"}
  load() -> (Out=out) {file_path="x"}
)"),
                                {{"x", X()}}, {"out"},
                                {.scheduler = scheduler,
                                 .num_workers = scheduler == SchedulerKind::kAsync ? 2 : 1,
                                 .file_folder = folder_.path()});
    ASSERT_THAT(out, IsOk());
    EXPECT_TRUE(SameBits((*out)[0], X()));
  }
}

TEST_F(SaveLoadTest, AProgramUsesNoFilesWithoutLeave) {
  const Program program = *ParseProgram(
      "block 0\n  var x float32[3,2]\n  save(X=x) -> () {file_path=\"" + folder_ / "x" + "\"}\n");
  EXPECT_THAT(RunProgram(program, {{"x", X()}}, {}, {}),
              FailsWith(absl::StatusCode::kPermissionDenied, "the program may not use files"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

TEST_F(SaveLoadTest, AProgramUsesNoFilesOutsideOfItsFolder) {
  const TempFolder outside;
  std::filesystem::create_directory_symlink(outside.path(), folder_ / "out");
  std::filesystem::create_symlink(outside / "new", folder_ / "broken");
  for (const std::string& path :
       {outside / "x", std::string("../x"), std::string("a/../../x"), std::string("out/x"),
        std::string("out/../x"), std::string("none/../out/x"), std::string("broken"),
        std::string("a\\000b")}) {
    for (const absl::string_view op : {"  save(X=x) -> () ", "  load() -> (Out=i) "}) {
      EXPECT_THAT(Save(absl::StrCat(op, "{file_path=\"", path, "\"}")),
                  FailsWith(absl::StatusCode::kPermissionDenied, "may use files in"))
          << op << path;
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(outside.path()));
  // What lies inside may be named in full.
  EXPECT_THAT(Save(absl::StrCat("  save(X=x) -> () {file_path=\"", folder_ / "a/../x", "\"}")),
              IsOk());
  EXPECT_EQ(Read("x"), Bytes(kX));
}

TEST_F(SaveLoadTest, AFolderThatDoesNotExistIsAnError) {
  EXPECT_THAT(RunProgram(*ParseProgram("block 0\n  var x float32[3,2]\n  relu(X=x) -> (Out=y)\n"),
                         {{"x", X()}}, {"y"}, {.file_folder = folder_ / "none"}),
              FailsWith(absl::StatusCode::kNotFound, "none"));
}

TEST_F(SaveLoadTest, WhatIsNotToBeOverwrittenStays) {
  Write("x", "old");
  EXPECT_THAT(Save(R"(  save(X=x) -> () {file_path="x", overwrite=false})"),
              FailsWith(absl::StatusCode::kAlreadyExists, "attribute 'overwrite' is false"));
  EXPECT_EQ(Read("x"), "old");
  EXPECT_THAT(Save(R"(  save(X=x) -> () {file_path="y", overwrite=false})"), IsOk());
}

TEST_F(SaveLoadTest, AFailedSaveLeavesNothing) {
  EXPECT_THAT(Save(R"(  save_combine(X=[x,@EMPTY@]) -> () {file_path="x"})"),
              FailsWith(absl::StatusCode::kInvalidArgument, "argument #1 of 'X'"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SaveLoadTest, ADamagedFileIsAnError) {
  const std::string x = Bytes(kX);
  const auto load = [&] { return Load("float32[3,2]", R"(load() -> (Out=out) {file_path="f"})"); };
  for (size_t size = 0; size < x.size(); ++size) {
    Write("f", absl::string_view(x).substr(0, size));
    EXPECT_THAT(load(), FailsWith(absl::StatusCode::kDataLoss, "'f': byte ")) << size;
  }
  Write("f", x + "z");
  EXPECT_THAT(load(), FailsWith(absl::StatusCode::kInvalidArgument, "1 bytes follow the tensor"));
  Write("f", Bytes(kI));
  EXPECT_THAT(load(), FailsWith(absl::StatusCode::kInvalidArgument,
                                "the file has int64[2], the variable is declared as float32"));
  EXPECT_THAT(Load("float32[3,2]", R"(load() -> (Out=out) {file_path="none"})"),
              FailsWith(absl::StatusCode::kNotFound, "none"));
}

TEST_F(SaveLoadTest, DamagedSelectedRowsAreAnError) {
  const std::string rows = Bytes(kRows);
  const auto load = [&](const std::string& bytes) {
    Write("r", bytes);
    return Run(R"(block 0
  var rows selected_rows float32[5,2]
  var out float32[-1,2]
  load() -> (Out=rows) {file_path="r"}
  get_tensor_from_selected_rows(X=rows) -> (Out=out)
)",
               {}, {"out"});
  };
  for (size_t size = 0; size < rows.size(); ++size) {
    EXPECT_THAT(load(rows.substr(0, size)), FailsWith(absl::StatusCode::kDataLoss, "byte "));
  }
  const auto changed = [&](size_t at, char byte) {
    std::string bytes = rows;
    bytes[at] = byte;
    return load(bytes);
  };
  EXPECT_THAT(changed(4, 2), FailsWith(absl::StatusCode::kDataLoss, ""));
  EXPECT_THAT(changed(11, '\x7f'),
              FailsWith(absl::StatusCode::kDataLoss, "selected rows do not fit into the file"));
  EXPECT_THAT(changed(12, 5), FailsWith(absl::StatusCode::kDataLoss,
                                        "selected row 5 of a tensor with a height of 5"));
  EXPECT_THAT(changed(19, '\x80'), FailsWith(absl::StatusCode::kDataLoss, "selected row -"));
}

// The bytes that were saved, once they are there, and of no file outside.
TEST_F(SaveLoadTest, ReadFileGivesTheBytes) {
  const std::string ops =
      "block 0\n  var x float32[3,2]\n  var y uint8[-1]\n"
      "  save(X=x) -> () {file_path=\"x\"}\n  read_file() -> (Out=y) {filename=\"x\"}\n";
  const auto read = Run(ops, {{"x", X()}}, {"y"});
  ASSERT_THAT(read, IsOk());
  const Tensor& y = read->front();
  ASSERT_EQ(y.dtype, DType::kUInt8);
  EXPECT_EQ(std::string(static_cast<const char*>(y.raw_data()), y.size_bytes()), Bytes(kX));
  EXPECT_EQ(y.shape, (Shape{y.numel()}));
  const std::string outside =
      "block 0\n  var y uint8[-1]\n  read_file() -> (Out=y) {filename=\"../x\"}\n";
  EXPECT_EQ(Run(outside, {}, {"y"}).status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace interp::testing::save_load_test
