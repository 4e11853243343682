#include "passes/import/real_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "tests/testing/matchers.h"

namespace interp::real_gradients_test {
namespace {

using testing::FailsWith;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;

std::string Taken(absl::string_view text) {
  const absl::StatusOr<Program> program = TakeRealGradients(*ParseProgram(text));
  EXPECT_THAT(program, IsOk());
  return program.ok() ? ToText(*program) : "";
}

TEST(RealGradientsTest, TakeTheRealPartOfWhatEigGradGives) {
  EXPECT_THAT(Taken(R"(block 0
  var w float32[4,4]
  var w@GRAD float32[4,4]
  eig_grad(Eigenvectors=v) -> (X@GRAD=w@GRAD)
)"),
              HasSubstr(R"(  eig_grad(Eigenvectors=v) -> (X@GRAD=w@GRAD.complex)
  real(X=w@GRAD.complex) -> (Out=w@GRAD)
)"));
}

TEST(RealGradientsTest, AreTakenOnce) {
  const std::string once =
      Taken("block 0\n  var w float32[4,4]\n  eig_grad(Eigenvectors=v) -> (X@GRAD=w@GRAD)\n");
  EXPECT_THAT(once, HasSubstr("real(X=w@GRAD.complex)"));
  EXPECT_EQ(Taken(once), once);
}

TEST(RealGradientsTest, ArePartsOfASumToo) {
  EXPECT_THAT(Taken(R"(block 0
  var w float64[4,4]
  eig_grad(Eigenvectors=v) -> (X@GRAD=w@GRAD@RENAME@block0@0)
)"),
              HasSubstr("-> (Out=w@GRAD@RENAME@block0@0)"));
}

TEST(RealGradientsTest, LeaveComplexVariablesAlone) {
  EXPECT_THAT(Taken(R"(block 0
  var w complex64[4,4]
  eig_grad(Eigenvectors=v) -> (X@GRAD=w@GRAD)
  eig_grad(Eigenvectors=v) -> (X@GRAD=unknown@GRAD)
  eig_grad(Eigenvectors=v) -> (X@GRAD=g)
)"),
              Not(HasSubstr("real")));
}

TEST(RealGradientsTest, AnotherBlockIsAnError) {
  EXPECT_THAT(
      TakeRealGradients(*ParseProgram(
          "block 0\n  eig_grad() -> (X@GRAD=w@GRAD)\n  while() -> () {sub_block=block:7}\n")),
      FailsWith(absl::StatusCode::kInvalidArgument, "block"));
}

}  // namespace
}  // namespace interp::real_gradients_test
