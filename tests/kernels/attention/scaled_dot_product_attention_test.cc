// scaled_dot_product_attention gives what the products and the softmax give that it stands for, in
// the forms that programs write attention in.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/kernels/op_runs.h"
#include "tests/kernels/run_text.h"
#include "tests/testing/matchers.h"

namespace interp::testing::scaled_dot_product_attention_test {
namespace {

constexpr absl::string_view kPass = "fuse_attention";

// A program with the fetch `y` and attention written in pieces.
struct Form {
  std::string name;
  std::string ops;                                   // of which `feeds` are read
  std::vector<std::pair<std::string, Shape>> feeds;  // any batch: the first dim is declared as -1
  std::vector<std::pair<std::string, Shape>> vars = {};
};

std::string Declared(const std::string& name, const Shape& shape, absl::string_view dtype) {
  return absl::StrCat("  var ", name, " ", dtype, ToString(shape), "\n");
}

std::string TextOf(const Form& form, absl::string_view dtype) {
  std::string text = "block 0\n";
  for (const auto& [name, shape] : form.feeds) absl::StrAppend(&text, Declared(name, shape, dtype));
  for (const auto& [name, shape] : form.vars) absl::StrAppend(&text, Declared(name, shape, dtype));
  return text + form.ops;
}

template <typename T>
RanText<T> RunForm(const Form& form, const CoreOptions& options) {
  NamedTensors feeds;
  for (const auto& [name, shape] : form.feeds) {
    feeds.emplace_back(name, Numbers<T>(shape, static_cast<uint32_t>(feeds.size() + 1)));
  }
  return RunText<T>(TextOf(form, std::is_same_v<T, float> ? "float32" : "float64"), feeds, "y",
                    options);
}

// `x` holds queries, keys and values beside each other.
Form Joined(int64_t batch, int64_t length, int64_t heads, int64_t width) {
  return {"joined",
          R"(  transpose2(X=x) -> (Out=t, XShape=s1) {axis=[2,0,3,1,4]}
  slice(Input=t) -> (Out=q) {axes=[0], starts=[0], ends=[1], decrease_axis=[0]}
  slice(Input=t) -> (Out=k) {axes=[0], starts=[1], ends=[2], decrease_axis=[0]}
  slice(Input=t) -> (Out=v) {axes=[0], starts=[2], ends=[3], decrease_axis=[0]}
  scale(X=q) -> (Out=a) {scale=0.25}
  matmul_v2(X=a, Y=k) -> (Out=p) {trans_y=true}
  softmax(X=p) -> (Out=w) {axis=-1}
  matmul_v2(X=w, Y=v) -> (Out=o)
  transpose2(X=o) -> (Out=y, XShape=s2) {axis=[0,2,1,3]}
)",
          {{"x", {batch, length, 3, heads, width}}},
          {{"t", {3, batch, heads, length, width}},
           {"a", {batch, heads, length, width}},
           {"k", {batch, heads, length, width}},
           {"v", {batch, heads, length, width}},
           {"p", {batch, heads, length, length}}}};
}

// Keys turned by a transpose, a factor of the scores, and a mask for each sequence.
Form Masked(int64_t batch, int64_t queries, int64_t keys, int64_t width, int64_t values) {
  const Shape scores = {batch, 2, queries, keys};
  return {"masked",
          R"(  transpose2(X=q) -> (Out=qt, XShape=s1) {axis=[0,2,1,3]}
  transpose2(X=k) -> (Out=kt, XShape=s2) {axis=[0,2,3,1]}
  transpose2(X=v) -> (Out=vt, XShape=s3) {axis=[0,2,1,3]}
  matmul(X=qt, Y=kt) -> (Out=a) {alpha=0.3}
  scale(X=a) -> (Out=b) {scale=0.7}
  elementwise_add(X=b, Y=m) -> (Out=c) {axis=-1}
  softmax(X=c) -> (Out=w) {axis=3}
  matmul_v2(X=w, Y=vt) -> (Out=o)
  transpose2(X=o) -> (Out=y, XShape=s4) {axis=[0,2,1,3]}
)",
          {{"q", {batch, queries, 2, width}},
           {"k", {batch, keys, 2, width}},
           {"v", {batch, keys, 2, values}},
           {"m", {batch, 1, 1, keys}}},
          {{"qt", {batch, 2, queries, width}},
           {"kt", {batch, 2, width, keys}},
           {"vt", {batch, 2, keys, values}},
           {"b", scores},
           {"c", scores}}};
}

