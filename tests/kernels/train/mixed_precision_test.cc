// Training in bfloat16 and float16 beside training in float32: losses follow, parameters stay
// float32, and products do run in 16 bits.
#include "passes/mixed_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/io/param_decl.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"
#include "tests/testing/built_nets.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::Build;
using ::testing::HasSubstr;
using testing::IsOk;

constexpr int64_t kBatch = 8;
constexpr int kSteps = 12;

struct Case {
  std::string net;
  int classes;  // of its labels
};

// Values that differ from sample to sample; labels below `classes`.
Tensor FeedFor(const FeedSpec& spec, const Var& var, int classes) {
  Tensor tensor;
  tensor.dtype = spec.dtype;
  for (const int64_t dim : var.dims) tensor.shape.push_back(dim == -1 ? kBatch : dim);
  EXPECT_THAT(tensor.Allocate(SystemAllocator()), IsOk());
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (tensor.dtype == DType::kInt64) {
      tensor.mutable_data<int64_t>()[i] = i * 5 % classes;
    } else {
      tensor.mutable_data<float>()[i] = static_cast<float>(i * 7919 % 101) / 101 - 0.4F;
    }
  }
  return tensor;
}

struct Training {
  std::vector<float> losses;
  int reduced = 0;  // instructions of a step in 16 bits, casts apart
  bool parameters_are_float32 = true;
};

absl::StatusOr<Training> Train(const Case& c, const std::string& pass) {
  INTERP_ASSIGN_OR_RETURN(BuiltProgram built, Build(c.net));
  const std::string loss = "mean_0.tmp_0";
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec sgd,
                          ParseOptimizerSpec("momentum:learning_rate=0.01,momentum=0.5"));
  INTERP_ASSIGN_OR_RETURN(
      TrainingPrograms programs,
      Minimize(std::move(built.main), std::move(built.startup),
               {.backward = {.loss = loss}, .optimizer = sgd}, OpRegistry::Global()));
  TrainerOptions options{.feeds = {"x", "y"}, .fetches = {loss}};
  if (!pass.empty()) options.core.passes.enable.push_back(pass);
  if (pass == "fp16") options.loss_scaling = LossScalingOptions{.initial = 1024};
  const Program& main = programs.main;
  INTERP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(main, nullptr, options));
  INTERP_RETURN_IF_ERROR(trainer->Initialize(programs.startup));
  std::vector<Tensor> feeds;
  for (const FeedSpec& spec : trainer->feeds()) {
    const VarId id = main.Find(spec.name);
    feeds.push_back(
        FeedFor(spec, main.blocks[0].vars[VarPositions(main, main.blocks[0])[id]], c.classes));
  }
  Training training;
  for (int step = 0; step < kSteps; ++step) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched, trainer->Step(feeds));
    training.losses.push_back(*fetched[0].data<float>());
  }
  for (const Instruction& instruction : trainer->core().plan().instructions) {
    const bool half = instruction.dtype == DType::kBFloat16 || instruction.dtype == DType::kFloat16;
    if (half && instruction.op_type != "cast") ++training.reduced;
  }
  for (const ParamDecl& param : ParamsOf(main)) {
    const Tensor& value = trainer->scope()->Find(param.name)->tensor;
    if (IsFloating(value.dtype) && value.dtype != DType::kFloat32) {
      training.parameters_are_float32 = false;
    }
  }
  return training;
}

class MixedPrecisionTest : public ::testing::TestWithParam<Case> {};

TEST_P(MixedPrecisionTest, FollowsFloat32) {
  const absl::StatusOr<Training> full = Train(GetParam(), "");
  ASSERT_THAT(full, IsOk());
  EXPECT_EQ(full->reduced, 0);
  for (const std::string pass : {"bf16", "fp16"}) {
    SCOPED_TRACE(pass);
    const absl::StatusOr<Training> half = Train(GetParam(), pass);
    ASSERT_THAT(half, IsOk());
    // Convolutions have no kernels for float16.
    EXPECT_GE(half->reduced, pass == "bf16" ? 6 : 2);
    EXPECT_TRUE(half->parameters_are_float32);
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(half->losses[step], full->losses[step], 0.03F * full->losses[0]) << step;
    }
    EXPECT_LT(half->losses.back(), half->losses.front());
    EXPECT_NE(half->losses, full->losses);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, MixedPrecisionTest,
                         ::testing::Values(Case{"lenet", 10}, Case{"resnet", 10},
                                           Case{"attention", 50}),
                         [](const auto& info) { return info.param.net; });

