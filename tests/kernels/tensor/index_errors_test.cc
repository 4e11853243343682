// Ops that put, find and arrange elements, on inputs and attributes that do not fit: each fails
// with what is wrong, and none reads or writes beyond a tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

template <typename T = float>
Tensor Ones(const Shape& shape) {
  return Tensor::Of<T>(shape, std::vector<T>(static_cast<size_t>(shape.numel()), T{1}));
}

Tensor Ints(const std::vector<int64_t>& values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
}
Tensor Column(const std::vector<int64_t>& values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size()), 1}, values);
}

TEST(IndexErrorsTest, IndicesOutOfRangeAreErrorsWithTheirValue) {
  const Tensor x = Ones({3, 2});
  ExpectRefusals({
      {{"put_along_axis",
        {{"Input", x}, {"Index", Column({0, 7, 1})}, {"Value", Ones({3, 1})}},
        {"Result"},
        "Axis=1"},
       "'Index' has the value 7 at position 1, expected 0 to 1"},
      {{"put_along_axis",
        {{"Input", x}, {"Index", Column({0, -1, 1})}, {"Value", Ones({3, 1})}},
        {"Result"},
        "Axis=1"},
       "'Index' has the value -1"},
      {{"index_add",
        {{"X", x}, {"Index", Ints({3})}, {"AddValue", Ones({1, 2})}},
        {"Out"},
        "axis=0"},
       "'Index' has the value 3 at position 0, expected 0 to 2"},
      {{"index_put", {{"x", x}, {"indices", Ints({0, -4})}, {"value", Ones({2, 2})}}, {"out"}, ""},
       "'indices' has the value -4 for dimension 0 of 'x' [3,2]"},
      {{"multiplex", {{"X", x}, {"X", x}, {"Ids", Column({0, 2, 1})}}, {"Out"}, ""},
       "'Ids' has the value 2 at position 1, expected 0 to 1"},
      {{"gather_tree",
        {{"Ids", Ones<int64_t>({2, 1, 1})}, {"Parents", Ones<int64_t>({2, 1, 1})}},
        {"Out"},
        ""},
       "'Parents' has the value 1 at position 0, expected 0 to 0"},
      {{"sparse_momentum",
        {{"Param", x},
         {"Grad", Ones({1, 2})},
         {"Velocity", x},
         {"Index", Ints({3})},
         {"LearningRate", Ones({1})}},
        {"ParamOut", "VelocityOut"},
        "axis=0"},
       "input 'Index' has 3, expected less than 3"},
      {{"shard_index", {{"X", Column({4, 20})}}, {"Out"}, "index_num=20, nshards=2, shard_id=0"},
       "'X' has the value 20 at position 1, expected 0 to 19"},
      {{"bincount", {{"X", Ints({1, -2})}}, {"Out"}, ""}, "'X' has the value -2 at position 1"},
      {{"bincount", {{"X", Ints({int64_t{1} << 60})}}, {"Out"}, ""}, "'X' has the value 11529215"},
  });
}

