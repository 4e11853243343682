// --params: what files of parameters the command reads beside its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/io/npz.h"
#include "core/io/params.h"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

TEST(ParamsFlagTest, TakesPicklesOfPaddle) {
  const TemporaryFolder folder;
  // The moment is in the .pdopt beside.
  std::ofstream(folder / "sum.txt")
      << "program version=0\n"
         "block 0\n"
         "  var fc_0.w_0 float32[4,3] persistable\n"
         "  var fc_0.w_0_moment1_0 float32[4,3] persistable\n"
         "  var sum float32[4,3]\n"
         "  elementwise_add(X=fc_0.w_0, Y=fc_0.w_0_moment1_0) -> (Out=sum) {axis=-1}\n";
  const Tensor sum = Tensor::Of<float>({4, 3}, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22});
  ASSERT_TRUE(WriteNpz(folder / "expected.npz", {{{"sum", sum}}}).ok());
  const std::string params =
      absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/pickles/static4.pdparams");
  const CommandResult result = RunInterp({"run", folder / "sum.txt", "--params", params, "--fetch",
                                          "sum", "--expect", folder / "expected.npz"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(ParamsFlagTest, TakesNpzByNames) {
  const TemporaryFolder folder;
  std::ofstream(folder / "sum.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var a float32[2] persistable\n"
                                       "  var b float32[1] persistable\n"
                                       "  var sum float32[2]\n"
                                       "  elementwise_add(X=a, Y=b) -> (Out=sum) {axis=-1}\n";
  const NamedTensor a("a", Tensor::Of<float>({2}, {1, 2}));
  const NamedTensor b("b", Tensor::Of<float>({1}, {10}));
  const NamedTensor more("a_moment1_0", Tensor::Of<float>({2}, {5, 5}));
  const NamedTensor sum("sum", Tensor::Of<float>({2}, {11, 12}));
  ASSERT_TRUE(WriteNpz(folder / "expected.npz", {{sum}}).ok());
  const auto run = [&](const std::vector<NamedTensor>& params) {
    EXPECT_TRUE(WriteNpz(folder / "params.npz", params).ok());
    return RunInterp({"run", folder / "sum.txt", "--params", folder / "params.npz", "--fetch",
                      "sum", "--expect", folder / "expected.npz"});
  };
  const CommandResult result = run({more, b, a});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(run({a, more}).err, ::testing::HasSubstr("there is no parameter 'b'"));
  EXPECT_THAT(run({a, {"b", a.second}}).err, ::testing::HasSubstr("parameter 'b'"));
}

// A parameter's `detach()` is one that no startup program makes.
TEST(ParamsFlagTest, WhatTheProgramMakesFirstMayBeMissing) {
  const TemporaryFolder folder;
  std::ofstream(folder / "sum.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var w float32[2] persistable param\n"
                                       "  var detach_w float32[2] persistable\n"
                                       "  var sum float32[2]\n"
                                       "  share_data(X=w) -> (Out=detach_w)\n"
                                       "  elementwise_add(X=detach_w, Y=w) -> (Out=sum)\n";
  const NamedTensor w("w", Tensor::Of<float>({2}, {1, 2}));
  const NamedTensor sum("sum", Tensor::Of<float>({2}, {2, 4}));
  ASSERT_TRUE(WriteNpz(folder / "expected.npz", {{sum}}).ok());
  ASSERT_TRUE(WriteNpz(folder / "w.npz", {{w}}).ok());
  ASSERT_TRUE(WriteCombinedParams(folder / "w.pdiparams", {{w}}).ok());
  for (const std::string& params : {folder / "w.npz", folder / "w.pdiparams"}) {
    const CommandResult result = RunInterp({"run", folder / "sum.txt", "--params", params,
                                            "--fetch", "sum", "--expect", folder / "expected.npz"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, ::testing::HasSubstr("makes first, such as 'detach_w'"));
  }
}

// The program declares what each run makes of `w` persistable, too, as paddle.jit.save does of
// weight norms. A plan has it for itself, and reads the files of the program all the same.
TEST(ParamsFlagTest, PlansReadFilesThatHoldWhatRunsMake) {
  const TemporaryFolder folder;
  std::ofstream(folder / "sum.txt") << "program version=0\n"
                                       "block 0\n"
                                       "  var w float32[2] persistable param\n"
                                       "  var v float32[2] persistable\n"
                                       "  var x float32[-1,2]\n"
                                       "  var sum float32[-1,2]\n"
                                       "  scale(X=w) -> (Out=v) {scale=2.0}\n"
                                       "  elementwise_add(X=x, Y=v) -> (Out=sum) {axis=-1}\n";
  const NamedTensor w("w", Tensor::Of<float>({2}, {1, 2}));
  const NamedTensor v("v", Tensor::Of<float>({2}, {100, 100}));
  ASSERT_TRUE(WriteNpz(folder / "x.npz", {{{"x", Tensor::Of<float>({1, 2}, {1, 1})}}}).ok());
  ASSERT_TRUE(
      WriteNpz(folder / "expected.npz", {{{"sum", Tensor::Of<float>({1, 2}, {3, 5})}}}).ok());
  ASSERT_TRUE(WriteCombinedParams(folder / "all.pdiparams", {{v, w}}).ok());
  ASSERT_TRUE(WriteCombinedParams(folder / "w.pdiparams", {{w}}).ok());
  ASSERT_EQ(RunInterp({"compile", folder / "sum.txt", "--feed", "x", "--fetch", "sum", "-o",
                       folder / "sum.plan"})
                .exit_code,
            0);
  for (const std::string& params : {folder / "all.pdiparams", folder / "w.pdiparams"}) {
    const CommandResult result =
        RunInterp({"run", folder / "sum.plan", "--params", params, "--feed", folder / "x.npz",
                   "--expect", folder / "expected.npz"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }
}

}  // namespace
}  // namespace interp::testing