// Level O2 of paddle.static.amp: the start-up program leaves float32 where amp_init would round.
TEST(StartupTest, LeavesTheDTypesThatTheProgramDeclares) {
  const absl::StatusOr<Program> startup = ParseProgram(R"(block 0
  var w float32[2] persistable
  var master float32[2] persistable
  fill_constant() -> (Out=w) {shape=[2], value=0.1, dtype=5}
  assign(X=w) -> (Out=master)
)");
  const absl::StatusOr<Program> main = ParseProgram(R"(block 0
  var x float16[2]
  var w float16[2] persistable
  var master float32[2] persistable
  var y float16[2]
  elementwise_add(X=x, Y=w) -> (Out=y)
  cast(X=y) -> (Out=master) {in_dtype=4, out_dtype=5}
  cast(X=master) -> (Out=w) {in_dtype=5, out_dtype=4}
)");
  ASSERT_THAT(startup, IsOk());
  ASSERT_THAT(main, IsOk());
  auto trainer = Trainer::Create(*main, nullptr, {.feeds = {"x"}, .fetches = {"y"}});
  ASSERT_THAT(trainer, IsOk());
  ASSERT_THAT((*trainer)->Initialize(*startup), IsOk());
  const Scope& scope = (*trainer)->scope()->root();
  EXPECT_EQ(scope.FindLocal("w")->tensor.dtype, DType::kFloat16);
  EXPECT_EQ(*scope.FindLocal("master")->tensor.data<float>(), 0.1F);
  const auto fetched = (*trainer)->Step({Tensor::Of<float16>({2}, {1.0F, 2.0F})});
  ASSERT_THAT(fetched, IsOk());
  EXPECT_EQ(static_cast<float>((*fetched)[0].data<float16>()[0]),
            static_cast<float>(float16(1 + static_cast<float>(float16(0.1F)))));
}

// What ComputeInBFloat16 makes of a program.
std::string InBFloat16(const std::string& text) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  const absl::StatusOr<Program> reduced =
      ComputeInBFloat16(*program, PassContext{.ops = OpRegistry::Global()});
  EXPECT_THAT(reduced, IsOk());
  return ToText(*reduced);
}

// The row for any dtype takes nearest neighbours alone.
TEST(BFloat16PassTest, AnOpStaysInFloat32WhoseAttributesNoRowTakes) {
  const std::string text = InBFloat16(R"(block 0
  var x float32[1,2,4,4]
  var w float32[4,4] persistable
  var a float32[1,2,4,4]
  var b float32[1,2,8,8]
  var c float32[1,2,8,8]
  matmul_v2(X=x, Y=w) -> (Out=a)
  nearest_interp_v2(X=a) -> (Out=b) {interp_method="nearest", out_h=8, out_w=8}
  nearest_interp_v2(X=a) -> (Out=c) {interp_method="bilinear", out_h=8, out_w=8}
)");
  EXPECT_THAT(text, HasSubstr("nearest_interp_v2(X=a.cast_bf16) -> (Out=b.cast_bf16)"));
  EXPECT_THAT(text, HasSubstr("nearest_interp_v2(X=a) -> (Out=c)"));
}

// Paddings are counted in bytes.
TEST(BFloat16PassTest, ATensorOfTensorsKeepsItsLength) {
  EXPECT_THAT(InBFloat16(R"(block 0
  var x float32[4,4]
  var w float32[4,4] persistable
  var a float32[4,4]
  var b float32[4,4]
  var c float32[1024]
  matmul_v2(X=x, Y=w) -> (Out=a)
  coalesce_tensor(Input=a) -> (Output=b, FusedOutput=c) {use_align=true}
)"),
              HasSubstr("coalesce_tensor(Input=a) -> (Output=b, FusedOutput=c)"));
}

}  // namespace
}  // namespace interp
