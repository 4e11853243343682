// Networks of sequences give what they give without late_squeeze.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/kernels/op_runs.h"
#include "tests/kernels/run_text.h"

namespace interp::testing::late_squeeze_test {
namespace {

constexpr char kDeclared[] = R"(block 0
  var x float32[2,3,10]
  var k float32[4,3,3] persistable
  var l float32[4,4,3] persistable
  var t float32[4,4,4] persistable
  var p float32[4] persistable
  var q float32[4] persistable
)";

std::string Declare(absl::string_view names, absl::string_view dims) {
  std::string text;
  for (const char name : names) {
    absl::StrAppend(&text, "  var ", std::string(1, name), " float32[", dims, "]\n");
  }
  return text;
}

const NamedTensors& Feeds() {
  static const NamedTensors feeds = [] {
    Tensor x = Numbers<float>({2, 3, 10}, 1);
    x.lod = {{0, 1, 2}};
    return NamedTensors{{"x", x}};
  }();
  return feeds;
}

const NamedTensors& Parameters() {
  static const NamedTensors parameters = [] {
    Tensor variance = Numbers<float>({4}, 7);
    float* const values = variance.mutable_data<float>();
    for (int i = 0; i < 4; ++i) values[i] = 0.5F + values[i] * values[i];
    return NamedTensors{{"k", Numbers<float>({4, 3, 3}, 2)},
                        {"l", Numbers<float>({4, 4, 3}, 3)},
                        {"t", Numbers<float>({4, 4, 4}, 4)},
                        {"p", Numbers<float>({4}, 5)},
                        {"q", variance}};
  }();
  return parameters;
}

// Runs `ops`, which make `y`, and expects no transfer between the layouts of convolutions and
// sequences but at the ends.
void ExpectSame(const std::string& vars, const std::string& ops, int64_t squeezes) {
  const std::string text = absl::StrCat(kDeclared, vars, ops);
  SCOPED_TRACE(text);
  const auto expected = RunTextWithout<float>("late_squeeze", text, Feeds(), "y", Parameters());
  const auto ran = RunText<float>(text, Feeds(), "y", {}, Parameters());
  EXPECT_EQ(ran.shape, expected.shape);
  EXPECT_EQ(ran.lod, expected.lod);
  EXPECT_THAT(ran.values, ::testing::Pointwise(::testing::DoubleNear(1e-4), expected.values));
  EXPECT_EQ(ran.CountOf("squeeze2"), squeezes);
  EXPECT_GT(expected.ops.size(), ran.ops.size());
}

constexpr char kFirst[] = R"(  unsqueeze2(X=x) -> (Out=a) {axes=[-2]}
  unsqueeze2(X=k) -> (Out=b) {axes=[-2]}
  conv2d(Input=a, Filter=b) -> (Output=c) {paddings=[0,1]}
  squeeze2(X=c) -> (Out=d) {axes=[-2]}
)";
const std::string kFirstVars = Declare("a", "2,3,1,10") + Declare("b", "4,3,1,3") +
                               Declare("c", "2,4,1,10") + Declare("d", "2,4,10");

TEST(LateSqueeze, ResidualsAndBatchNorms) {
  const std::string vars = kFirstVars + Declare("efghy", "2,4,10") + Declare("ijn", "2,4,1,10") +
                           Declare("m", "4,4,1,3");
  ExpectSame(
      vars,
      absl::StrCat(
          kFirst,
          R"(  batch_norm(X=d, Scale=p, Bias=p, Mean=p, Variance=q) -> (Y=e, MeanOut=p, VarianceOut=q) {is_test=true, epsilon=0.001}
  leaky_relu(X=e) -> (Out=f) {alpha=0.1}
  unsqueeze2(X=f) -> (Out=i) {axes=[-2]}
  unsqueeze2(X=l) -> (Out=m) {axes=[-2]}
  conv2d(Input=i, Filter=m) -> (Output=j) {paddings=[0,1]}
  elementwise_add(X=j, Y=p) -> (Out=n) {axis=1}
  squeeze2(X=n) -> (Out=g) {axes=[-2]}
  elementwise_add(X=g, Y=f) -> (Out=h) {axis=-1}
  tanh(X=h) -> (Out=y)
)"),
      /*squeezes=*/1);
}

TEST(LateSqueeze, TransposedConvolutions) {
  const std::string vars = kFirstVars + Declare("e", "2,4,10") + Declare("f", "2,4,10,1") +
                           Declare("g", "4,4,4,1") + Declare("h", "2,4,20,1") +
                           Declare("ijoy", "2,4,20") + Declare("m", "4,4,1,3") +
                           Declare("nr", "2,4,1,20");
  ExpectSame(vars, absl::StrCat(kFirst, R"(  relu(X=d) -> (Out=e)
  unsqueeze2(X=e) -> (Out=f) {axes=[-1]}
  unsqueeze2(X=t) -> (Out=g) {axes=[-1]}
  conv2d_transpose(Input=f, Filter=g) -> (Output=h) {strides=[2,1], paddings=[1,0]}
  squeeze2(X=h) -> (Out=i) {axes=[-1]}
  sigmoid(X=i) -> (Out=j)
  unsqueeze2(X=j) -> (Out=n) {axes=[-2]}
  unsqueeze2(X=l) -> (Out=m) {axes=[-2]}
  conv2d(Input=n, Filter=m) -> (Output=r) {paddings=[0,1]}
  squeeze2(X=r) -> (Out=o) {axes=[-2]}
  elementwise_mul(X=o, Y=i) -> (Out=y) {axis=-1}
)"),
             /*squeezes=*/1);
}

TEST(LateSqueeze, PartsAndOtherReaders) {
  const std::string vars = kFirstVars + Declare("e", "2,1,10") + Declare("f", "2,3,10") +
                           Declare("gh", "2,4,10") + Declare("in", "2,4,1,10") +
                           Declare("m", "4,4,1,3") + Declare("jory", "2,4,10");
  ExpectSame(vars, absl::StrCat(kFirst, R"(  split(X=d) -> (Out=[e, f]) {axis=1, sections=[1,3]}
  concat(X=[f, e]) -> (Out=g) {axis=1}
  relu(X=g) -> (Out=h)
  unsqueeze2(X=h) -> (Out=i) {axes=[-2]}
  unsqueeze2(X=l) -> (Out=m) {axes=[-2]}
  conv2d(Input=i, Filter=m) -> (Output=n) {paddings=[0,1]}
  squeeze2(X=n) -> (Out=j) {axes=[-2]}
  softmax(X=h) -> (Out=o) {axis=-1}
  elementwise_max(X=j, Y=h) -> (Out=r) {axis=-1}
  elementwise_mul(X=r, Y=o) -> (Out=y) {axis=-1}
)"),
             /*squeezes=*/2);
}

}  // namespace
}  // namespace interp::testing::late_squeeze_test
