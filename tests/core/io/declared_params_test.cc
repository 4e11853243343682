// Which parameters a program declares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/io/param_decl.h"

namespace interp::declared_params_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeclaredParamsTest, AreSortedAndOnce) {
  Program program;
  const auto add = [&](int block, const std::string& name, bool persistable, VarKind kind) {
    program.blocks[block].vars.push_back({.id = program.Intern(name),
                                          .kind = kind,
                                          .dtype = DType::kFloat32,
                                          .dims = {2},
                                          .persistable = persistable});
  };
  EXPECT_THAT(ParamsOf(program), IsEmpty());
  program.blocks.resize(2);
  add(0, "w_10", true, VarKind::kLodTensor);
  add(0, "w_1", true, VarKind::kLodTensor);
  add(0, "W", true, VarKind::kLodTensor);
  add(0, "x", false, VarKind::kLodTensor);
  add(0, "feed", true, VarKind::kFeedMinibatch);
  add(0, "fetch", true, VarKind::kFetchList);
  add(0, "raw", true, VarKind::kRaw);
  add(0, "rows", true, VarKind::kSelectedRows);
  add(1, "in block 1", true, VarKind::kLodTensor);
  add(1, "w_1", true, VarKind::kLodTensor);
  std::vector<std::string> names;
  for (const ParamDecl& param : ParamsOf(program)) names.push_back(param.name);
  EXPECT_THAT(names, ElementsAre("W", "in block 1", "w_1", "w_10"));
}

}  // namespace
}  // namespace interp::declared_params_test
