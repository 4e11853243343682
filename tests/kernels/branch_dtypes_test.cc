// A variable that is of one dtype in one block and of another in another.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

// `v` is an integer before the branch, which writes `value` to it.
absl::Status Create(const std::string& declared, const std::string& value) {
  INTERP_ASSIGN_OR_RETURN(
      Program program,
      ParseProgram(absl::StrCat(
          "block 0\n  var x float32[]\n  var n int32[]\n  var cond bool[]\n  var v ", declared,
          "[]\n  var s step_scopes\n"
          "  fill_constant() -> (Out=v) {shape=[], dtype=3, value=1.0}\n"
          "  conditional_block(Cond=cond, Input=",
          value,
          ") -> (Out=v, Scope=s) {is_scalar_condition=true, sub_block=block:1}\n"
          "block 1 parent=0\n  assign(X=",
          value, ") -> (Out=v)\n")));
  return InterpreterCore::Create(std::move(program), {"x", "n", "cond"}, {"v"}, nullptr, {})
      .status();
}

// Fractions are not cut off; what loses nothing is converted.
TEST(BranchDTypes, FloatsAreNotMadeIntegers) {
  EXPECT_THAT(Create("int64", "x"),
              FailsWith(absl::StatusCode::kUnimplemented,
                        "op #0 assign: variable 'v' is int64 and is written as float32"));
  EXPECT_THAT(Create("int64", "n"), IsOk());
  EXPECT_THAT(Create("float32", "x"), IsOk());
  EXPECT_THAT(Create("complex64", "x"), IsOk());
}

}  // namespace
}  // namespace interp::testing
