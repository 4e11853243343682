// ProgramBuilder: programs written in C++, without Python.
//
//   ProgramBuilder net;
//   const Value image = net.Data("image", {-1, 1, 28, 28});
//   const Value label = net.Data("label", {-1, 1}, DType::kInt64);
//   Value h = net.Conv2d(image, {.filters = 20, .size = 5, .act = "relu"});
//   h = net.Pool2d(h, {.size = 2});
//   const Value logits = net.Fc(h, 10);
//   const Value loss = net.Mean(net.SoftmaxWithCrossEntropy(logits, label));
//   absl::StatusOr<BuiltProgram> built = net.Finish();
//
// A layer adds ops to the main program, and to the startup program what makes its parameters. Ops,
// slots, attributes and names ("conv2d_0.w_0", "fc_0.tmp_1") are those that paddle.static.nn of
// Paddle 2.6 gives for the same calls in the same order, so that parameters of the one fit the
// other. Dtypes and dims of all variables are declared.
//
// Errors are sticky: after the first one, calls do nothing and give no value, and Finish tells it
// with the layer that failed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/infer_dims.h"
#include "core/layers/layer_options.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

struct BuilderOptions {
  // For evaluation: batch_norm uses its moving statistics and dropout does nothing. The names are
  // those of the program for training built by the same calls.
  bool is_test = false;
};

// The ids of values are those of the variables of `main`.
struct BuiltProgram {
  Program main;
  Program startup;
};

class ProgramBuilder {
 public:
  using Arguments = std::vector<std::pair<std::string, std::vector<Value>>>;  // by slot

  explicit ProgramBuilder(BuilderOptions options = {});

  // --- variables and ops ---

  // A variable that is fed. -1: any size.
  Value Data(const std::string& name, Dims dims, DType dtype = DType::kFloat32, int lod_level = 0);
  // A parameter outside of any layer (paddle.static.create_parameter).
  Value Parameter(Dims dims, const ParamOptions& options = {}, DType dtype = DType::kFloat32);
  // A variable for the output of an op: "<layer>.tmp_0".
  Value Temporary(absl::string_view layer, Dims dims, DType dtype = DType::kFloat32);
  // Any op. Outputs do not pass gradients on when no input does.
  void AddOp(absl::string_view type, const Arguments& inputs, const Arguments& outputs,
             std::vector<Attr> attrs = {});
  // "fc" -> "fc_0", "fc_1", ...
  std::string UniqueName(absl::string_view key);
  // The declaration of a value; that of an empty variable for none.
  const Var& Get(Value value) const;
  const std::string& NameOf(Value value) const;
  bool is_test() const { return options_.is_test; }

  // --- layers with parameters ---

  Value Fc(Value x, int64_t size, const FcOptions& options = {});
  Value Conv2d(Value x, const Conv2dOptions& options);
  Value BatchNorm(Value x, const BatchNormOptions& options = {});
  Value LayerNorm(Value x, const LayerNormOptions& options = {});
  Value Embedding(Value ids, const EmbeddingOptions& options);
  // paddle.nn.LSTM over [batch, time, width].
  LstmResult Lstm(Value x, const LstmOptions& options);
  // paddle.nn.MultiHeadAttention of a sequence [batch, time, width] with itself.
  Value SelfAttention(Value x, const AttentionOptions& options);

  // --- layers without ---

  Value Pool2d(Value x, const Pool2dOptions& options);
  Value Dropout(Value x, float probability);
  // By op type: relu, sigmoid, tanh, softmax, gelu, ...; the op's own attributes.
  Value Activation(Value x, absl::string_view type);
  Value Relu(Value x) { return Activation(x, "relu"); }
  Value Sigmoid(Value x) { return Activation(x, "sigmoid"); }
  Value Tanh(Value x) { return Activation(x, "tanh"); }
  Value Gelu(Value x) { return Activation(x, "gelu"); }
  Value Square(Value x) { return Activation(x, "square"); }
  Value Softmax(Value x, int axis = -1);

  // --- elementwise, with broadcasting; type is that of the op: elementwise_max, ... ---

  Value Elementwise(absl::string_view type, Value x, Value y);
  Value Add(Value x, Value y) { return Elementwise("elementwise_add", x, y); }
  Value Sub(Value x, Value y) { return Elementwise("elementwise_sub", x, y); }
  Value Mul(Value x, Value y) { return Elementwise("elementwise_mul", x, y); }
  Value Div(Value x, Value y) { return Elementwise("elementwise_div", x, y); }
  Value Scale(Value x, float scale, float bias = 0);

  // --- shapes and products ---

  // 0 keeps a dim, -1 follows from the others.
  Value Reshape(Value x, const std::vector<int32_t>& shape);
  // Dims start_axis to stop_axis become one.
  Value Flatten(Value x, int start_axis = 1, int stop_axis = -1);
  Value Transpose(Value x, const std::vector<int32_t>& order);
  Value Concat(const std::vector<Value>& values, int axis = 0);
  // x[:, ..., index, ...] along `axis`, which goes away. Negative: from the end.
  Value Select(Value x, int axis, int32_t index);
  Value Matmul(Value x, Value y, bool transpose_x = false, bool transpose_y = false);

  // --- losses and metrics ---

  // One loss for each row, over logits; labels are [..., 1] of int64.
  Value SoftmaxWithCrossEntropy(Value logits, Value label, const SoftmaxLossOptions& options = {});
  // Their mean (paddle.nn.functional.cross_entropy); with an ignore_index from 0 on, over the
  // labels that are not ignored.
  Value CrossEntropy(Value logits, Value label, const SoftmaxLossOptions& options = {});
  Value SquareErrorCost(Value x, Value label);
  // Over all elements.
  Value Mean(Value x);
  // How much of the batch has its label among the k largest.
  Value Accuracy(Value x, Value label, int k = 1);

  // Records an error of the caller's own; the first one is kept.
  void Fail(absl::string_view message);
  const absl::Status& status() const { return status_; }

  // Both programs, or the first error. Ends the builder.
  absl::StatusOr<BuiltProgram> Finish();

 private:
  friend class LayerHelper;

  // True when there was no error and all are values of this builder; else fails.
  bool Usable(const std::vector<Value>& values);
  Value Declare(const std::string& name, Dims dims, DType dtype);
  Value DeclareParameter(const std::string& name, Dims dims, DType dtype, const Initializer& init,
                         bool trainable);
  std::vector<Slot> SlotsOf(const Arguments& arguments);

  const BuilderOptions options_;
  absl::Status status_;
  Program main_;  // variable i is declared at position i
  Program startup_;
  absl::flat_hash_map<std::string, int> name_counts_;
};

}  // namespace interp
