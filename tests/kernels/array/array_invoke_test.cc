// The library's ops on arrays: the same results as in programs, gradients included.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/array/tape.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/arrays.h"

namespace interp {
namespace {

using testing::ArrayOf;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FloatsOf;
using testing::Got;
using testing::IsOk;
using testing::MakeRuntime;
using testing::Numbers;
using testing::OpRun;
using testing::OutputsOf;
using testing::SameBits;

constexpr Place kSim{PlaceKind::kSim, 0};

class ArrayInvoke : public ::testing::Test {
 protected:
  std::shared_ptr<Device> device_ = testing::MakeDevice({});
  std::unique_ptr<ArrayRuntime> runtime_ =
      MakeRuntime({.engine = {.workers = 2, .devices = {device_}}});
  Array Of(const Tensor& tensor, Place place = {}) {
    return Got(runtime_->FromTensor(tensor, place));
  }
  Array Op(absl::string_view type, const ArraySlots& inputs, const std::vector<Attr>& attrs = {},
           const InvokeOptions& options = {}) {
    return Got(Invoke(*runtime_, type, inputs, attrs, options));
  }
};

TEST_F(ArrayInvoke, GivesTheBitsOfPrograms) {
  const Tensor x = Numbers({2, 3, 9, 9}, 1);
  const Tensor w = Numbers({4, 3, 3, 3}, 2);
  const std::vector<Tensor> expected = OutputsOf({.type = "conv2d",
                                                  .inputs = {{"Input", x}, {"Filter", w}},
                                                  .outputs = {"Output"},
                                                  .attrs = "strides=[2,2], paddings=[1,1]"});
  for (const Place place : {Place{}, kSim}) {
    for (int i = 0; i < 2; ++i) {
      const Array y =
          Op("conv2d", {{"Input", {Of(x, place)}}, {"Filter", {Of(w, place)}}},
             {{"strides", std::vector<int32_t>{2, 2}}, {"paddings", std::vector<int32_t>{1, 1}}});
      EXPECT_EQ(y.place(), place);
      EXPECT_TRUE(SameBits(*y.Read(), expected[0]));
    }
  }
}

TEST_F(ArrayInvoke, InputsOfAnotherDTypeAreCast) {
  const Array y = Op("elementwise_add", {{"X", {Of(Tensor::Of<float>({2}, {1, 2}))}},
                                         {"Y", {Of(Tensor::Of<double>({2}, {3, 4}))}}});
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_THAT(FloatsOf(y), ElementsAre(4, 6));
}

TEST_F(ArrayInvoke, AttributesAreCheckedAtTheCall) {
  const Array x = Of(Numbers({2, 2}, 1));
  EXPECT_THAT(Invoke(*runtime_, "conv2d", {{"Input", {x}}, {"Filter", {x}}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "conv2d: "));
  EXPECT_THAT(Invoke(*runtime_, "softmax", {{"X", {x}}}, {{"axis", 7}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "softmax: "));
  EXPECT_THAT(Invoke(*runtime_, "while", {}),
              FailsWith(absl::StatusCode::kUnimplemented, "a block"));
}

TEST_F(ArrayInvoke, ValuesThatShapesDependOnAreWaitedFor) {
  const Array shape = Of(Tensor::Of<int32_t>({2}, {2, 3}));
  const Array filled = Op("fill_constant", {{"ShapeTensor", {shape}}}, {{"value", 5.0F}});
  EXPECT_EQ(filled.shape(), Shape({2, 3}));
  EXPECT_EQ(FloatsOf(filled), std::vector<float>(6, 5));
  const Array where =
      Op("where_index",
         {{"Condition", {Op("cast", {{"X", {filled}}}, {{"in_dtype", 5}, {"out_dtype", 0}})}}});
  EXPECT_EQ(where.shape(), Shape({6, 2}));
}

TEST_F(ArrayInvoke, UpdatesInPlaceOnTheHostAndOnADevice) {
  for (const Place place : {Place{}, kSim}) {
    const Array w = ArrayOf(*runtime_, {2}, {1, 2}, place);
    const Array before = *w.CopyTo(Place{});
    const Array gradient = ArrayOf(*runtime_, {2}, {10, 20}, place);
    const Array rate = ArrayOf(*runtime_, {1}, {0.1F}, place);
    for (int i = 0; i < 2; ++i) {
      Op("sgd", {{"Param", {w}}, {"Grad", {gradient}}, {"LearningRate", {rate}}}, {},
         {.into = {{"ParamOut", {w}}}});
    }
    EXPECT_THAT(FloatsOf(w), ElementsAre(-1, -2));
    EXPECT_THAT(FloatsOf(before), ElementsAre(1, 2));
  }
}

TEST_F(ArrayInvoke, RowsUpdateSomeRows) {
  const Array w = ArrayOf(*runtime_, {3, 1}, {1, 2, 3});
  const Array gradient =
      *runtime_->FromRows(Tensor::Of<float>({2, 1}, {10, 20}), {.rows = {2, 0}, .height = 3});
  const Array both = *runtime_->NewRows({3, 1}, DType::kFloat32);
  Op("sum", {{"X", {gradient, gradient}}}, {}, {.into = {{"Out", {both}}}});
  Op("sgd", {{"Param", {w}}, {"Grad", {both}}, {"LearningRate", {ArrayOf(*runtime_, {1}, {0.1F})}}},
     {}, {.into = {{"ParamOut", {w}}}});
  EXPECT_THAT(FloatsOf(w), ElementsAre(-3, 2, 1));
}

// What kernels give as rows is checked against the array, which readers trust.
TEST_F(ArrayInvoke, RowsOfAnotherWidthAreRefused) {
  const Array w = Of(Numbers({10, 8}, 1));
  const Array ids = Of(Tensor::Of<int64_t>({2}, {3, 4}));
  const Array rows = *runtime_->NewRows({10, 4}, DType::kFloat32);
  const auto into = [&](const Array& out, const Tensor& gradient) {
    return Invoke(*runtime_, "lookup_table_v2_grad",
                  {{"W", {w}}, {"Ids", {ids}}, {"Out@GRAD", {Of(gradient)}}}, {{"is_sparse", true}},
                  {.into = {{"W@GRAD", {out}}}});
  };
  EXPECT_FALSE(into(rows, Numbers({2, 8}, 2)).ok() && rows.ReadRows().ok());
  const Array doubles = *runtime_->NewRows({10, 8}, DType::kFloat64);
  EXPECT_FALSE(into(doubles, Numbers({2, 8}, 2)).ok() && doubles.ReadRows().ok());
  const Array sums = *runtime_->NewRows({10, 2}, DType::kFloat32);
  const Array right = *runtime_->NewRows({10, 8}, DType::kFloat32);
  ASSERT_THAT(into(right, Numbers({2, 8}, 2)), IsOk());
  EXPECT_THAT(right.ReadRows(), IsOk());
  EXPECT_FALSE(
      Invoke(*runtime_, "sum", {{"X", {right, right}}}, {}, {.into = {{"Out", {sums}}}}).ok() &&
      sums.ReadRows().ok());
}

TEST_F(ArrayInvoke, RowsThatWereReadStayAsTheyAre) {
  const Array rows =
      *runtime_->FromRows(Tensor::Of<float>({1, 2}, {1, 2}), {.rows = {1}, .height = 3});
  const absl::StatusOr<Array::Rows> before = rows.ReadRows();
  ASSERT_THAT(before, IsOk());
  Op("scale", {{"X", {rows}}}, {{"scale", 3.0F}}, {.into = {{"Out", {rows}}}});
  EXPECT_THAT(testing::Values<float>((*rows.ReadRows()).values), ElementsAre(3, 6));
  EXPECT_THAT(testing::Values<float>(before->values), ElementsAre(1, 2));
}

// The values that a shape was inferred from are those that the kernel sees.
TEST_F(ArrayInvoke, ShapesAndKernelsSeeTheSameValues) {
  const Array x = Of(Numbers({100}, 1));
  const Array ends = Of(Tensor::Of<int32_t>({1}, {1}));
  engine::Engine& engine = runtime_->engine();
  std::atomic<bool> may_end = false;
  const engine::Variable gate = x.variable();
  // Holds up whoever reads x until `ends` is another.
  ASSERT_THAT(engine.Push(
                  [&] {
                    while (!may_end) std::this_thread::yield();
                  },
                  {.writes = {}, .updates = {&gate, 1}}, {.name = "hold"}),
              IsOk());
  const Array out = Op("slice", {{"Input", {x}}, {"EndsTensor", {ends}}},
                       {{"axes", std::vector<int64_t>{0}}, {"starts", std::vector<int64_t>{0}}});
  ASSERT_THAT(ends.CopyFrom(Tensor::Of<int32_t>({1}, {100})), IsOk());
  may_end = true;
  EXPECT_EQ(FloatsOf(out).size(), 1);
}

// loss = mean(softmax cross entropy of relu(x w + b) v), by hand-made differences.
class ArrayTape : public ArrayInvoke {
 protected:
  Array Loss(const Array& x, const Array& w, const Array& b, const Array& v) {
    const Array h =
        Op("relu", {{"X",
                     {Op("elementwise_add",
                         {{"X", {Op("matmul_v2", {{"X", {x}}, {"Y", {w}}})}}, {"Y", {b}}})}}});
    const Array y = Op("matmul_v2", {{"X", {h}}, {"Y", {v}}});
    // The second half, seen in another shape, and used twice.
    const Array half = Got(Got(y.Slice(2, 4)).Reshape({-1}));
    return Op("mean", {{"X", {Op("elementwise_mul", {{"X", {half}}, {"Y", {half}}})}}});
  }
};

TEST_F(ArrayTape, GradientsAreThoseOfDifferences) {
  for (const Place place : {Place{}, kSim}) {
    const Array x = Of(Numbers({4, 3}, 1), place);
    Tensor w = Numbers({3, 5}, 2);
    const Array b = Of(Numbers({5}, 3), place);
    const Array v = Of(Numbers({5, 2}, 4), place);
    const Array unused = Of(Numbers({5, 2}, 4), place);
    std::vector<Array> gradients;
    {
      Tape tape;
      const Array with = Of(w, place);
      const Array loss = Loss(x, with, b, v);
      absl::StatusOr<std::vector<Array>> found = tape.Backward(loss, {with, b, unused});
      ASSERT_THAT(found, IsOk());
      gradients = *std::move(found);
      EXPECT_THAT(Invoke(*runtime_, "relu", {{"X", {with}}}, {}, {.into = {{"Out", {with}}}}),
                  FailsWith(absl::StatusCode::kInvalidArgument, "that a recorded op uses"));
      EXPECT_THAT(tape.Backward(x, {with}),
                  FailsWith(absl::StatusCode::kInvalidArgument, "expected one float"));
    }
    EXPECT_FALSE(gradients[2]);
    EXPECT_EQ(gradients[1].shape(), b.shape());
    const std::vector<float> gradient = FloatsOf(gradients[0]);
    for (int i = 0; i < 15; ++i) {
      constexpr float kStep = 1e-2F;
      const float at = w.data<float>()[i];
      w.mutable_data<float>()[i] = at + kStep;
      const float above = FloatsOf(Loss(x, Of(w, place), b, v))[0];
      w.mutable_data<float>()[i] = at - kStep;
      const float below = FloatsOf(Loss(x, Of(w, place), b, v))[0];
      w.mutable_data<float>()[i] = at;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 2e-3) << i;
    }
  }
}

TEST_F(ArrayTape, GradientsOfSparseLookupsAreRows) {
  const Array table = Of(Numbers({6, 2}, 1));
  const Array ids = Of(Tensor::Of<int64_t>({3}, {4, 1, 4}));
  Tape tape;
  const Array rows = Op("lookup_table_v2", {{"W", {table}}, {"Ids", {ids}}}, {{"is_sparse", true}});
  const Array loss = Op("mean", {{"X", {rows}}});
  const absl::StatusOr<std::vector<Array>> gradients = tape.Backward(loss, {table});
  ASSERT_THAT(gradients, IsOk());
  ASSERT_TRUE((*gradients)[0].is_rows());
  const absl::StatusOr<Array::Rows> read = (*gradients)[0].ReadRows();
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->index.rows, ElementsAre(4, 1, 4));
  EXPECT_EQ(testing::Values<float>(read->values), std::vector<float>(6, 1.0F / 6));
}

TEST_F(ArrayTape, TapesEndInAnyOrder) {
  auto first = std::make_unique<Tape>();
  auto second = std::make_unique<Tape>();
  first.reset();
  EXPECT_EQ(Tape::Current(), second.get());
  {
    const Tape::Pause pause;
    second.reset();
  }
  EXPECT_EQ(Tape::Current(), nullptr);
}

TEST_F(ArrayTape, NamesOfSlotsMayEndBeforeTheTape) {
  const Array x = Of(Tensor::Of<float>({1}, {3}));
  Tape tape;
  auto slot = std::make_unique<std::string>("X");
  const Array y = Op("square", {{*slot, {x}}});
  slot.reset();
  EXPECT_THAT(FloatsOf((*tape.Backward(y, {x}))[0]), ElementsAre(6));
}

TEST_F(ArrayTape, WhatWasWrittenSinceHasNoGradient) {
  const auto refused = [](const auto& result) {
    EXPECT_THAT(result, FailsWith(absl::StatusCode::kInvalidArgument, "would see other values"));
  };
  const Array x = Of(Tensor::Of<float>({1}, {3}));
  Tape tape;
  refused(Invoke(*runtime_, "scale", {{"X", {x}}}, {{"scale", 3.0F}}, {.into = {{"Out", {x}}}}));
  const Array y = Op("square", {{"X", {x}}});
  refused(x.CopyFrom(y));
  refused(x.CopyFrom(Tensor::Of<float>({1}, {4})));
  EXPECT_THAT(tape.Backward(y, {x}), IsOk());
  {
    const Tape::Pause pause;
    ASSERT_THAT(x.CopyFrom(y), IsOk());
  }
  refused(tape.Backward(y, {x}));
}

TEST_F(ArrayTape, GradientsPassCopiesAndCasts) {
  const Array x = Of(Tensor::Of<float>({2}, {3, 4}));
  const Array w = Of(Tensor::Of<double>({2}, {5, 6}));
  Tape tape;
  const Array there = *x.CopyTo(kSim);
  const Array square = Op("square", {{"X", {there}}});
  const Array back = *square.CopyTo(Place{});
  const Array product = Op("elementwise_mul", {{"X", {back}}, {"Y", {w}}});
  const Array loss = Op("mean", {{"X", {product}}});
  const absl::StatusOr<std::vector<Array>> gradients = tape.Backward(loss, {x, w});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ((*gradients)[0].place(), x.place());
  EXPECT_THAT(FloatsOf((*gradients)[0]), ElementsAre(15, 24));
  EXPECT_EQ((*gradients)[1].dtype(), DType::kFloat64);
  EXPECT_THAT(testing::Values<double>(*(*gradients)[1].Read()), ElementsAre(4.5, 8));
}

TEST_F(ArrayTape, GradientsThatNobodyWantsAreLeftOut) {
  const Array w = Of(Numbers({1, 2}, 1));
  const Array a = Of(Numbers({2, 2}, 2));
  const Array b = Of(Numbers({3, 2}, 3));
  Tape tape;
  const Array all = Op("concat", {{"X", {w, a, b}}}, {{"axis", 0}});
  const auto gradients = tape.Backward(Op("mean", {{"X", {all}}}), {w});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ(FloatsOf((*gradients)[0]), std::vector<float>(2, 1.0F / 12));
}

TEST_F(ArrayTape, GradientsPassComplexNumbers) {
  const Array x = Of(Numbers({4}, 1));
  Tape tape;
  const Array spectrum = Op("fft_r2c", {{"X", {x}}},
                            {{"axes", std::vector<int64_t>{0}},
                             {"normalization", std::string("backward")},
                             {"forward", true},
                             {"onesided", true}});
  const Array twice = Op("elementwise_add", {{"X", {spectrum}}, {"Y", {spectrum}}});
  const Array y = Op("fft_c2r", {{"X", {twice}}},
                     {{"axes", std::vector<int64_t>{0}},
                      {"normalization", std::string("backward")},
                      {"forward", false},
                      {"last_dim_size", int64_t{4}}});
  const auto gradients = tape.Backward(Op("mean", {{"X", {y}}}), {x});
  ASSERT_THAT(gradients, IsOk());
  ASSERT_TRUE((*gradients)[0]);
  for (const float gradient : FloatsOf((*gradients)[0])) EXPECT_NEAR(gradient, 0.5F, 1e-6F);
}

// The tape cannot see that an array of before it is a view of another.
TEST_F(ArrayTape, ViewsOfBeforeTheTapeAreRefusedWhereGradientsPass) {
  const auto refused = [](const auto& result) {
    EXPECT_THAT(result, FailsWith(absl::StatusCode::kInvalidArgument, "share"));
  };
  const Array x = Of(Numbers({2}, 1));
  const Array base = Of(Numbers({2, 2}, 2));
  const Array row = Got(base.At(0));
  const Array other = Got(base.At(1));
  {
    Tape tape;
    ASSERT_THAT(
        Invoke(*runtime_, "scale", {{"X", {x}}}, {{"scale", 3.0F}}, {.into = {{"Out", {row}}}}),
        IsOk());
    refused(tape.Backward(Op("mean", {{"X", {base}}}), {x}));
    EXPECT_THAT(FloatsOf((*tape.Backward(Op("mean", {{"X", {row}}}), {x}))[0]),
                ElementsAre(1.5F, 1.5F));
  }
  Tape tape;
  const Array loss = Op("mean", {{"X", {row}}});
  refused(tape.Backward(loss, {base}));
  refused(tape.Backward(loss, {base, row}));
  // Parameters in one piece of memory.
  EXPECT_THAT(tape.Backward(loss, {row, other}), IsOk());
}

TEST_F(ArrayTape, ACopyOfAnArrayToItselfAddsNothing) {
  const Array x = Of(Numbers({2}, 1));
  Tape tape;
  const Array y = Op("square", {{"X", {x}}});
  ASSERT_THAT(y.CopyFrom(y), IsOk());
  const auto gradients = tape.Backward(Op("mean", {{"X", {y}}}), {y});
  EXPECT_THAT(FloatsOf((*gradients)[0]), ElementsAre(0.5F, 0.5F));
}

TEST_F(ArrayTape, OutputsThatGradientsReadAreThereBesideThoseAskedFor) {
  const Array x = Of(Numbers({2, 3}, 1));
  const Array y = Of(Numbers({3, 2}, 2));
  Tape tape;
  const absl::StatusOr<ArraySlots> out =
      Invoke(*runtime_, "einsum", {{"Operands", {x, y}}}, {{"equation", std::string("ij,jk->ik")}},
             {.outputs = {{"Out", 1}}});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(tape.Backward(Op("mean", {{"X", {(*out)[0].second[0]}}}), {x}), IsOk());
}

TEST_F(ArrayTape, NoGradientPassesWhatHasNone) {
  const Array x = Of(Numbers({3}, 1));
  Tape tape;
  const Array ids = Op("arg_max", {{"X", {x}}}, {{"axis", int64_t{0}}});
  EXPECT_FALSE((*tape.Backward(
      Op("mean", {{"X", {Op("cast", {{"X", {ids}}}, {{"in_dtype", 3}, {"out_dtype", 5}})}}}),
      {x}))[0]);
}

}  // namespace
}  // namespace interp
