// Ops that inference passes fuse, and further ops of old programs: what they take from other
// passes, inputs and attributes that they refuse, and sequences of no rows, which Paddle does not
// take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

const Lod kTwo = {{0, 2, 3}};

TEST(FusedOpsTest, RefusesSequencesThatDoNotFit) {
  const Tensor x = Numbers({3, 4}, 1, kTwo);
  const Tensor pair = Numbers({2, 2}, 2);
  const Tensor narrow = Numbers({3, 1}, 3, kTwo);
  const Tensor ids = Tensor::Of<int64_t>({3, 1}, {0, 7, 1});
  Tensor sequences = ids;
  sequences.lod = kTwo;
  ExpectRefusals({
      {{"fusion_seqpool_cvm_concat", {{"X", narrow}, {"CVM", pair}}, {"Out"}, ""}, "2 or more"},
      {{"fusion_seqpool_cvm_concat", {{"X", x}, {"CVM", pair}}, {"Out"}, "use_cvm=false"},
       "'use_cvm' is false"},
      {{"fused_seqpool_cvm", {{"X", narrow}, {"CVM", pair}}, {"Out"}, ""}, "2 or more"},
      {{"fused_seqpool_cvm", {{"X", x}, {"CVM", pair}}, {"Out"}, "pooltype=\"AVERAGE\""},
       "expected 'SUM'"},
      {{"fused_seqpool_cvm_grad",
        {{"X", x}, {"CVM", Numbers({3, 2}, 1)}, {"Out@GRAD", Numbers({2, 4}, 1)}},
        {"X@GRAD"},
        ""},
       "'CVM' has shape [3,2], expected [2,2]"},
      {{"fusion_seqconv_eltadd_relu",
        {{"X", x}, {"Filter", Numbers({4, 5}, 1)}, {"Bias", Numbers({4}, 1)}},
        {"Out"},
        "contextLength=1"},
       "'Bias' has shape [4], expected 5 elements"},
      {{"fusion_seqexpand_concat_fc", {{"X", x}, {"FCWeight", pair}}, {"Out"}, ""}, "1 inputs 'X'"},
      {{"fused_embedding_fc_lstm",
        {{"Ids", sequences},
         {"Embeddings", Numbers({7, 8}, 1)},
         {"WeightH", Numbers({2, 8}, 1)},
         {"Bias", Numbers({1, 8}, 1)}},
        {"Hidden", "Cell"},
        "use_peepholes=false"},
       "'Ids' has the value 7 at position 1"},
      {{"multi_gru", {{"X", x}, {"WeightX", pair}, {"WeightH", pair}}, {"Hidden"}, ""},
       "1 inputs 'WeightX', expected 2"},
      {{"match_matrix_tensor",
        {{"X", x}, {"Y", x}, {"W", Numbers({4, 2, 4}, 1)}},
        {"Out", "Tmp"},
        "dim_t=3"},
       "[D,3,D]"},
  });
}

// Of a program of one op, over `feeds`.
absl::Status RunText(absl::string_view text,
                     const std::vector<std::pair<std::string, Tensor>>& feeds,
                     const std::vector<std::string>& fetches) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(absl::StrCat("block 0\n", text)));
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : feeds) {
    names.push_back(name);
    tensors.push_back(tensor);
  }
  INTERP_ASSIGN_OR_RETURN(auto core,
                          InterpreterCore::Create(std::move(program), names, fetches, nullptr, {}));
  return core->Run(tensors).status();
}

TEST(FusedOpsTest, AVariableThatIsGivenTwiceIsCheckedTwice) {
  EXPECT_THAT(
      RunText("  var a float32[-1,4] lod=1 check_feed\n  var w float32[8,1] check_feed\n"
              "  fusion_seqexpand_concat_fc(X=[a, a], FCWeight=w) -> (Out=o)\n",
              {{"a", Numbers({1000, 4}, 1, {{0, 1000}})}, {"w", Numbers({8, 1}, 2)}}, {"o"}),
      FailsWith(absl::StatusCode::kInvalidArgument, "expected a matrix of 1 rows"));
}

TEST(FusedOpsTest, AnOutputMayBeLeftOut) {
  EXPECT_THAT(RunText("  var a float32[-1,4] lod=1 check_feed\n  var c float32[-1,2] check_feed\n"
                      "  fused_seqpool_cvm(X=[a, a], CVM=c) -> (Out=[@EMPTY@, o])\n",
                      {{"a", Numbers({3, 4}, 1, kTwo)}, {"c", Numbers({2, 2}, 2)}}, {"o"}),
              IsOk());
}

