#include "interpreter/run/prepare_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/test_program.h"

namespace interp::testing::prepare_kernels_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// What `prepare` of "keep" was called for: elements of X by tag.
std::mutex mutex;
std::multimap<int32_t, int64_t> prepared;  // guarded by `mutex`
bool throws = false;

std::multimap<int32_t, int64_t> TakePrepared() {
  const std::lock_guard guard(mutex);
  return std::exchange(prepared, {});
}

struct Tag {
  int32_t tag = 0;
};
Tag ReadTag(AttrReader& reader) { return {reader.Int("tag", 0)}; }

struct Kept : KernelState {
  int64_t elements = 0;
};

absl::Status PrepareKeep(KernelContext& ctx) {
  const std::lock_guard guard(mutex);
  prepared.emplace(ctx.attrs<Tag>().tag, ctx.input(0).numel());
  if (throws) throw std::runtime_error("not today");
  ctx.state<Kept>().elements = ctx.input(0).numel();
  return absl::OkStatus();
}

// Out = what is kept.
absl::Status RunKeep(KernelContext& ctx) {
  ctx.output(0).mutable_data<int64_t>()[0] = ctx.state<Kept>().elements;
  return absl::OkStatus();
}

absl::Status InferOne(InferContext& ctx) {
  ctx.SetShape(0, {1});
  return absl::OkStatus();
}

// Out has twice the elements of X.
absl::Status InferTwice(InferContext& ctx) {
  ctx.SetShape(0, {2 * ctx.input(0).numel()});
  return absl::OkStatus();
}

// Out has as many elements as X says.
absl::Status InferValue(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const auto values, InferContext::Integers(ctx.input(0)));
  ctx.SetShape(0, Shape(absl::MakeConstSpan(values)));
  return absl::OkStatus();
}

absl::Status FillOnes(KernelContext& ctx) {
  std::fill_n(ctx.output(0).mutable_data<int64_t>(), ctx.output(0).numel(), 1);
  return absl::OkStatus();
}

OpRegistry MakeOps() {
  OpRegistry ops;
  for (const absl::string_view type : {"feed", "fetch"}) ops.Add(*ProbeOps().Find(type));
  OpDef keep = {.type = "keep",
                .inputs = {{"X"}, {"W", kOptional}},
                .outputs = {{"Out"}},
                .parse = ParseAttrs<Tag, ReadTag>,
                .infer = InferOne};
  keep.kernels = {{.dtype = DType::kInt64, .run = RunKeep, .prepare = PrepareKeep}};
  ops.Add(keep);
  OpDef twice = {.type = "twice", .inputs = {{"X"}}, .outputs = {{"Out"}}, .infer = InferTwice};
  twice.kernels = {{DType::kInt64, FillOnes}};
  ops.Add(twice);
  OpDef sized = twice;
  sized.type = "sized";
  sized.inputs = {{"X", kValueInInfer}};
  sized.infer = InferValue;
  ops.Add(sized);
  return ops;
}

CoreOptions Options(int num_threads = 2) {
  static const OpRegistry& ops = *new OpRegistry(MakeOps());
  CoreOptions options{.scheduler = SchedulerKind::kTrace, .num_threads = num_threads};
  options.ops = &ops;
  return options;
}

Tensor Ones(int64_t size) {
  return Tensor::Of<int64_t>({size}, std::vector<int64_t>(static_cast<size_t>(size), 1));
}

TestProgram Builder() { return TestProgram(DType::kInt64); }

std::unique_ptr<InterpreterCore> MakeCore(const Program& program, const CoreOptions& options,
                                          std::shared_ptr<Scope> scope = nullptr) {
  auto core = InterpreterCore::Create(program, {}, {}, std::move(scope), options);
  EXPECT_THAT(core, IsOk());
  return *std::move(core);
}

// What "keep" had kept, of each fetch.
std::vector<int64_t> RunOn(InterpreterCore& core, const std::vector<Tensor>& feeds) {
  const auto out = core.Run(feeds);
  EXPECT_THAT(out, IsOk());
  std::vector<int64_t> kept;
  if (out.ok()) {
    for (const Tensor& tensor : *out) kept.push_back(tensor.data<int64_t>()[0]);
  }
  return kept;
}

Program TwoSizes() {
  return Builder()
      .Feed("x", {-1})
      .Call("twice", {"x"}, "a")
      .Call("keep", {"x"}, "b", {{"tag", 1}})
      .Call("keep", {"a"}, "c", {{"tag", 2}})
      .Fetch("b")
      .Fetch("c")
      .Build();
}

TEST(PrepareKernelsTest, KnowsTheShapesOfTheFirstRunAndOfNoOther) {
  const auto core = MakeCore(TwoSizes(), Options());
  EXPECT_THAT(TakePrepared(), IsEmpty());
  EXPECT_THAT(RunOn(*core, {Ones(3)}), ElementsAre(3, 6));
  EXPECT_THAT(TakePrepared(), UnorderedElementsAre(Pair(1, 3), Pair(2, 6)));
  EXPECT_THAT(RunOn(*core, {Ones(4)}), ElementsAre(3, 6));
  EXPECT_THAT(TakePrepared(), IsEmpty());
}

TEST(PrepareKernelsTest, LeavesAllToTheRunOfOneThread) {
  EXPECT_THAT(RunOn(*MakeCore(TwoSizes(), Options(/*num_threads=*/1)), {Ones(3)}),
              ElementsAre(0, 0));
  EXPECT_THAT(TakePrepared(), IsEmpty());
}

