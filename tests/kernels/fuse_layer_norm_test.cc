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
      "  reduce_mean(X=q) -> (Out=v) {dim=[2], keep_dim=true}\n"
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
  for (const char* name : {"x", "d", "q"}) {
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

}  // namespace
}  // namespace interp::testing::fuse_layer_norm_test