TEST(IndexErrorsTest, ShapesThatDoNotFitAreErrors) {
  const Tensor x = Ones({3, 2});
  const Tensor mask = Tensor::Of<bool>({2}, {true, false});
  ExpectRefusals({
      {{"put_along_axis",
        {{"Input", x}, {"Index", Ints({0})}, {"Value", Ones({1})}},
        {"Result"},
        "Axis=1"},
       "'Index' has shape [1], expected to fit into"},
      {{"index_add",
        {{"X", x}, {"Index", Ints({0})}, {"AddValue", Ones({2, 2})}},
        {"Out"},
        "axis=0"},
       "'AddValue' has shape [2,2], expected [1,2]"},
      {{"index_put", {{"x", x}, {"indices", Ints({0, 1})}, {"value", Ones({3, 2})}}, {"out"}, ""},
       "'value' has shape [3,2], expected one that broadcasts to [2,2]"},
      {{"index_put", {{"x", x}, {"indices", mask}, {"value", Ones({1})}}, {"out"}, ""},
       "a mask of 'indices' has shape [2]"},
      {{"index_put",
        {{"x", x},
         {"indices", Ints({0})},
         {"indices", Ints({0})},
         {"indices", Ints({0})},
         {"value", Ones({1})}},
        {"out"},
        ""},
       "'indices' name more dimensions than 'x'"},
      {{"searchsorted", {{"SortedSequence", x}, {"Values", Ones({2, 2})}}, {"Out"}, ""},
       "expected as many rows"},
      {{"lerp", {{"X", x}, {"Y", Ones({4})}, {"Weight", Ones({1})}}, {"Out"}, ""}, "[3,2]"},
      {{"atan2", {{"X1", x}, {"X2", Ones({2})}}, {"Out"}, ""}, "expected one shape"},
      {{"isclose", {{"Input", x}, {"Other", Ones({2})}}, {"Out"}, ""}, "expected one shape"},
      {{"kthvalue", {{"X", x}}, {"Out", "Indices"}, "k=3"}, "attribute 'k' is 3 for 'X' [3,2]"},
      {{"mode", {{"X", Ones({2, 0})}}, {"Out", "Indices"}, ""}, "has no element to choose"},
      {{"diagonal", {{"Input", x}}, {"Out"}, "axis1=0, axis2=-2"}, "are both 0 of [3,2]"},
      {{"trace", {{"Input", Ones({3})}}, {"Out"}, ""}, "'axis2' is 1, outside of rank 1"},
      {{"fill_diagonal", {{"X", Ones({3, 2, 3})}}, {"Out"}, "value=1.0"},
       "expected a matrix or dimensions of one length"},
      {{"unfold", {{"X", Ones({1, 1, 2, 2})}}, {"Y"}, "kernel_sizes=[3,3]"},
       "is smaller than the window"},
      {{"fold", {{"X", Ones({1, 4, 3})}}, {"Y"}, "kernel_sizes=[2,2], output_sizes=[3,3]"},
       "'X' has shape [1,4,3], expected [n, a multiple of 4,4]"},
      {{"frame", {{"X", Ones({3})}}, {"Out"}, "frame_length=4, hop_length=1"},
       "'frame_length' 4 is more than the 3 elements"},
      {{"channel_shuffle", {{"X", Ones({1, 4, 1, 1})}}, {"Out"}, "groups=3"},
       "4 channels, expected a multiple of 'groups' 3"},
      {{"temporal_shift", {{"X", Ones({4, 4, 1, 1})}}, {"Out"}, "seg_num=3"},
       "there are 4 frames, expected a multiple of 'seg_num' 3"},
      {{"repeat_interleave", {{"X", x}, {"RepeatsTensor", Ints({1, -1, 1})}}, {"Out"}, "dim=0"},
       "'RepeatsTensor' has the value -1"},
      {{"broadcast_tensors", {{"X", x}, {"X", Ones({4})}}, {"Out"}, ""}, "does not broadcast"},
      {{"crop_tensor", {{"X", x}}, {"Out"}, "shape=[2,2], offsets=[2,0]"}, "more than 'X' [3,2]"},
  });
}

TEST(IndexErrorsTest, AttributesThatMeanNothingAreErrors) {
  const Tensor x = Ones({3, 2});
  ExpectRefusals({
      {{"put_along_axis",
        {{"Input", x}, {"Index", Column({0})}, {"Value", Ones({1, 1})}},
        {"Result"},
        "Axis=0, Reduce=\"median\""},
       "attribute 'Reduce' is 'median'"},
      {{"shard_index", {{"X", Column({4})}}, {"Out"}, "index_num=20, nshards=2, shard_id=2"},
       "attribute 'shard_id' is 2, expected 0 to 1"},
      {{"histogram", {{"X", x}}, {"Out"}, "bins=0"}, "attribute 'bins' is 0"},
      {{"polygamma", {{"x", x}}, {"out"}, "n=-1"}, "attribute 'n' is -1"},
      {{"allclose", {{"Input", x}, {"Other", x}}, {"Out"}, "rtol=\"much\""},
       "attribute 'rtol' is 'much', expected a number"},
      {{"einsum", {{"Operands", x}}, {"Out"}, "equation=\"ij\""}, "'->'"},
      {{"einsum", {{"Operands", x}}, {"Out"}, "equation=\"ij->ik\""}, "one that no operand has"},
      {{"einsum", {{"Operands", x}}, {"Out"}, "equation=\"ijk->i\""}, "does not fit the operand"},
      {{"einsum", {{"Operands", x}, {"Operands", x}}, {"Out"}, "equation=\"ij,jk->ik\""},
       "has another length elsewhere"},
      {{"pixel_unshuffle", {{"X", Ones({1, 1, 2, 2})}}, {"Out"}, "downscale_factor=0"},
       "attribute 'downscale_factor' is 0"},
  });
}

// 256 elements at one place are more than an uint8 counts.
TEST(PutAlongAxisTest, MeansOfManySmallIntegers) {
  const OpRun run = {"put_along_axis",
                     {{"Input", Ones<uint8_t>({1, 1})},
                      {"Index", Tensor::Of<int64_t>({1, 255}, std::vector<int64_t>(255))},
                      {"Value", Ones<uint8_t>({1, 255})}},
                     {"Result"},
                     "Axis=1, Reduce=\"mean\""};
  EXPECT_THAT(RunOp(run), IsOk());
}

}  // namespace
}  // namespace interp::testing
