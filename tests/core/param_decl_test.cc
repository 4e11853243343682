// What a parameter is compared with: the program's declaration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/io/params.h"
#include "tests/testing/matchers.h"

namespace interp::param_decl_test {
namespace {

using testing::FailsWith;
using testing::IsOk;

TEST(ParamDeclTest, WhatTheProgramWritesMayHaveOtherDimsOfOne) {
  const auto check = [](std::vector<int64_t> declared, const Shape& found, bool written) {
    return CheckDeclared(DType::kFloat32, found,
                         {"p", DType::kFloat32, std::move(declared), written});
  };
  EXPECT_THAT(check({1, 1}, {1}, true), IsOk());
  EXPECT_THAT(check({}, {1}, true), IsOk());
  EXPECT_THAT(check({1, 4}, {4}, true), IsOk());
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(check({1, 1}, {1}, false), FailsWith(kInvalid, "declares float32[1,1]"));
  EXPECT_THAT(check({1, 4}, {5}, true), FailsWith(kInvalid, "declares float32[1,4]"));
  EXPECT_THAT(check({1, 4}, {4, 1}, true), FailsWith(kInvalid, "declares float32[1,4]"));
}

}  // namespace
}  // namespace interp::param_decl_test
