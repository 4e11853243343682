// What fuse_layer_norm makes gives what the pieces give that it stands for.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/kernels/op_runs.h"
#include "tests/kernels/run_text.h"

namespace interp::testing::fuse_layer_norm_test {
namespace {

struct Form {
  std::string type;  // of the op that is made
  std::string ops;   // which make y of x
};

// With a mean that is taken away, squares and roots written in several ways.
std::vector<Form> Forms() {
  const std::string centered =
      "  reduce_mean(X=x) -> (Out=m) {dim=[-1], keep_dim=true}\n"
      "  elementwise_sub(X=x, Y=m) -> (Out=d) {axis=-1}\n";
  const std::string moved =
      "  reduce_mean(X=q) -> (Out=v) {dim=[-1], keep_dim=true}\n"
      "  scale(X=v) -> (Out=e) {scale=1.0, bias=0.001}\n";
  return {{"layer_norm", absl::StrCat(centered, "  pow(X=d) -> (Out=q) {factor=2.0}\n", moved,
                                      "  sqrt(X=e) -> (Out=s)\n"
                                      "  elementwise_sub(X=x, Y=m) -> (Out=c) {axis=-1}\n"
                                      "  elementwise_div(X=c, Y=s) -> (Out=y) {axis=-1}\n")},
          {"layer_norm", absl::StrCat(centered, "  elementwise_mul(X=d, Y=d) -> (Out=q)\n", moved,
                                      "  rsqrt(X=e) -> (Out=r)\n"
                                      "  elementwise_mul(X=d, Y=r) -> (Out=n) {axis=-1}\n"
                                      "  elementwise_mul(X=w, Y=n) -> (Out=a) {axis=-1}\n"
                                      "  elementwise_add(X=a, Y=b) -> (Out=y) {axis=-1}\n")},
          {"rms_norm", absl::StrCat("  square(X=x) -> (Out=q)\n", moved,
                                    "  rsqrt(X=e) -> (Out=r)\n"
                                    "  elementwise_mul(X=r, Y=x) -> (Out=n) {axis=-1}\n"
                                    "  elementwise_mul(X=n, Y=w) -> (Out=y) {axis=-1}\n")}};
}

template <typename T>
void ExpectNear(const Form& form, const Shape& shape, double tolerance) {
  SCOPED_TRACE(absl::StrCat(form.ops, ToString(shape)));
  const std::string dtype = std::is_same_v<T, float> ? "float32" : "float64";
  std::string text = "block 0\n";
  for (const char* name : {"x", "d", "q", "m", "v"}) {
    absl::StrAppend(&text, "  var ", name, " ", dtype, ToString(shape), "\n");
  }
  for (const char* name : {"w", "b"}) {
    absl::StrAppend(&text, "  var ", name, " ", dtype, "[", shape.back(), "] persistable\n");
  }
  text += form.ops;
  const NamedTensors feeds = {{"x", Numbers<T>(shape, 1)}};
  const NamedTensors parameters = {{"w", Numbers<T>({shape.back()}, 2)},
                                   {"b", Numbers<T>({shape.back()}, 3)}};
  const RanText<T> expected = RunTextWithout<T>("fuse_layer_norm", text, feeds, "y", parameters);
  const RanText<T> ran = RunText<T>(text, feeds, "y", {}, parameters);
  EXPECT_EQ(ran.CountOf(form.type), 1);
  EXPECT_EQ(ran.CountOf("reduce_mean"), 0);
  EXPECT_EQ(ran.shape, expected.shape);
  EXPECT_THAT(ran.values, ::testing::Pointwise(::testing::DoubleNear(tolerance), expected.values));
}

TEST(FuseLayerNorm, StandsForItsPieces) {
  for (const Form& form : Forms()) {
    for (const Shape& shape : {Shape{2, 3, 8}, {1, 1, 1}, {2, 0, 4}, {4, 5, 17}, {1, 3, 300}}) {
      ExpectNear<float>(form, shape, 5e-6);
      ExpectNear<double>(form, shape, 1e-13);
    }
  }
}

// The program declares the result of tanh with a dim less than it has.
TEST(FuseLayerNorm, NormalisesTheLastDimOfTheRun) {
  const std::string text =
      "block 0\n  var u float32[2,2,3]\n  var x float32[4,3]\n  var d float32[4,3]\n"
      "  var q float32[4,3]\n  var m float32[4,1]\n  var v float32[4,1]\n"
      "  tanh(X=u) -> (Out=x)\n  reduce_mean(X=x) -> (Out=m) {dim=[-1], keep_dim=true}\n"
      "  elementwise_sub(X=x, Y=m) -> (Out=d)\n  square(X=d) -> (Out=q)\n"
      "  reduce_mean(X=q) -> (Out=v) {dim=[-1], keep_dim=true}\n"
      "  scale(X=v) -> (Out=e) {scale=1.0, bias=0.001}\n  sqrt(X=e) -> (Out=s)\n"
      "  elementwise_div(X=d, Y=s) -> (Out=y)\n";
  const NamedTensors feeds = {{"u", Numbers({2, 2, 3}, 1)}};
  const RanText<float> ran = RunText<float>(text, feeds, "y");
  const RanText<float> expected = RunTextWithout<float>("fuse_layer_norm", text, feeds, "y");
  EXPECT_EQ(ran.CountOf("layer_norm"), 1);
  EXPECT_THAT(ran.values, ::testing::Pointwise(::testing::FloatNear(5e-6F), expected.values));
}

// A product has the LoD of its first factor, which here is a root of means and has none.
TEST(FuseLayerNorm, GivesTheLodThatThePiecesGive) {
  for (const bool first : {false, true}) {
    const std::string text = absl::StrCat(
        "block 0\n  var x float32[-1,4]\n  var w float32[4] persistable\n"
        "  var q float32[-1,4]\n  var v float32[-1,1]\n"
        "  square(X=x) -> (Out=q)\n  reduce_mean(X=q) -> (Out=v) {dim=[-1], keep_dim=true}\n"
        "  scale(X=v) -> (Out=e) {scale=1.0, bias=0.001}\n  rsqrt(X=e) -> (Out=r)\n  ",
        first ? "elementwise_mul(X=x, Y=r)" : "elementwise_mul(X=r, Y=x)",
        " -> (Out=n)\n  elementwise_mul(X=n, Y=w) -> (Out=y)\n");
    const NamedTensors feeds = {{"x", Numbers({3, 4}, 1, {{0, 2, 3}})}};
    const NamedTensors parameters = {{"w", Numbers({4}, 2)}};
    const RanText<float> ran = RunText<float>(text, feeds, "y", {}, parameters);
    EXPECT_EQ(ran.CountOf("rms_norm"), 1);
    EXPECT_EQ(ran.lod, RunTextWithout<float>("fuse_layer_norm", text, feeds, "y", parameters).lod);
    EXPECT_EQ(ran.lod.empty(), !first);
  }
}

// Weights of such norms are float32, those of the pieces are not.
TEST(FuseLayerNorm, LeavesNormsOfBFloat16) {
  const std::string text =
      "block 0\n  var u float32[2,4]\n  var z float32[2,4]\n  var x bfloat16[2,4]\n"
      "  var q bfloat16[2,4]\n  var m bfloat16[2,1]\n  var v bfloat16[2,1]\n"
      "  cast(X=u) -> (Out=x) {in_dtype=5, out_dtype=22}\n"
      "  reduce_mean(X=x) -> (Out=m) {dim=[-1], keep_dim=true}\n"
      "  elementwise_sub(X=x, Y=m) -> (Out=d)\n  elementwise_mul(X=d, Y=d) -> (Out=q)\n"
      "  reduce_mean(X=q) -> (Out=v) {dim=[-1], keep_dim=true}\n"
      "  scale(X=v) -> (Out=e) {scale=1.0, bias=0.001}\n  sqrt(X=e) -> (Out=s)\n"
      "  elementwise_div(X=d, Y=s) -> (Out=y)\n"
      "  cast(X=y) -> (Out=z) {in_dtype=22, out_dtype=5}\n";
  const RanText<float> ran = RunText<float>(text, {{"u", Numbers({2, 4}, 1)}}, "z");
  EXPECT_EQ(ran.CountOf("layer_norm"), 0);
}

}  // namespace
}  // namespace interp::testing::fuse_layer_norm_test
