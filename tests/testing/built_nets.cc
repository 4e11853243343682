#include "tests/testing/built_nets.h"

namespace interp::testing {
namespace {

void Mlp(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 13});
  const Value y = net.Data("y", {-1, 1}, DType::kInt64);
  Value h = net.Fc(x, 16, {.act = "relu"});
  h = net.Dropout(h, 0.25F);
  h = net.Fc(h, 8, {.bias = std::nullopt, .act = "tanh"});
  const Value logits = net.Fc(h, 4);
  net.CrossEntropy(logits, y);
  net.Accuracy(net.Softmax(logits), y);
}

void IgnoredLabels(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 6});
  const Value y = net.Data("y", {-1, 1}, DType::kInt64);
  net.CrossEntropy(net.Fc(x, 4), y, {.ignore_index = 2});
}

void Lenet(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 1, 28, 28});
  const Value y = net.Data("y", {-1, 1}, DType::kInt64);
  Value h = net.Pool2d(net.Conv2d(x, {.filters = 20, .size = 5, .act = "relu"}), {.size = 2});
  h = net.Pool2d(net.Conv2d(h, {.filters = 50, .size = 5, .act = "relu"}), {.size = 2});
  h = net.Fc(net.Flatten(h), 500, {.act = "relu"});
  net.Mean(net.SoftmaxWithCrossEntropy(net.Fc(h, 10), y));
}

Value ConvNorm(ProgramBuilder& net, Value x, int64_t filters, int64_t stride, const char* act) {
  const Value h = net.Conv2d(
      x, {.filters = filters, .size = 3, .stride = stride, .padding = 1, .bias = std::nullopt});
  return net.BatchNorm(h, {.act = act});
}

void Resnet(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 3, 16, 16});
  const Value y = net.Data("y", {-1, 1}, DType::kInt64);
  Value h = ConvNorm(net, x, 8, 1, "relu");
  const Value body = ConvNorm(net, ConvNorm(net, h, 16, 2, "relu"), 16, 1, "");
  const Value side = net.Conv2d(h, {.filters = 16, .size = 1, .stride = 2, .bias = std::nullopt});
  h = net.Relu(net.Add(body, side));
  h = net.Flatten(net.Pool2d(h, {.size = 1, .type = "avg", .adaptive = true}));
  net.Mean(net.SoftmaxWithCrossEntropy(net.Fc(h, 10), y));
}

void Windows(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 4, 15, 17});
  Value h = net.Conv2d(x, {.filters = 8, .size = {3, 5}, .stride = 2, .padding_algorithm = "SAME"});
  h = net.Pool2d(h, {.size = 3, .stride = 2, .padding = 1, .ceil_mode = true});
  h = net.Conv2d(h, {.filters = 8, .size = 3, .padding = {2, 1}, .dilation = {2, 1}, .groups = 4});
  h = net.Pool2d(h, {.size = 3, .type = "avg", .stride = 1, .padding = 1, .exclusive = false});
  net.Mean(h);
}

void LastOfLstm(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 6}, DType::kInt64);
  const Value y = net.Data("y", {-1, 1}, DType::kInt64);
  const Value words = net.Embedding(x, {.rows = 50, .width = 12, .is_sparse = true});
  const Value h =
      net.Lstm(words, {.hidden = 8, .num_layers = 2, .bidirectional = true, .dropout = 0.0F}).out;
  net.Mean(net.SoftmaxWithCrossEntropy(net.Fc(net.Select(h, 1, -1), 5), y));
}

void Attention(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 6}, DType::kInt64);
  const Value y = net.Data("y", {-1, 6, 1}, DType::kInt64);
  Value h = net.Embedding(x, {.rows = 50, .width = 16, .padding_idx = -1});
  Value n = net.LayerNorm(h, {.begin_norm_axis = 2});
  h = net.Add(h, net.SelfAttention(n, {.heads = 4}));
  n = net.LayerNorm(h, {.begin_norm_axis = 2});
  n = net.Fc(n, 32, {.num_flatten_dims = 2, .act = "gelu"});
  h = net.Add(h, net.Fc(n, 16, {.num_flatten_dims = 2}));
  net.Mean(net.SoftmaxWithCrossEntropy(net.Fc(h, 50, {.num_flatten_dims = 2}), y));
}

void Regression(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 4, 10});
  const Value y = net.Data("y", {-1, 1});
  const Value by_column = net.Mul(x, net.Parameter({10}, {.init = Initializer::Constant(2)}));
  const Value product = net.Matmul(by_column, x, false, true);  // [-1, 4, 4]
  const Value both = net.Concat({net.Transpose(product, {0, 2, 1}), net.Scale(x, 0.5F, 1)}, 2);
  const Value flat = net.Reshape(both, {0, 56});
  net.Mean(net.SquareErrorCost(net.Fc(flat, 1), y));
}

void Initializers(ProgramBuilder& net) {
  const Value x = net.Data("x", {-1, 20});
  for (const Initializer& init :
       {Initializer::Constant(0.1F), Initializer::Uniform(-1, 2), Initializer::Normal(1, 2),
        Initializer::TruncatedNormal(0, 3), Initializer::XavierUniform(),
        Initializer::XavierNormal(), Initializer::KaimingUniform(), Initializer::KaimingNormal()}) {
    net.Fc(x, 10, {.weight = {.init = init}});
  }
  const Value image = net.Data("image", {-1, 3, 28, 28});
  net.Conv2d(image, {.filters = 20, .size = 5, .weight = {.init = Initializer::XavierUniform()}});
  net.Conv2d(image, {.filters = 20, .size = 5, .weight = {.init = Initializer::KaimingNormal()}});
}

void Activations(ProgramBuilder& net) {
  Value x = net.Data("x", {-1, 8});
  for (const char* type :
       {"abs",        "elu",         "exp",     "gelu",     "hard_sigmoid", "hard_swish",
        "leaky_relu", "log_softmax", "mish",    "relu",     "relu6",        "selu",
        "sigmoid",    "silu",        "softmax", "softplus", "softsign",     "square",
        "swish",      "tanh",        "sqrt",    "log"}) {
    net.Fc(x, 8, {.weight = {.init = Initializer::Constant(0.1F)}, .act = type});
  }
}

}  // namespace

const std::vector<BuiltNet>& BuiltNets() {
  static const auto& nets = *new std::vector<BuiltNet>{
      {"mlp", Mlp},
      {"ignored_labels", IgnoredLabels},
      {"lenet", Lenet},
      {"resnet", Resnet},
      {"windows", Windows},
      {"lstm", LastOfLstm},
      {"attention", Attention},
      {"regression", Regression},
      {"initializers", Initializers},
      {"activations", Activations},
  };
  return nets;
}

absl::StatusOr<BuiltProgram> Build(const std::string& name, BuilderOptions options) {
  for (const BuiltNet& net : BuiltNets()) {
    if (net.name != name) continue;
    ProgramBuilder builder(options);
    net.build(builder);
    return builder.Finish();
  }
  return NotFound("no net '", name, "'");
}

std::string LastResult(const Program& program) {
  for (auto var = program.blocks[0].vars.rbegin(); var != program.blocks[0].vars.rend(); ++var) {
    if (!var->persistable && var->dtype == DType::kFloat32) return program.NameOf(var->id);
  }
  return "";
}

}  // namespace interp::testing
