#include "tests/testing/fake_ops.h"

namespace interp::testing {
namespace {

absl::Status NoKernel(KernelContext&) { return Unimplemented("fake ops have no kernel"); }

OpDef Unary(absl::string_view type) {
  return {.type = type,
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .inplace = {{0, 0}},
          .gradient = {.inputs = {"Out", "Out@GRAD"}, .outputs = {"X@GRAD"}}};
}

struct CastAttrs {
  DType out_dtype = DType::kFloat32;
};

CastAttrs ReadCastAttrs(AttrReader& attrs) { return {attrs.Type("out_dtype", DType::kFloat32)}; }

GradientDef BinaryGradient() {
  return {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}};
}

OpDef Binary(absl::string_view type) {
  return {.type = type,
          .inputs = {{"X"}, {"Y"}},
          .outputs = {{"Out"}},
          .inplace = {{0, 0}},
          .gradient = BinaryGradient()};
}

absl::Status SplitGradient(GradientMaker& maker) {
  Op& concat = maker.Add("concat");
  AddInput(concat, "X", maker.OutputGradients("Out"));
  AddOutput(concat, "Out", maker.InputGradients("X"));
  return absl::OkStatus();
}

OpDef View(absl::string_view type) {
  return {.type = type,
          .inputs = {{"X"}, {"Shape", kOptional | kAnyDType | kValueInInfer}},
          .outputs = {{"Out"}, {"XShape", kOptional}},
          .view = {{0, 0}}};
}

OpDef Conv(absl::string_view type) {
  return {.type = type,
          .inputs = {{"Input"}, {"Filter"}, {"Bias", kOptional}},
          .outputs = {{"Output"}}};
}

OpDef BatchNorm() {
  return {.type = "batch_norm",
          .inputs = {{"X"},
                     {"Scale", kOptional},
                     {"Bias", kOptional},
                     {"Mean"},
                     {"Variance"},
                     {"MomentumTensor", kOptional}},
          .outputs = {{"Y"},
                      {"MeanOut"},
                      {"VarianceOut"},
                      {"SavedMean", kOptional},
                      {"SavedVariance", kOptional},
                      {"ReserveSpace", kOptional}}};
}

OpDef Lists(absl::string_view type, int input_flags, int output_flags) {
  return {.type = type, .inputs = {{"X", input_flags}}, .outputs = {{"Out", output_flags}}};
}

OpDef FusedConv() {
  return {.type = "fused_conv2d",
          .inputs = {{"Input"},
                     {"Filter"},
                     {"Bias", kOptional},
                     {"ResidualData", kOptional},
                     {"BnScale", kOptional},
                     {"BnBias", kOptional},
                     {"BnMean", kOptional},
                     {"BnVariance", kOptional},
                     {"PreScale", kOptional},
                     {"PreShift", kOptional},
                     {"PostScale", kOptional},
                     {"PostShift", kOptional}},
          .outputs = {{"Output"}},
          .kernels = {{DType::kFloat32, NoKernel}}};
}

OpDef FusedTranspose() {
  OpDef transpose = FusedConv();
  transpose.type = "fused_conv2d_transpose";
  std::erase_if(transpose.inputs, [](const SlotDef& slot) { return slot.name == "ResidualData"; });
  return transpose;
}

OpDef PointwiseDepthwise() {
  OpDef pair = FusedConv();
  pair.type = "fused_pointwise_depthwise";
  pair.inputs = {{"Input"},
                 {"Filter"},
                 {"Bias", kOptional},
                 {"DepthwiseFilter"},
                 {"DepthwiseBnScale", kOptional},
                 {"DepthwiseBnBias", kOptional},
                 {"DepthwiseBnMean", kOptional},
                 {"DepthwiseBnVariance", kOptional}};
  return pair;
}

// Ops that put values on grids and bring them back.
void AddQuantizers(OpRegistry& ops) {
  for (const absl::string_view type : {"fake_quantize_abs_max", "fake_quantize_dequantize_abs_max",
                                       "fake_channel_wise_quantize_dequantize_abs_max"}) {
    ops.Add({.type = type, .inputs = {{"X"}}, .outputs = {{"Out"}, {"OutScale"}}});
  }
  for (const absl::string_view type : {"fake_quantize_moving_average_abs_max",
                                       "fake_quantize_dequantize_moving_average_abs_max"}) {
    ops.Add({.type = type,
             .inputs = {{"X"}, {"InScale"}},
             .outputs = {{"Out"}, {"OutScale", kOptional}}});
  }
  ops.Add({.type = "fake_channel_wise_quantize_abs_max",
           .inputs = {{"X"}, {"InScale", kOptional}},
           .outputs = {{"Out"}, {"OutScale", kOptional}}});
  for (const absl::string_view type : {"quantize_linear", "dequantize_linear"}) {
    ops.Add(
        {.type = type,
         .inputs = {{"X"},
                    {"Scale"},
                    {"ZeroPoint", kOptional},
                    {"InAccum", kOptional},
                    {"InState", kOptional}},
         .outputs = {
             {"Y"}, {"OutState", kOptional}, {"OutAccum", kOptional}, {"OutScale", kOptional}}});
  }
  ops.Add({.type = "moving_average_abs_max_scale", .inputs = {{"X"}}, .outputs = {{"Out"}}});
  ops.Add({.type = "fake_dequantize_max_abs", .inputs = {{"X"}, {"Scale"}}, .outputs = {{"Out"}}});
  ops.Add({.type = "fake_channel_wise_dequantize_max_abs",
           .inputs = {{"X"}, {"Scales", kVariadic}},
           .outputs = {{"Out"}}});
  ops.Add({.type = "quantize_int8",
           .inputs = {{"X"}, {"Scale", kOptional}},
           .outputs = {{"Out"}, {"OutScale", kOptional}}});
  OpDef conv = FusedConv();
  conv.type = "int8_conv2d";
  conv.inputs.push_back({"InputScale"});
  conv.inputs.push_back({"FilterScale", kOptional});
  conv.inputs.push_back({"OutputScale", kOptional});
  ops.Add(conv);
  ops.Add({.type = "int8_fc",
           .inputs = {{"Input"},
                      {"W"},
                      {"Bias", kOptional},
                      {"InputScale"},
                      {"FilterScale", kOptional},
                      {"OutputScale", kOptional}},
           .outputs = {{"Out"}}});
}

// What attention is made of beside products, and made to.
void AddAttention(OpRegistry& ops) {
  ops.Add(Unary("softmax"));
  ops.Add({.type = "slice", .inputs = {{"Input"}}, .outputs = {{"Out"}}});
  ops.Add({.type = "scaled_dot_product_attention",
           .inputs = {{"Q"},
                      {"K"},
                      {"V"},
                      {"Factor", kOptional | kVariadic},
                      {"Bias", kOptional | kVariadic}},
           .outputs = {{"Out"}},
           .kernels = {{DType::kFloat32, NoKernel}}});
}

// What paddle.where is made of beside sums, and made to.
void AddWhere(OpRegistry& ops) {
  ops.Add(Unary("fill_any_like"));
  for (const char* type : {"where", "broadcast_where"}) {
    ops.Add({.type = type,
             .inputs = {{"Condition"}, {"X"}, {"Y"}},
             .outputs = {{"Out"}},
             .kernels = {{DType::kFloat32, NoKernel}}});
  }
}

// What normalisation is made of beside sums and products, and made to.
void AddNorms(OpRegistry& ops) {
  for (const char* type : {"reduce_mean", "pow", "square", "sqrt", "rsqrt"}) ops.Add(Unary(type));
  for (const char* type : {"elementwise_sub", "elementwise_div"}) ops.Add(Binary(type));
  ops.Add({.type = "layer_norm",
           .inputs = {{"X"}, {"Scale", kOptional}, {"Bias", kOptional}},
           .outputs = {{"Y"}, {"Mean", kOptional}, {"Variance", kOptional}},
           .kernels = {{DType::kFloat32, NoKernel}}});
  ops.Add({.type = "rms_norm",
           .inputs = {{"x"}, {"norm_weight"}, {"norm_bias", kOptional}},
           .outputs = {{"out"}},
           .kernels = {{DType::kFloat32, NoKernel}}});
}

// What activations are made of beside sums and products, and made to.
void AddActivations(OpRegistry& ops) {
  for (const char* type : {"erf", "softplus", "clip", "mish"}) ops.Add(Unary(type));
  for (const char* type : {"gelu", "hard_swish", "hard_sigmoid", "mish"}) {
    ops.AddKernels(type, {{DType::kFloat32, NoKernel}, {DType::kFloat64, NoKernel}});
  }
}

// Ops that may have an attribute as input, and their gradients.
void AddOpsWithAxes(OpRegistry& ops) {
  constexpr int kFlags = kOptional | kAnyDType | kValueInInfer;
  ops.Add(
      {.type = "cumsum", .inputs = {{"X"}, {"AxisTensor", kFlags, "axis"}}, .outputs = {{"Out"}}});
  ops.Add({.type = "cumsum_grad",
           .inputs = {{"X"}, {"Out@GRAD"}, {"AxisTensor", kFlags}},
           .outputs = {{"X@GRAD"}}});
  OpDef squeeze = View("squeeze2");
  squeeze.inputs = {
      {"X"}, {"AxesTensor", kFlags, "axes"}, {"AxesTensorList", kFlags | kVariadic, "axes"}};
  ops.Add(squeeze);
  ops.Add({.type = "squeeze2_grad", .inputs = {{"XShape"}, {"Out@GRAD"}}, .outputs = {{"X@GRAD"}}});
}

// Ops on arrays and on what branches leave.
void AddChoices(OpRegistry& ops) {
  ops.Add(Lists("write_to_array", 0, kTensorArray));
  ops.Add({.type = "select_input",
           .inputs = {{"X", kVariadic | kAnyDType}, {"Mask", kAnyDType}},
           .outputs = {{"Out"}}});
  ops.Add(Lists("read_from_array", kTensorArray, 0));
}

// Ops that move data, draw numbers or train.
void AddOthers(OpRegistry& ops) {
  ops.Add(Lists("feed", kTensorArray, 0));
  ops.Add(Lists("fetch", 0, kTensorArray));
  ops.Add(Lists("fetch_v2", 0, kTensorArray));
  ops.Add({.type = "assign", .inputs = {{"X"}}, .outputs = {{"Out"}}, .inplace = {{0, 0}}});
  ops.Add({.type = "cast",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<CastAttrs, ReadCastAttrs>,
           .infer_dtype = [](DTypeContext& ctx) { ctx.Set(0, ctx.attrs<CastAttrs>().out_dtype); },
           .inplace = {{0, 0}}});
  ops.Add({.type = "arg_max",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .infer_dtype = [](DTypeContext& ctx) { ctx.Set(0, DType::kInt64); }});
  ops.Add({.type = "dropout",
           .inputs = {{"X"}},
           .outputs = {{"Out"}, {"Mask", kOptional}},
           .inplace = {{0, 0}},
           .random = true});
  ops.Add({.type = "sum", .inputs = {{"X", kVariadic}}, .outputs = {{"Out"}}, .inplace = {{0, 0}}});
  ops.Add({.type = "turn_row",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .kernels = {{DType::kUndefined, NoKernel}}});
  ops.Add({.type = "concat", .inputs = {{"X", kVariadic}}, .outputs = {{"Out"}}});
  ops.Add({.type = "split",
           .inputs = {{"X"}},
           .outputs = {{"Out", kVariadic}},
           .gradient = {.make = SplitGradient}});
  ops.Add({.type = "mean",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}}});
  ops.Add({.type = "sign", .inputs = {{"X"}}, .outputs = {{"Out"}}, .gradient = {.none = true}});
  ops.Add({.type = "lookup_table",
           .inputs = {{"W"}, {"Ids"}},
           .outputs = {{"Out"}},
           .gradient = {.inputs = {"W", "Ids", "Out@GRAD"}, .outputs = {"W@GRAD"}}});
  ops.Add({.type = "mean_grad",
           .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
           .outputs = {{"X@GRAD"}}});
  ops.Add({.type = "elementwise_add_grad",
           .inputs = {{"X", kNoNeedBuffer}, {"Y", kNoNeedBuffer}, {"Out@GRAD"}},
           .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}}});
  ops.Add({.type = "roi_align", .inputs = {{"X"}, {"ROIs"}}, .outputs = {{"Out"}}});
  ops.Add({.type = "roi_align_grad",
           .inputs = {{"X"}, {"ROIs"}, {"Out@GRAD"}},
           .outputs = {{"X@GRAD"}}});
  ops.Add({.type = "generate_proposals", .inputs = {{"Scores"}}, .outputs = {{"RpnRois"}}});
  ops.Add({.type = "sgd",
           .inputs = {{"Param"}, {"Grad"}, {"LearningRate"}},
           .outputs = {{"ParamOut"}},
           .inplace = {{0, 0}}});
  ops.Add({.type = "adam",
           .inputs = {{"Param"}, {"Grad"}, {"LearningRate"}, {"SkipUpdate", kOptional | kAnyDType}},
           .outputs = {{"ParamOut"}},
           .inplace = {{0, 0}}});
  ops.Add({.type = "uniform_random", .inputs = {}, .outputs = {{"Out"}}, .random = true});
  ops.Add({.type = "nms", .inputs = {{"X"}}, .outputs = {{"Out"}}, .dynamic_outputs = true});
  ops.Add({.type = "print", .inputs = {{"In"}}, .outputs = {{"Out"}}, .side_effect = true});
  ops.Add({.type = "while",
           .inputs = {{"X", kVariadic}, {"Condition"}},
           .outputs = {{"Out", kVariadic}, {"StepScopes", kOptional}}});
}