// Windows that take turns with a mask, and a bias of positions.
Form Windows(int64_t windows, int64_t turns, int64_t length) {
  const Shape scores = {windows, 2, length, length};
  const Shape split = {windows / turns, turns, 2, length, length};
  return {"windows",
          absl::StrCat(R"(  matmul_v2(X=q, Y=k) -> (Out=a) {trans_y=true}
  elementwise_add(X=a, Y=r) -> (Out=b) {axis=-1}
  reshape2(X=b) -> (Out=c, XShape=s1) {shape=[-1,)",
                       turns, ",2,", length, ",", length, R"(]}
  elementwise_add(X=c, Y=m) -> (Out=d) {axis=-1}
  reshape2(X=d) -> (Out=e, XShape=s2) {shape=[-1,2,)",
                       length, ",", length, R"(]}
  softmax(X=e) -> (Out=w) {axis=-1}
  matmul_v2(X=w, Y=v) -> (Out=y)
)"),
          {{"q", {windows, 2, length, 5}},
           {"k", {windows, 2, length, 5}},
           {"v", {windows, 2, length, 8}},
           {"r", {1, 2, length, length}},
           {"m", {1, turns, 1, length, length}}},
          {{"a", scores}, {"b", scores}, {"c", split}, {"d", split}, {"e", scores}}};
}

// No transposes: rank 3, values the other way round, a bias of one column, keys for all batches.
Form Plain(int64_t batch, int64_t queries, int64_t keys) {
  const Shape scores = {batch, queries, keys};
  return {"plain",
          R"(  matmul_v2(X=q, Y=k) -> (Out=a)
  elementwise_add(X=n, Y=a) -> (Out=b) {axis=-1}
  softmax(X=b) -> (Out=w) {axis=-1}
  matmul_v2(X=w, Y=v) -> (Out=y) {trans_y=true}
)",
          {{"q", {batch, queries, 6}},
           {"k", {1, 6, keys}},
           {"v", {batch, 9, keys}},
           {"n", {queries, 1}}},
          {{"a", scores}, {"b", scores}}};
}

// A mask that multiplies before the rest is taken away, a factor for each head, and one number.
Form Multiplied(int64_t batch, int64_t queries, int64_t keys) {
  const Shape scores = {batch, 2, queries, keys};
  return {
      "multiplied",
      R"(  matmul_v2(X=q, Y=k) -> (Out=a) {trans_y=true}
  elementwise_mul(X=h, Y=a) -> (Out=b) {axis=-1}
  scale(X=b) -> (Out=c) {scale=0.5}
  elementwise_mul(X=c, Y=m) -> (Out=d) {axis=-1}
  elementwise_sub(X=d, Y=n) -> (Out=e) {axis=-1}
  elementwise_add(X=e, Y=r) -> (Out=f) {axis=-1}
  softmax(X=f) -> (Out=w) {axis=-1}
  matmul_v2(X=w, Y=v) -> (Out=y)
)",
      {{"q", {batch, 2, queries, 6}},
       {"k", {batch, 2, keys, 6}},
       {"v", {batch, 2, keys, 5}},
       {"h", {2, 1, 1}},
       {"m", {1, 1, queries, keys}},
       {"n", {queries, 1}},
       {"r", {keys}}},
      {{"a", scores}, {"b", scores}, {"c", scores}, {"d", scores}, {"e", scores}, {"f", scores}}};
}

// A bias that makes the scores larger, whose dims the program does not tell.
Form Grown(Shape q, Shape k, const Shape& v, const Shape& bias) {
  Shape scores = {-1, -1, -1};
  return {"grown",
          R"(  matmul_v2(X=q, Y=k) -> (Out=a) {trans_y=true}
  elementwise_add(X=a, Y=m) -> (Out=b) {axis=-1}
  softmax(X=b) -> (Out=w) {axis=-1}
  matmul_v2(X=w, Y=v) -> (Out=y)
)",
          {{"q", q}, {"k", k}, {"v", v}, {"m", bias}},
          {{"a", scores}, {"b", scores}}};
}

// One key, a column of what is fed, for as many as a term has.
Form OneKey(absl::string_view type, int64_t queries) {
  const Shape scores = {2, -1, -1};
  return {"one key",
          absl::StrCat(R"(  transpose2(X=k) -> (Out=kt, XShape=s1) {axis=[1,2,0]}
  matmul_v2(X=q, Y=kt) -> (Out=a) {trans_y=true}
  )",
                       type, R"((X=a, Y=m) -> (Out=b) {axis=-1}
  softmax(X=b) -> (Out=w) {axis=-1}
  matmul_v2(X=w, Y=v) -> (Out=y)
)"),
          {{"q", {2, queries, 4}}, {"k", {4, 2, 1}}, {"v", {2, 5, 4}}, {"m", {1, 1, 5}}},
          {{"kt", {2, -1, 4}}, {"a", scores}, {"b", scores}}};
}

