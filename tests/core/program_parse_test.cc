#include "core/program_parse.h"

#include <gtest/gtest.h>

#include "core/program_print.h"

namespace interp {
namespace {

TEST(ProgramParseTest, ErrorsNameTheLineAndWhatWasExpected) {
  const auto message = [](absl::string_view text) {
    return std::string(ParseProgram(text).status().message());
  };
  EXPECT_EQ(message("relu(X=a) -> (Out=b)"),
            "line 1: expected 'block 0', found 'relu(X=a) -> (Out=b)'");
  EXPECT_EQ(message("block 0\n  relu(X=a) -> Out=b"), "line 2: expected '(', found 'Out=b'");
  EXPECT_EQ(message("block 0\n\n  var x float99[1]"),
            "line 3: expected a type, found 'float99[1]'");
  EXPECT_EQ(message("block 0\n  op() -> () {a=99999999999}"),
            "line 2: expected a number in range, found '99999999999}'");
  EXPECT_EQ(message("block 0\n  op() -> () {a=\"open}"),
            "line 2: expected a string in quotes, found '\"open}'");
  EXPECT_EQ(message("block 0\n  op() -> () {a=[1,2"),
            "line 2: expected ']', found the end of the line");
  EXPECT_EQ(message("block 0\n  op(X=a) -> (Out=b) inplace(Y->Out)"),
            "line 2: expected an argument of the op, not 'Y[0]', found '->Out)'");
  EXPECT_EQ(message("block 0\n  var x float32[1,1,1,1,1,1,1,1,1,1]"),
            "line 2: variable 'x': has 10 dims, the most is 9");
  EXPECT_EQ(message("block 0\n  var x float32[1099511627776,1099511627776]"),
            "line 2: variable 'x': dims [1099511627776,1099511627776] are too large for memory");
  EXPECT_EQ(message("block 0\n  var x float32[1] lod=17"),
            "line 2: variable 'x': LoD level is 17, expected 0 to 16");
  EXPECT_EQ(message("block 0 nonsense"), "line 1: expected the end of the line, found 'nonsense'");
}

// Cutting a valid text anywhere gives an error or a program, never more.
TEST(ProgramParseTest, SurvivesTruncation) {
  const absl::string_view text = R"(program version=1
block 0
  var x float32[-1,3] lod=1 param
  sum(X=[a, "b c"], Y=[]) -> (Out=d) {f=[0.1,-2.5], s="a\\n", l=longs:[1], c=scalar:(1.0,2.0)} inplace(X[1]->Out) target
)";
  for (size_t size = 0; size < text.size(); ++size) {
    const absl::StatusOr<Program> program = ParseProgram(text.substr(0, size));
    if (program.ok()) ToText(*program);
  }
}

}  // namespace
}  // namespace interp