TEST(FusedOpsTest, RefusesAttentionThatDoesNotFit) {
  const OpRun fitting = {"attention_lstm",
                         {{"X", Numbers({3, 4}, 1, kTwo)},
                          {"C0", Numbers({2, 2}, 2)},
                          {"AttentionWeight", Numbers({6, 1}, 3)},
                          {"LSTMWeight", Numbers({6, 8}, 4)},
                          {"LSTMBias", Numbers({1, 8}, 5)}},
                         {"Hidden", "Cell"},
                         ""};
  EXPECT_THAT(RunOp(fitting), IsOk());
  OpRun lone_bias = fitting;
  lone_bias.inputs.push_back({"AttentionScalarBias", Numbers({1, 1}, 1)});
  ExpectRefusals({
      {With(fitting, 0, Numbers({3, 4}, 1)), "'X'"},
      {With(fitting, 1, Numbers({3, 2}, 1)), "'C0' has shape [3,2], expected [2,2]"},
      {With(fitting, 2, Numbers({5, 1}, 1)), "'AttentionWeight'"},
      {With(fitting, 3, Numbers({6, 6}, 1)), "'LSTMWeight'"},
      {With(fitting, 4, Numbers({1, 7}, 1)), "expected [1,4 D]"},
      {lone_bias, "without 'AttentionScalar'"},
  });
}

TEST(FusedOpsTest, RefusesWhatOneDnnWouldNotFuse) {
  const Tensor x = Numbers({2, 3}, 1);
  ExpectRefusals({
      {{"fused_elementwise_add", {{"X", x}, {"Y", Numbers({2}, 1)}}, {"Out"}, ""}, "[2]"},
      {{"fused_elementwise_div", {{"X", x}, {"Y", x}}, {"Out"}, "scale_y=0.0"}, "'scale_y' is 0"},
      {{"fused_elementwise_mul", {{"X", x}, {"Y", x}}, {"Out"}, "fuse_activation=\"selu\""},
       "cannot be fused"},
      {{"fused_elementwise_sub", {{"X", x}, {"Y", x}}, {"Out"}, "fused_unsqueeze2_axes=[9]"},
       "'axes'"},
      {{"fused_softplus", {{"X", x}}, {"Out"}, "beta=0.0"}, "'beta' is 0"},
      {{"fused_transpose", {{"X", x}}, {"Out"}, "axis=[0, 0]"}, "twice"},
      {{"fused_transpose", {{"X", x}}, {"Out"}, "axis=[1, 0], fused_reshape2_shape=[4]"},
       "do not fill"},
      {{"fused_transpose", {{"X", x}}, {"Out"}, "axis=[1, 0], shift=2.0"}, "'shift' is 2"},
  });
}

TEST(FusedOpsTest, RefusesShapesOfNormsAndProducts) {
  const Tensor x = Numbers({2, 3}, 1);
  const Tensor w = Numbers({3, 4}, 1);
  ExpectRefusals({
      {{"fused_fc_elementwise_layernorm", {{"X", x}, {"W", w}, {"Y", x}}, {"Out"}, ""},
       "'Y' has shape [2,3], expected [2,4]"},
      {{"fused_fc_elementwise_layernorm",
        {{"X", x}, {"W", w}, {"Y", Numbers({2, 4}, 1)}, {"Scale", Numbers({3}, 1)}},
        {"Out"},
        ""},
       "'Scale' has shape [3], expected 4"},
      {{"rms_norm", {{"x", x}, {"norm_weight", Numbers({2}, 1)}}, {"out"}, ""}, "'norm_weight'"},
      {{"rms_norm", {{"x", x}, {"norm_weight", Numbers({3}, 1)}}, {"out"}, "begin_norm_axis=2"},
       "'begin_norm_axis' is 2"},
      {{"batch_fc",
        {{"Input", Numbers({2, 3, 4}, 1)},
         {"W", Numbers({2, 4, 5}, 1)},
         {"Bias", Numbers({2, 4}, 1)}},
        {"Out"},
        ""},
       "[2,4], expected [S,B,I]"},
      {{"similarity_focus", {{"X", x}}, {"Out"}, "axis=1, indexes=[0]"}, "expected rank 4"},
      {{"similarity_focus", {{"X", Numbers({1, 2, 2, 2}, 1)}}, {"Out"}, "axis=1, indexes=[2]"},
       "expected 0 to 1"},
      {{"crop", {{"X", x}}, {"Out"}, "shape=[2, 3], offsets=[0, 1]"}, "more than 'X'"},
  });
}

TEST(FusedOpsTest, RefusesCountsThatAreNotThoseOfTheNeighbors) {
  const Tensor nodes = Tensor::Of<int64_t>({2}, {4, 5});
  const auto run = [&](const Tensor& count) {
    return OpRun{"graph_reindex",
                 {{"X", nodes}, {"Neighbors", nodes}, {"Count", count}},
                 {"Reindex_Src", "Reindex_Dst", "Out_Nodes"},
                 ""};
  };
  ExpectRefusals({
      {run(Tensor::Of<int32_t>({2}, {1, 2})), "adds up to 3, expected 2"},
      {run(Tensor::Of<int32_t>({2}, {3, -1})), "'Count' has the value -1"},
      {run(nodes), "expected int32"},
  });
}

