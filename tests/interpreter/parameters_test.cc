// Parameters and feeds that are not what the program says, cores that share parameters, and what
// holds after a run that failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "interpreter/interpreter_core.h"
#include "tests/testing/devices.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe.h"
#include "tests/testing/probe_cores.h"
#include "tests/testing/test_program.h"

namespace interp::testing::parameters_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// w is mixed with x in place, twice.
Program UpdateTwice() {
  return TestProgram(DType::kInt64)
      .Feed("x", {-1})
      .Param("w", {-1})
      .AddOp("update", {{"Param", {"w"}}, {"X", {"x"}}}, {{"ParamOut", {"w"}}}, {{"tag", 1}})
      .AddOp("update", {{"Param", {"w"}}, {"X", {"x"}}}, {{"ParamOut", {"w"}}}, {{"tag", 2}})
      .Fetch("w")
      .Build();
}

TEST(ParametersTest, WhatInstructionsWriteIsOfTheDeclaredDType) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int8_t>({1, 2});
  const auto core = MakeProbeCore(UpdateTwice(), scope);
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}),
              FailsWith(StatusCode::kInvalidArgument, "parameter 'w' is int8[2]"));
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({1, 2});
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}), IsOk());
  // Also when it changes between runs.
  scope->FindOrCreate("w")->tensor = VectorOf<int8_t>({1, 2});
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}),
              FailsWith(StatusCode::kInvalidArgument, "parameter 'w' is int8[2]"));
}

// Nothing says what "x" is, so its dtype is that of the kernel.
TEST(ParametersTest, UndeclaredFeedsAreOfTheDTypeThatKernelsRead) {
  Program program =
      TestProgram(DType::kInt64).Feed("x", {-1}).Call("split2", {"x"}, "a").Fetch("a").Build();
  program.blocks[0].ops[1].outputs = {{"A", {program.Intern("a")}}, {"B", {program.Intern("b")}}};
  std::erase_if(program.blocks[0].vars, [&](const Var& v) { return v.id == program.Find("x"); });
  const auto core = MakeProbeCore(program, nullptr);
  ASSERT_NE(core, nullptr);
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}), IsOk());
  EXPECT_THAT(core->Run({VectorOf<int8_t>({1, 2})}),
              FailsWith(StatusCode::kInvalidArgument, "input 'x' is int8[2]"));
  EXPECT_THAT(core->Run({VectorOf<int64_t>({3, 4})}), IsOk());
}

TEST(ParametersTest, AFedParameterIsCopied) {
  Program program =
      TestProgram(DType::kInt64).Feed("w", {-1}).Call("mix", {"w"}, "a").Fetch("a").Build();
  for (Var& var : program.blocks[0].vars) {
    if (var.id == program.Find("w")) var.persistable = true;
  }
  auto scope = std::make_shared<Scope>();
  const auto core = MakeProbeCore(program, scope);
  std::vector<int64_t> values = {1, 2, 3};
  bool released = false;
  {
    Tensor w;
    w.dtype = DType::kInt64;
    w.shape = {3};
    w.SetMemory(BorrowBuffer(values.data(), 24, false, [&] { released = true; }), values.data());
    EXPECT_THAT(core->Run({w}), IsOk());
  }
  EXPECT_TRUE(released);
  values = {0, 0, 0};
  const Tensor& kept = scope->Find("w")->tensor;
  ASSERT_TRUE(kept.has_memory());
  EXPECT_EQ(kept.data<int64_t>()[2], 3);
}

// Two cores may read the same parameters side by side, but not while one writes them.
TEST(ParametersTest, CoresThatWriteTheSameParametersRunOneAtATime) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({1, 2});
  const auto core = MakeProbeCore(UpdateTwice(), scope);
  const auto clone = core->Clone();
  Probe probe;
  absl::Status inner;
  probe.SetHook([&](int32_t tag) {
    if (tag == 2 && inner.ok()) inner = clone->Run({VectorOf<int64_t>({1, 2})}).status();
  });
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}), IsOk());
  EXPECT_THAT(inner, FailsWith(StatusCode::kFailedPrecondition, "one at a time"));
  probe.SetHook(nullptr);
  EXPECT_THAT(clone->Run({VectorOf<int64_t>({1, 2})}), IsOk());
}