TEST(PrepareKernelsTest, LeavesErrorsToTheRun) {
  throws = true;
  EXPECT_THAT(RunOn(*MakeCore(TwoSizes(), Options()), {Ones(3)}), ElementsAre(0, 0));
  throws = false;
  EXPECT_THAT(TakePrepared(), SizeIs(2));
}

TEST(PrepareKernelsTest, FollowsANameThatIsWrittenTwice) {
  const Program program = Builder()
                              .Feed("x", {-1})
                              .Declare("a", {-1})
                              .Call("twice", {"x"}, "a")
                              .Call("keep", {"a"}, "b", {{"tag", 1}})
                              .Call("twice", {"a"}, "d")
                              .Call("twice", {"d"}, "a")
                              .Call("keep", {"a"}, "c", {{"tag", 2}})
                              .Fetch("b")
                              .Fetch("c")
                              .Build();
  EXPECT_THAT(RunOn(*MakeCore(program, Options()), {Ones(3)}), ElementsAre(6, 24));
  TakePrepared();
}

// Values that are fed are known; those that an op computes are not.
TEST(PrepareKernelsTest, LeavesShapesThatOnlyTheRunKnows) {
  const Program program = Builder()
                              .Feed("x", {-1})
                              .Call("twice", {"x"}, "computed")
                              .Call("sized", {"computed"}, "a")
                              .Call("sized", {"x"}, "b")
                              .Call("keep", {"a"}, "c", {{"tag", 1}})
                              .Call("keep", {"b"}, "d", {{"tag", 2}})
                              .Call("keep", {"x"}, "e", {{"tag", 3}})
                              .Fetch("c")
                              .Fetch("d")
                              .Fetch("e")
                              .Build();
  const Tensor x = Tensor::Of<int64_t>({1}, {5});
  EXPECT_THAT(RunOn(*MakeCore(program, Options()), {x}), ElementsAre(0, 5, 1));
  EXPECT_THAT(TakePrepared(), UnorderedElementsAre(Pair(2, 5), Pair(3, 1)));
}

TEST(PrepareKernelsTest, BeginsAnewWithAnotherParameter) {
  const Program program = Builder()
                              .Param("w", {-1})
                              .Feed("x", {-1})
                              .AddOp("keep", {{"X", {"x"}}, {"W", {"w"}}}, {{"Out", {"a"}}})
                              .AddOp("keep", {{"X", {"w"}}}, {{"Out", {"b"}}}, {{"tag", 1}})
                              .Fetch("a")
                              .Fetch("b")
                              .Build();
  const auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Ones(2);
  const auto core = MakeCore(program, Options(), scope);
  EXPECT_THAT(RunOn(*core, {Ones(3)}), ElementsAre(3, 2));
  scope->FindOrCreate("w")->tensor = Ones(4);
  EXPECT_THAT(RunOn(*core, {Ones(3)}), ElementsAre(3, 4));
  TakePrepared();
}

// The program declares no dtype: the run finds that there is another one.
TEST(PrepareKernelsTest, TakesNoParameterOfAnotherDType) {
  const Program program = Builder()
                              .Param("w", {-1}, DType::kUndefined)
                              .Feed("x", {-1})
                              .AddOp("keep", {{"X", {"x"}}, {"W", {"w"}}}, {{"Out", {"a"}}})
                              .AddOp("keep", {{"X", {"x"}}}, {{"Out", {"b"}}}, {{"tag", 1}})
                              .AddOp("keep", {{"X", {"x"}}}, {{"Out", {"c"}}}, {{"tag", 2}})
                              .Fetch("a")
                              .Fetch("b")
                              .Fetch("c")
                              .Build();
  const auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Tensor::Of<int8_t>({1}, {1});
  const auto core = MakeCore(program, Options(), scope);
  EXPECT_THAT(core->Run({Ones(3)}),
              FailsWith(absl::StatusCode::kInvalidArgument, "declares it wrongly"));
  EXPECT_THAT(TakePrepared(), UnorderedElementsAre(Pair(1, 3), Pair(2, 3)));
}

// Each once, whichever thread does it, under every scheduler with threads.
TEST(PrepareKernelsTest, SharesManyInstructions) {
  constexpr int kOps = 300;
  TestProgram builder = Builder().Feed("x", {-1});
  for (int i = 0; i < kOps; ++i) {
    builder.Call("keep", {"x"}, absl::StrCat("y", i), {{"tag", i}});
  }
  for (int i = 0; i < kOps; ++i) builder.Fetch(absl::StrCat("y", i));
  const Program program = builder.Build();
  for (const SchedulerKind kind :
       {SchedulerKind::kTrace, SchedulerKind::kAsync, SchedulerKind::kEngine}) {
    CoreOptions options = Options(/*num_threads=*/4);
    options.scheduler = kind;
    options.num_workers = kind == SchedulerKind::kTrace ? 1 : 4;
    EXPECT_THAT(RunOn(*MakeCore(program, options), {Ones(3)}), ::testing::Each(3));
    std::set<int32_t> tags;
    for (const auto& [tag, elements] : TakePrepared()) EXPECT_TRUE(tags.insert(tag).second);
    EXPECT_THAT(tags, SizeIs(kOps));
  }
}

}  // namespace
}  // namespace interp::testing::prepare_kernels_test