TEST(FusedOpsTest, SequencesOfNoRowsHaveNoMatches) {
  const auto out = OutputsOf({"match_matrix_tensor",
                              {{"X", Numbers({3, 2}, 1, {{0, 0, 3}})},
                               {"Y", Numbers({2, 2}, 2, {{0, 2, 2}})},
                               {"W", Numbers({2, 1, 2}, 3)}},
                              {"Out", "Tmp"},
                              "dim_t=1"});
  EXPECT_EQ(out[0].shape, Shape({0, 1}));
  EXPECT_EQ(out[0].lod, Lod({{0, 0, 0}}));
}

// Programs that oneDNN's passes have saved keep plain types.
TEST(FusedOpsTest, RefusesWhatIsFusedIntoPlainOps) {
  const Tensor x = Numbers({2, 2}, 1);
  const auto binary = [&](const std::string& type, const std::string& attrs) {
    return OpRun{type, {{"X", x}, {"Y", x}}, {"Out"}, attrs};
  };
  const auto fc = [&](const std::string& attrs) {
    return OpRun{"fc", {{"Input", x}, {"W", x}}, {"Out"}, attrs};
  };
  ExpectRefusals({
      {binary("elementwise_add", "fused_output_scale=0.5"), "'fused_output_scale' is 0.5, only 1"},
      {binary("elementwise_mul", "fused_unsqueeze2_axes=[0]"), "'fused_unsqueeze2_axes' is set"},
      {binary("elementwise_sub", "fuse_activation=\"relu\""), "'relu', expected none"},
      {binary("matmul", "fused_output_scale=0.5"), "'fused_output_scale' is 0.5, only 1"},
      {binary("matmul", "fused_reshape_X=[2, 2]"), "'fused_reshape_X' is set"},
      {binary("matmul", "Scale_x=0.1, use_mkldnn=true"), "'Scale_x' is 0.1, only 1"},
      {binary("matmul_v2", "fused_output_scale=2.0"), "'fused_output_scale' is 2, only 1"},
      {binary("matmul_v2", "fused_reshape_Y=[2, 2]"), "'fused_reshape_Y' is set"},
      {binary("matmul_v2", "fused_transpose_Out=[1, 0]"), "'fused_transpose_Out' is set"},
      {binary("matmul_v2", "fuse_activation=\"relu\""), "'relu', expected none"},
      {fc("fuse_activation=\"tanh\", activation_type=\"relu\""), "are both set, expected one"},
      {fc("fuse_activation=\"selu\""), "cannot be fused"},
      {{"transpose2", {{"X", x}}, {"Out"}, "axis=[1, 0], fused_squeeze2_axes=[0]"},
       "'fused_squeeze2_axes' is set"},
      {{"reshape2", {{"X", x}}, {"Out"}, "shape=[4], fused_unsqueeze2_axes=[0]"},
       "'fused_unsqueeze2_axes' is set"},
  });
  EXPECT_THAT(RunOp(binary("matmul_v2", "fused_output_scale=1.0, fused_reshape_X=[]")), IsOk());
  EXPECT_THAT(RunOp(binary("matmul", "Scale_x=0.1")), IsOk());
}

TEST(FusedOpsTest, FcTakesTheActivationsOfOneDnn) {
  struct Case {
    std::string fused;
    std::string op;  // that computes the same
    std::string attrs;
  };
  const Case cases[] = {
      {"fuse_activation=\"relu\"", "relu", ""},
      {"fuse_activation=\"leaky_relu\", fuse_alpha=0.3", "leaky_relu", "alpha=0.3"},
      {"fuse_activation=\"hard_sigmoid\", fuse_alpha=0.25, fuse_beta=0.4", "hard_sigmoid",
       "slope=0.25, offset=0.4"},
      {"fuse_activation=\"tanh\", activation_type=\"\"", "tanh", ""},
  };
  OpRun fc = {"fc",
              {{"Input", Numbers({3, 4}, 1)}, {"W", Numbers({4, 5}, 2)}, {"Bias", Numbers({5}, 3)}},
              {"Out"},
              ""};
  const Tensor plain = OutputsOf(fc)[0];
  for (const Case& c : cases) {
    fc.attrs = c.fused;
    const std::vector<float> expected =
        Values<float>(OutputsOf({c.op, {{"X", plain}}, {"Out"}, c.attrs})[0]);
    EXPECT_NE(expected, Values<float>(plain)) << c.fused;
    EXPECT_THAT(Values<float>(OutputsOf(fc)[0]),
                ::testing::Pointwise(::testing::FloatNear(1e-6F), expected))
        << c.fused;
  }
}