// Windows that take turns with a mask while values have one dimension more.
Form ManyValues() {
  const Shape scores = {6, 4, 4};
  return {"many values",
          R"(  matmul_v2(X=q, Y=k) -> (Out=a) {trans_y=true}
  reshape2(X=a) -> (Out=c, XShape=s1) {shape=[-1,2,4,4]}
  elementwise_add(X=c, Y=m) -> (Out=d) {axis=-1}
  reshape2(X=d) -> (Out=e, XShape=s2) {shape=[-1,4,4]}
  softmax(X=e) -> (Out=w) {axis=-1}
  matmul_v2(X=w, Y=v) -> (Out=y)
)",
          {{"q", {6, 4, 8}}, {"k", {6, 4, 8}}, {"v", {5, 6, 4, 3}}, {"m", {1, 2, 4, 4}}},
          {{"a", scores}, {"c", {3, 2, 4, 4}}, {"d", {3, 2, 4, 4}}, {"e", scores}}};
}

std::vector<Form> AllForms() {
  std::vector<Form> forms = {Joined(2, 49, 3, 32), Joined(1, 197, 2, 64), Joined(3, 1, 2, 7),
                             Joined(1, 130, 1, 20), Joined(0, 5, 2, 8)};
  for (const int64_t queries : {1, 3, 4, 13, 70}) {
    for (const int64_t keys : {1, 15, 16, 17, 49, 300}) {
      forms.push_back(Masked(2, queries, keys, 12, 33));
      forms.push_back(Plain(3, queries, keys));
      forms.push_back(Multiplied(2, queries, keys));
    }
  }
  forms.push_back(Masked(1, 9, 1024, 40, 64));
  forms.push_back(Windows(8, 4, 49));
  forms.push_back(Windows(6, 1, 16));
  forms.push_back(Windows(3, 3, 7));
  forms.push_back(Grown({1, 4, 8}, {1, 5, 8}, {1, 5, 3}, {3, 1, 5}));
  forms.push_back(Grown({2, 1, 8}, {2, 5, 8}, {2, 5, 3}, {2, 6, 5}));
  forms.push_back(Grown({2, 4, 8}, {2, 1, 8}, {2, 7, 3}, {4, 7}));
  forms.push_back(ManyValues());
  for (const int64_t queries : {1, 6}) {
    forms.push_back(OneKey("elementwise_add", queries));
    forms.push_back(OneKey("elementwise_mul", queries));
  }
  return forms;
}

template <typename T>
void ExpectNear(const Form& form, double tolerance) {
  SCOPED_TRACE(form.name);
  CoreOptions apart;
  apart.passes.disable = {std::string(kPass)};
  const RanText<T> expected = RunForm<T>(form, apart);
  EXPECT_EQ(expected.CountOf("softmax"), 1);
  const RanText<T> ran = RunForm<T>(form, CoreOptions());
  EXPECT_EQ(ran.CountOf("scaled_dot_product_attention"), 1);
  for (const char* type : {"transpose2", "slice", "scale", "elementwise_add", "elementwise_mul",
                           "elementwise_sub", "softmax"}) {
    EXPECT_EQ(ran.CountOf(type), 0) << type;
  }
  EXPECT_EQ(ran.shape, expected.shape);
  EXPECT_THAT(ran.values, ::testing::Pointwise(::testing::DoubleNear(tolerance), expected.values));
}

TEST(ScaledDotProductAttentionTest, StandsForItsPieces) {
  for (const Form& form : AllForms()) ExpectNear<float>(form, 2e-6);
}

TEST(ScaledDotProductAttentionTest, StandsForThemInDoubles) {
  for (const Form& form : AllForms()) ExpectNear<double>(form, 1e-14);
}

TEST(ScaledDotProductAttentionTest, HasTheSameBitsEverywhere) {
  for (const Form& form : {Joined(2, 49, 3, 32), Joined(1, 197, 1, 64), Windows(8, 4, 49)}) {
    const std::vector<float> expected = RunForm<float>(form, CoreOptions()).values;
    for (const int threads : {2, 3}) {
      CoreOptions options;
      options.num_threads = threads;
      EXPECT_EQ(RunForm<float>(form, options).values, expected);
      options.scheduler = SchedulerKind::kAsync;
      options.num_workers = threads;
      EXPECT_EQ(RunForm<float>(form, options).values, expected);
      options.plan.place = Place{PlaceKind::kSim, 0};
      EXPECT_EQ(RunForm<float>(form, options).values, expected);
    }
  }
}