OpRegistry MakeFakeOps() {
  OpRegistry ops;
  for (const absl::string_view type : {"relu", "relu6", "leaky_relu", "hard_swish", "sigmoid",
                                       "swish", "hard_sigmoid", "tanh", "scale", "gelu"}) {
    ops.Add(Unary(type));
  }
  for (const absl::string_view type : {"elementwise_add", "elementwise_mul"}) ops.Add(Binary(type));
  AddActivations(ops);
  ops.AddKernels("swish", {{DType::kFloat32, NoKernel}, {DType::kBFloat16, NoKernel}});
  ops.AddKernels("relu", {{DType::kFloat32, NoKernel}, {DType::kBFloat16, NoKernel}});
  ops.AddKernels("elementwise_add", {{DType::kFloat32, NoKernel}, {DType::kBFloat16, NoKernel}});
  ops.AddKernels("mul", {{DType::kFloat32, NoKernel}, {DType::kBFloat16, NoKernel}});
  ops.Add({.type = "shuffle_channel",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .kernels = {{DType::kFloat32, NoKernel}}});
  for (const absl::string_view type : {"move_channels_last", "move_channels_first"}) {
    ops.Add(View(type));
    ops.AddKernels(type, {{DType::kUndefined, NoKernel}});
  }
  ops.Add({.type = "pool2d", .inputs = {{"X"}}, .outputs = {{"Out"}}});
  OpDef reshape = View("reshape2");
  reshape.inputs.push_back({"ShapeTensor", kOptional | kAnyDType | kValueInInfer | kVariadic});
  ops.Add(std::move(reshape));
  AddOpsWithAxes(ops);
  for (const absl::string_view type : {"conv2d", "depthwise_conv2d", "conv2d_transpose"}) {
    ops.Add(Conv(type));
  }
  for (const absl::string_view type : {"mul", "matmul_v2", "matmul"}) {
    ops.Add({.type = type,
             .inputs = {{"X"}, {"Y"}},
             .outputs = {{"Out"}},
             .precision = PrecisionRule::kReduced,
             .gradient = BinaryGradient()});
  }
  AddAttention(ops);
  AddWhere(ops);
  AddNorms(ops);
  ops.Add(BatchNorm());
  ops.Add(FusedConv());
  ops.Add(FusedTranspose());
  ops.Add(PointwiseDepthwise());
  AddQuantizers(ops);
  ops.AddKernels("fake_quantize_dequantize_moving_average_abs_max", {{DType::kFloat32, NoKernel}});
  ops.Add({.type = "fc",
           .inputs = {{"Input"}, {"W"}, {"Bias", kOptional}},
           .outputs = {{"Out"}},
           .kernels = {{DType::kFloat32, NoKernel}}});
  AddChoices(ops);
  AddOthers(ops);
  return ops;
}

}  // namespace

const OpRegistry& FakeOps() {
  static const auto& ops = *new OpRegistry(MakeFakeOps());
  return ops;
}

}  // namespace interp::testing