TEST(FusedOpsTest, FcOfFloat64IsTheOpsItStandsFor) {
  const Tensor x = Numbers<double>({3, 4}, 1);
  const Tensor w = Numbers<double>({4, 5}, 2);
  const Tensor b = Numbers<double>({5}, 3);
  const Tensor product = OutputsOf({"matmul_v2", {{"X", x}, {"Y", w}}, {"Out"}, ""})[0];
  const Tensor sum = OutputsOf({"elementwise_add", {{"X", product}, {"Y", b}}, {"Out"}, ""})[0];
  const OpRun fc = {"fc", {{"Input", x}, {"W", w}, {"Bias", b}}, {"Out"}, ""};
  EXPECT_THAT(Values<double>(OutputsOf(fc)[0]),
              ::testing::Pointwise(::testing::DoubleNear(1e-14), Values<double>(sum)));
  for (const std::string type : {"relu", "sigmoid", "swish", "tanh", "mish", "gelu"}) {
    OpRun fused = fc;
    fused.attrs = absl::StrCat("activation_type=\"", type, "\"");
    const Tensor expected = OutputsOf({type, {{"X", sum}}, {"Out"}, ""})[0];
    EXPECT_THAT(Values<double>(OutputsOf(fused)[0]),
                ::testing::Pointwise(::testing::DoubleNear(1e-13), Values<double>(expected)))
        << type;
  }
}

// As programs of oneDNN in bfloat16 end. The sum is no number of bfloat16.
TEST(FusedOpsTest, ProductsOfBfloat16GiveFloat32WhereForced) {
  const std::vector<bfloat16> values = {bfloat16(1.0F), bfloat16(0.00390625F)};
  const Tensor row = TensorOf<bfloat16>({1, 2}, values);
  const Tensor image = TensorOf<bfloat16>({1, 2, 1, 1}, values);
  const Tensor column = TensorOf<float>({2, 1}, {1, 1});
  const Tensor filter = TensorOf<float>({1, 2, 1, 1}, {1, 1});
  for (OpRun run : {OpRun{"fc", {{"Input", row}, {"W", column}}, {"Out"}},
                    OpRun{"fused_matmul", {{"X", row}, {"Y", column}}, {"Out"}},
                    OpRun{"fused_conv2d", {{"Input", image}, {"Filter", filter}}, {"Output"}}}) {
    EXPECT_EQ(OutputsOf(run)[0].dtype, DType::kBFloat16) << run.type;
    run.attrs = "force_fp32_output=true";
    const Tensor out = OutputsOf(run)[0];
    ASSERT_EQ(out.dtype, DType::kFloat32) << run.type;
    EXPECT_EQ(out.data<float>()[0], 1.00390625F) << run.type;
  }
}

// Paddle-Lite's optimiser has names of its own.
TEST(FusedOpsTest, ActivationsOfPaddleLite) {
  const auto conv = [](const std::string& attrs) {
    return OpRun{"conv2d",
                 {{"Input", TensorOf<float>({1, 1, 1, 4}, {-5, 5, 1, -1})},
                  {"Filter", TensorOf<float>({1, 1, 1, 1}, {2})}},
                 {"Output"},
                 "strides=[1, 1], paddings=[0, 0], dilations=[1, 1], with_act=true, " + attrs};
  };
  const auto run = [&](const std::string& attrs) {
    return Values<float>(OutputsOf(conv(attrs))[0]);
  };
  EXPECT_THAT(run("act_type=\"relu\""), ElementsAre(0, 10, 2, 0));
  EXPECT_THAT(run("act_type=\"relu6\", fuse_brelu_threshold=6.0"), ElementsAre(0, 6, 2, 0));
  EXPECT_THAT(run("act_type=\"leaky_relu\", leaky_relu_alpha=0.5"), ElementsAre(-5, 10, 2, -1));
  EXPECT_THAT(run("act_type=\"hard_swish\", hard_swish_threshold=6.0, hard_swish_scale=6.0, "
                  "hard_swish_offset=3.0"),
              ElementsAre(0, 10, FloatNear(5.0f / 3, 1e-5f), FloatNear(-1.0f / 3, 1e-5f)));
  ExpectRefusals({{conv("act_type=\"sin\""), "'act_type' is \"sin\", which cannot be fused"},
                  {{"matmul_v2",
                    {{"X", Numbers({2, 2}, 1)}, {"Y", Numbers({2, 2}, 2)}},
                    {"Out"},
                    "with_act=true, act_type=\"relu\""},
                   "'act_type' is 'relu', expected none"}});
}

}  // namespace
}  // namespace interp::testing