// A row of scores that are all minus infinity has no weights, as softmax has none for it.
TEST(ScaledDotProductAttentionTest, KeysThatAreMaskedCount) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const OpRun run = {
      "scaled_dot_product_attention",
      {{"Q", Numbers({1, 2, 4}, 1)},
       {"K", Numbers({1, 3, 4}, 2)},
       {"V", TensorOf<float>({1, 3, 1}, {1, 2, 4})},
       {"Bias", TensorOf<float>({2, 3}, {kNever, 0, kNever, kNever, kNever, kNever})}},
      {"Out"},
      ""};
  const std::vector<float> out = Values<float>(OutputsOf(run)[0]);
  EXPECT_FLOAT_EQ(out[0], 2);
  EXPECT_TRUE(std::isnan(out[1]));
}

OpRun Attention(const Shape& q, const Shape& k, const Shape& v, const std::string& attrs = "") {
  return {"scaled_dot_product_attention",
          {{"Q", Numbers(q, 1)}, {"K", Numbers(k, 2)}, {"V", Numbers(v, 3)}},
          {"Out"},
          attrs};
}

TEST(ScaledDotProductAttentionTest, NoKeysGiveZeros) {
  for (const int64_t queries : {2, 5}) {
    const OpRun run = Attention({1, queries, 4}, {1, 0, 4}, {1, 0, 3});
    EXPECT_THAT(Values<float>(OutputsOf(run)[0]), ::testing::Each(0));
  }
}

TEST(ScaledDotProductAttentionTest, RefusesMoreScoresThanThereCanBe) {
  constexpr int64_t kMany = int64_t{1} << 28;
  EXPECT_THAT(
      RunOp(Attention({kMany, 2 * kMany, 0}, {1, 4, 0}, {1, 4, 1})),
      FailsWith(absl::StatusCode::kResourceExhausted, "scores of shape [268435456,536870912,4]"));
}

TEST(ScaledDotProductAttentionTest, RefusesWhatDoesNotFit) {
  const Shape a = {2, 3, 4};
  OpRun biased = Attention(a, a, a);
  biased.inputs.push_back({"Bias", Numbers({3, 3, 3}, 4)});
  OpRun multiplied = Attention(a, a, a);
  multiplied.inputs.push_back({"Factor", Numbers({2, 3, 2}, 4)});
  OpRun turning = Attention(a, a, a);
  turning.inputs.push_back({"Bias", Numbers({1, 4, 3, 3}, 4)});
  turning.attrs = "turning=[0]";
  ExpectRefusals({
      {Attention(a, {2, 3, 5}, a), "do not fit each other"},
      {Attention(a, a, {2, 4, 4}), "do not fit each other"},
      {Attention(a, {3, 3, 4}, a), "do not fit each other"},
      {Attention({4}, a, a), "input 'Q' has shape [4], expected at least two dims"},
      {Attention(a, a, a, "q_axes=[0,2,1]"), "do not lie in memory as attention reads them"},
      {Attention(a, a, a, "k_axes=[0,1]"), "expected one with the axes of its view"},
      {Attention(a, a, a, "k_axes=[0,1,1]"), "expected one with the axes of its view"},
      {Attention(a, a, a, "v_axes=[0,1,-1]"), "expected one with the axes of its view"},
      {Attention(a, a, a, "v_axes=[1,2], v_slice=[0,2]"), "expected one with the axes of its view"},
      {Attention(a, a, a, "v_slice=[0,1]"), "'v_slice' is not an axis and an index"},
      {Attention(a, a, a, "v_axes=[1,2], v_slice=[0]"), "'v_slice' is not an axis and an index"},
      {Attention(a, a, a, "out_axes=[0,2,1]"), "moves the last one"},
      {Attention(a, a, a, "out_axes=[0,0,2]"), "does not order the axes"},
      {biased, "and what changes the scores do not fit each other"},
      {multiplied, "and what changes the scores do not fit each other"},
      {turning, "'Bias' argument 0 has shape [1,4,3,3], which does not fit the scores [2,3,3]"},
  });
}

}  // namespace
}  // namespace interp::testing::scaled_dot_product_attention_test