// Variables are as they were but for parameters that ops before the failure have updated.
TEST(ParametersTest, AFailedRunLeavesTheUpdatesThatWereMade) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({5, 7});
  const auto core = MakeProbeCore(UpdateTwice(), scope);
  Probe probe;
  probe.FailAt(2);
  EXPECT_FALSE(core->Run({VectorOf<int64_t>({1, 2})}).ok());
  const Tensor half = scope->Find("w")->tensor;
  EXPECT_NE(half.data<int64_t>()[0], 5);
  probe.FailAt(0);
  scope->Find("w")->tensor = VectorOf<int64_t>({5, 7});
  const auto again = core->Run({VectorOf<int64_t>({1, 2})});
  ASSERT_THAT(again, IsOk());
  EXPECT_NE((*again)[0].data<int64_t>()[0], half.data<int64_t>()[0]);
}

// The clone's frames are made in its first run: a failure there is told again, not fallen over.
TEST(ParametersTest, AFailedCloneMayTryAgain) {
  CoreOptions options = ProbeOptions();
  options.plan.place = {PlaceKind::kSim, 0};
  const Program program =
      TestProgram(DType::kInt64).Feed("x", {-1}).Call("mix", {"x"}, "a").Fetch("a").Build();
  const auto core = MakeProbeCore(program, nullptr, options);
  std::vector<std::unique_ptr<InterpreterCore>> clones;
  absl::Status failed;
  while (failed.ok() && clones.size() < 1000) {
    clones.push_back(core->Clone());
    failed = clones.back()->Run({VectorOf<int64_t>({1})}).status();
  }
  ASSERT_FALSE(failed.ok()) << "streams of a device are limited";
  EXPECT_EQ(clones.back()->Run({VectorOf<int64_t>({1})}).status().message(), failed.message());
  clones.erase(clones.begin());
  EXPECT_THAT(clones.back()->Run({VectorOf<int64_t>({1})}), IsOk());
}

// Constants are copied to the device in the first run, or in a later one when that found it full.
TEST(ParametersTest, ConstantsGoToTheDeviceOnceItHasRoom) {
  constexpr size_t kCapacity = 1 << 20;
  CoreOptions options = ProbeOptions();
  options.plan.place = {PlaceKind::kSim, 0};
  options.devices = {MakeDevice({.capacity_bytes = kCapacity})};
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>(std::vector<int64_t>(kCapacity / 32, 5));
  const auto core = MakeProbeCore(TestProgram(DType::kInt64)
                                      .Feed("x", {-1})
                                      .Param("w", {-1})
                                      .Call("mix", {"w", "x"}, "a")
                                      .Fetch("a")
                                      .Build(),
                                  scope, options);
  const Tensor x = VectorOf<int64_t>({1});
  const auto filled = options.devices[0]->AllocateRaw(kCapacity / 8 * 7);
  ASSERT_THAT(filled, IsOk());
  EXPECT_THAT(core->Run({x}), FailsWith(StatusCode::kResourceExhausted, "sim:0"));
  options.devices[0]->FreeRaw(*filled, kCapacity / 8 * 7);
  EXPECT_THAT(core->Run({x}), IsOk());
}

// What is computed of a constant once is computed again when it has another value.
TEST(ParametersTest, CastsFollowTheirConstants) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int32_t>({7, -3});
  const auto core = MakeProbeCore(
      TestProgram(DType::kInt64)
          .Param("w", {-1}, DType::kInt32)
          .AddOp("cast", {{"X", {"w"}}}, {{"Out", {"wide"}}}, {{"in_dtype", 2}, {"out_dtype", 3}})
          .Fetch("wide")
          .Build(),
      scope);
  for (const int32_t first : {7, 8}) {
    scope->FindOrCreate("w")->tensor = VectorOf<int32_t>({first, -3});
    const auto out = core->Run({});
    ASSERT_THAT(out, IsOk());
    EXPECT_THAT(Values<int64_t>((*out)[0]), ElementsAre(first, -3));
    EXPECT_THAT(Values<int64_t>((*core->Clone()->Run({}))[0]), ElementsAre(first, -3));
  }
}

absl::Status ThrowingInfer(InferContext&) { throw std::runtime_error("no shape today"); }

TEST(ParametersTest, ExceptionsOfInferenceBecomeErrors) {
  OpRegistry ops;
  for (const absl::string_view type : ProbeOps().Types()) ops.Add(*ProbeOps().Find(type));
  ops.Add({.type = "throwing",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .infer = ThrowingInfer,
           .kernels = {{DType::kUndefined, [](KernelContext&) { return absl::OkStatus(); }}}});
  CoreOptions options = ProbeOptions();
  options.ops = &ops;
  const auto core = MakeProbeCore(
      TestProgram(DType::kInt64).Feed("x", {-1}).Call("throwing", {"x"}, "a").Fetch("a").Build(),
      nullptr, options);
  const auto out = core->Run({VectorOf<int64_t>({1})});
  EXPECT_THAT(out.status().message(), HasSubstr("no shape today"));
}

}  // namespace
}  // namespace interp::testing::parameters_test
