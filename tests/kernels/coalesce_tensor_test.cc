#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

std::vector<float> ValuesOf(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

absl::StatusOr<std::vector<Tensor>> Coalesce(const std::string& attrs) {
  INTERP_ASSIGN_OR_RETURN(
      Program program,
      ParseProgram("block 0\n"
                   "  var a float32[2]\n"
                   "  var b float32[1,1]\n"
                   "  coalesce_tensor(Input=[a, b]) -> (Output=[c, d], FusedOutput=f) {" +
                   attrs + "}\n"));
  INTERP_ASSIGN_OR_RETURN(const auto core, InterpreterCore::Create(std::move(program), {"a", "b"},
                                                                   {"c", "d", "f"}, nullptr));
  return core->Run({Tensor::Of<float>({2}, {1, 2}), Tensor::Of<float>({1, 1}, {3})});
}

TEST(CoalesceTensorTest, JoinsWhatItCopies) {
  const auto out = Coalesce("use_align=true, align_size=8, copy_data=true");
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(ValuesOf((*out)[0]), ElementsAre(1, 2));
  EXPECT_THAT(ValuesOf((*out)[1]), ElementsAre(3));
  EXPECT_THAT(ValuesOf((*out)[2]), ElementsAre(1, 2, 3, 0));
}

TEST(CoalesceTensorTest, SetsAConstant) {
  const auto out = Coalesce("use_align=false, set_constant=true, constant=0.5");
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(ValuesOf((*out)[2]), ElementsAre(0.5F, 0.5F, 0.5F));
}

TEST(CoalesceTensorTest, CopiesOrSets) {
  EXPECT_THAT(Coalesce("copy_data=true, set_constant=true"),
              FailsWith(absl::StatusCode::kInvalidArgument, "exclude each other"));
}

}  // namespace
}  // namespace interp::testing
