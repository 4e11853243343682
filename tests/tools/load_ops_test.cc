// Ops from shared libraries, by the library and by the flag.
#include "interpreter/load_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/op_def.h"
#include "tests/testing/command.h"

namespace interp {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using testing::RunInterp;

std::string Library(const std::string& name) {
  return std::string(INTERP_BINARY_DIR) + "/tests/lib" + name + ".so";
}

TEST(LoadOpsTest, AddsAllOrNothing) {
  EXPECT_EQ(OpRegistry::Global().Find("triple"), nullptr);
  ASSERT_TRUE(LoadOps(Library("triple")).ok());
  EXPECT_NE(OpRegistry::Global().Find("triple"), nullptr);
  EXPECT_TRUE(LoadOps(Library("triple")).ok()) << "a second time";
  const absl::Status clash = LoadOps(Library("clash"));
  EXPECT_EQ(clash.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(clash.message()),
              HasSubstr("an op named 'relu' is there already; give it another name"));
  EXPECT_EQ(OpRegistry::Global().Find("quadruple"), nullptr);
  EXPECT_EQ(LoadOps(Library("clash")), clash) << "a second time";
}

TEST(LoadOpsTest, ALibraryWithoutOpsIsAnError) {
  for (int i = 0; i < 2; ++i) {
    const absl::Status silent = LoadOps(Library("silent"));
    EXPECT_EQ(silent.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(silent.message()), HasSubstr("libsilent.so: the library registers no"));
  }
  // The program itself is linked with it.
  EXPECT_TRUE(LoadOps(std::string(INTERP_BINARY_DIR) + "/libinterp.so").ok());
}

TEST(LoadOpsTest, WhatIsNoLibraryIsAnError) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(LoadOps(folder / "none.so").code(), absl::StatusCode::kNotFound);
  std::ofstream(folder / "text.so") << "no library";
  EXPECT_EQ(LoadOps(folder / "text.so").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(LoadOps(folder / "").code(), absl::StatusCode::kInvalidArgument);
}

TEST(LoadOpsTest, TheFlagGivesThemToEveryCommand) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "net.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var x float32[2]\n"
                                       "  var y float32[2]\n"
                                       "  triple(X=x) -> (Out=y)\n";
  const std::vector<std::string> run = {"run",      folder / "net.txt", "--feed",
                                        "x=fill:2", "--fetch",          "y"};
  EXPECT_THAT(RunInterp(run).err, HasSubstr("no op named 'triple' is registered"));
  std::vector<std::string> with = run;
  with.insert(with.end(), {"--load-ops", Library("triple")});
  const CommandResult result = RunInterp(with);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("values 6 6"));
  const CommandResult ops = RunInterp({"ops", "triple", "--load-ops", Library("triple")});
  EXPECT_THAT(ops.out, HasSubstr("triple(X) -> (Out)"));
  const CommandResult wrong = RunInterp({"ops", "--load-ops", folder / "none.so"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--load-ops: there is no file"));
}

}  // namespace
}  // namespace interp
