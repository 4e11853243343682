// Which ops hand the LoD of X on, as those of Paddle 2.6.2 do.
#include "tests/kernels/op_runs.h"

namespace interp::testing::lod_of_results_test {
namespace {

Lod LodOf(OpRun run) {
  run.inputs = {{"X", TensorOf<float>({3, 2}, {1, -2, 3, -4, 5, 6}, {{0, 1, 3}})}};
  return OutputsOf(run)[0].lod;
}

TEST(LodOfResultsTest, SomeOpsKeepNone) {
  EXPECT_EQ(LodOf({"relu", {}, {"Out"}}), (Lod{{0, 1, 3}}));
  EXPECT_EQ(LodOf({"reduce_mean", {}, {"Out"}, "dim=[1]"}), (Lod{{0, 1, 3}}));
  EXPECT_EQ(LodOf({"reduce_sum", {}, {"Out"}, "dim=[1]"}), Lod());
  EXPECT_EQ(LodOf({"norm", {}, {"Out", "Norm"}, "axis=1"}), Lod());
  for (const char* type : {"abs", "isnan_v2", "isinf_v2", "isfinite_v2"}) {
    EXPECT_EQ(LodOf({type, {}, {"Out"}}), Lod()) << type;
  }
}

}  // namespace
}  // namespace interp::testing::lod_of_results_test
