// What fuse_activation makes gives what the pieces give that it stands for.
#include <gtest/gtest.h>

#include "tests/kernels/op_runs.h"
#include "tests/kernels/run_text.h"

namespace interp::testing::fuse_activation_test {
namespace {

struct Form {
  std::string type;  // of the op that is made
  std::string ops;   // which make y of x
};

std::vector<Form> Forms() {
  return {{"gelu", R"(
  scale(X=x) -> (Out=a) {scale=0.70710677}
  erf(X=a) -> (Out=b)
  scale(X=b) -> (Out=c) {scale=1.0, bias=1.0}
  elementwise_mul(X=x, Y=c) -> (Out=d)
  scale(X=d) -> (Out=y) {scale=0.5}
)"},
          {"gelu", R"(
  elementwise_mul(X=x, Y=x) -> (Out=a)
  elementwise_mul(X=a, Y=x) -> (Out=b)
  scale(X=b) -> (Out=c) {scale=0.044715}
  elementwise_add(X=c, Y=x) -> (Out=d)
  scale(X=d) -> (Out=e) {scale=0.7978846}
  tanh(X=e) -> (Out=f)
  scale(X=f) -> (Out=g) {scale=0.5, bias=0.5}
  elementwise_mul(X=g, Y=x) -> (Out=y)
)"},
          {"hard_swish", R"(
  fill_constant() -> (Out=s) {shape=[1], dtype=5, value=6.0}
  scale(X=x) -> (Out=a) {scale=1.0, bias=3.0}
  relu6(X=a) -> (Out=b)
  elementwise_div(X=b, Y=s) -> (Out=c)
  elementwise_mul(X=c, Y=x) -> (Out=y)
)"},
          {"hard_sigmoid", R"(
  scale(X=x) -> (Out=a) {scale=1.0, bias=3.0}
  clip(X=a) -> (Out=b) {min=0.0, max=6.0}
  scale(X=b) -> (Out=y) {scale=0.16666667}
)"},
          {"mish", R"(
  exp(X=x) -> (Out=a)
  scale(X=a) -> (Out=b) {bias=1.0}
  log(X=b) -> (Out=c)
  tanh(X=c) -> (Out=d)
  elementwise_mul(X=x, Y=d) -> (Out=y)
)"},
          {"swish", R"(
  scale(X=x) -> (Out=a) {scale=-1.0}
  exp(X=a) -> (Out=b)
  scale(X=b) -> (Out=c) {bias=1.0}
  elementwise_div(X=x, Y=c) -> (Out=y)
)"}};
}

TEST(FuseActivation, StandsForItsPieces) {
  std::vector<float> numbers;
  for (float x = -12; x < 12; x += 0.01F) numbers.push_back(x);
  const auto count = static_cast<int64_t>(numbers.size());
  const NamedTensors feeds = {{"x", TensorOf<float>({count, 1}, numbers)}};
  for (const Form& form : Forms()) {
    SCOPED_TRACE(form.ops);
    const std::string text = "block 0\n  var x float32[-1,1]\n  var s float32[1]" + form.ops;
    const RanText<float> expected = RunTextWithout<float>("fuse_activation", text, feeds, "y");
    const RanText<float> ran = RunText<float>(text, feeds, "y");
    EXPECT_EQ(ran.CountOf(form.type), 1);
    EXPECT_EQ(ran.ops.size(), 3);  // with feed and fetch
    EXPECT_THAT(ran.values, ::testing::Pointwise(::testing::FloatNear(4e-6F), expected.values));
  }
}

// A constant of shape [1] makes a value without dims one of that shape.
TEST(FuseActivation, LeavesWhatConstantsEnlarge) {
  const std::string text = "block 0\n  var x float32[]\n  var s float32[1]" + Forms()[2].ops;
  const RanText<float> ran = RunText<float>(text, {{"x", TensorOf<float>({}, {2})}}, "y");
  EXPECT_EQ(ran.CountOf("hard_swish"), 0);
  EXPECT_EQ(ran.shape, Shape({1}));
}

// Each of many multiples and products might end an activation.
TEST(FuseActivation, TakesLinearTime) {
  constexpr int kOps = 50000;
  std::string text = "block 0\n  var x float32[4]\n  tanh(X=x) -> (Out=v0)\n";
  for (int i = 0; i < kOps; ++i) {
    absl::StrAppend(&text, "  var v", i, " float32[4]\n");
    if (i % 2 == 0) {
      absl::StrAppend(&text, "  scale(X=v", i, ") -> (Out=v", i + 1, ") {bias=0.001}\n");
    } else {
      absl::StrAppend(&text, "  elementwise_mul(X=v", i, ", Y=x) -> (Out=v", i + 1, ")\n");
    }
  }
  const RanText<float> ran =
      RunText<float>(text, {{"x", Numbers({4}, 1)}}, absl::StrCat("v", kOps));
  EXPECT_EQ(ran.CountOf("scale"), kOps / 2);
}

// What is beside a gate may have come a long way.
TEST(FuseActivation, DoesNotFollowEndlessOperands) {
  constexpr int kOps = 100000;
  std::string text =
      "block 0\n  var x float32[4]\n  var v0 float32[4]\n  sigmoid(X=x) -> (Out=v0)\n";
  for (int i = 0; i < kOps; ++i) {
    absl::StrAppend(&text, "  var v", i + 1, " float32[4]\n  tanh(X=v", i, ") -> (Out=v", i + 1,
                    ")\n");
  }
  absl::StrAppend(&text, "  sigmoid(X=x) -> (Out=s)\n  elementwise_mul(X=v", kOps,
                  ", Y=s) -> (Out=y)\n");
  EXPECT_EQ(RunText<float>(text, {{"x", Numbers({4}, 1)}}, "y").CountOf("tanh"), kOps);
}

// A bump between two numbers that a look at some would miss.
TEST(FuseActivation, LeavesWhatDiffersSomewhere) {
  const std::string text = R"(block 0
  var x float32[3]
  sigmoid(X=x) -> (Out=a)
  elementwise_mul(X=x, Y=a) -> (Out=b)
  clip(X=x) -> (Out=c) {min=0.1, max=0.2}
  scale(X=c) -> (Out=d) {bias=-0.1}
  scale(X=c) -> (Out=e) {bias=-0.2}
  elementwise_mul(X=d, Y=e) -> (Out=f)
  scale(X=f) -> (Out=g) {scale=1000.0}
  elementwise_add(X=b, Y=g) -> (Out=h)
  scale(X=h) -> (Out=y) {scale=1.0, bias=0.0}
)";
  const NamedTensors feeds = {{"x", TensorOf<float>({3}, {0.05F, 0.15F, 1})}};
  EXPECT_EQ(RunText<float>(text, feeds, "y").values,
            RunTextWithout<float>("fuse_activation", text, feeds, "y").values);
}

}  // namespace
}  // namespace interp::testing::fuse_activation_test
