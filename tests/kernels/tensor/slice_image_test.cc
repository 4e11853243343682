// Slices of images that lie channels-last: of rank 5, they may be images of rank 4.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

const Shape kImage = {2, 3, 4, 5, 6};

// Takes index 1 along `axes` of the result of a convolution.
std::string SliceProgram(const std::string& type, const std::vector<int64_t>& axes) {
  std::vector<int64_t> kept;
  for (int64_t axis = 0; axis < kImage.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      kept.push_back(kImage[static_cast<int>(axis)]);
    }
  }
  const std::string list = absl::StrJoin(axes, ", ");
  const std::string ones = absl::StrJoin(std::vector<int64_t>(axes.size(), 1), ", ");
  const std::string twos = absl::StrJoin(std::vector<int64_t>(axes.size(), 2), ", ");
  return absl::StrCat(
      "block 0\n  var x float32[2,3,4,5,6]\n  var w float32[3,3,1,1,1]\n"
      "  var c float32[2,3,4,5,6]\n  var y float32[",
      absl::StrJoin(kept, ","),
      "]\n  conv3d(Input=x, Filter=w) -> (Output=c) {strides=[1, 1, 1], paddings=[0, 0, 0]}\n  ",
      type, "(Input=c) -> (Out=y) {axes=[", list, "], starts=[", ones, "], ends=[", twos,
      "], strides=[", ones, "], decrease_axis=[", list, "]}\n");
}

absl::StatusOr<Tensor> PartOf(const std::string& text, bool optimize_layout) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  CoreOptions options;
  options.plan.optimize_layout = optimize_layout;
  INTERP_ASSIGN_OR_RETURN(
      auto core, InterpreterCore::Create(std::move(program), {"x", "w"}, {"y"}, nullptr, options));
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                          core->Run({Numbers(kImage, 1), Numbers({3, 3, 1, 1, 1}, 2)}));
  return outputs[0];
}

TEST(SliceImageTest, DroppedDimensionsLeaveTheOrderOfWhatIsLeft) {
  const std::vector<std::vector<int64_t>> cases = {{0},    {1},    {2},    {3},   {4},
                                                   {0, 1}, {1, 3}, {0, 2}, {2, 4}};
  for (const std::string type : {"slice", "strided_slice"}) {
    for (const std::vector<int64_t>& axes : cases) {
      const std::string text = SliceProgram(type, axes);
      const absl::StatusOr<Tensor> plain = PartOf(text, /*optimize_layout=*/false);
      const absl::StatusOr<Tensor> last = PartOf(text, /*optimize_layout=*/true);
      ASSERT_THAT(plain, IsOk()) << text;
      ASSERT_THAT(last, IsOk()) << text;
      ASSERT_EQ(plain->shape, last->shape) << text;
      for (int64_t i = 0; i < plain->numel(); ++i) {
        ASSERT_NEAR(plain->data<float>()[i], last->data<float>()[i], 1e-5) << text << i;
      }
    }
  }
}

}  // namespace
}  // namespace interp::testing
