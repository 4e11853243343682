// attention_lstm: an LSTM whose input in each step is an average of all rows of the sequence,
//
//   weights = softmax(relu(AttentionScalar relu(X A_x + AttentionBias + c A_c)
//                          + AttentionScalarBias))
//   x = sum over rows of weights * X
//   gates = h LSTMWeight[0, D) + x LSTMWeight[D, D + M) + LSTMBias
//
// with A_x the first M elements of AttentionWeight, A_c the others and c the state of the step
// before. Without AttentionScalar there is but the inner relu. Gates lie in the order forget,
// input, output, candidate. The outputs that only Paddle's kernel needs are left empty.
#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/recurrent/activation.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp::recurrent {
namespace {

constexpr int kX = 0;
constexpr int kC0 = 1;
constexpr int kH0 = 2;
constexpr int kAttentionWeight = 3;
constexpr int kAttentionBias = 4;
constexpr int kAttentionScalar = 5;
constexpr int kAttentionScalarBias = 6;
constexpr int kWeight = 7;
constexpr int kBias = 8;
constexpr int kHidden = 0;
constexpr int kCell = 1;
constexpr int kOutputs = 6;

struct Attrs {
  CellActivation gate = CellActivation::kSigmoid;
  CellActivation cell = CellActivation::kTanh;
  CellActivation candidate = CellActivation::kTanh;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {ReadActivation(reader, "gate_activation", CellActivation::kSigmoid),
          ReadActivation(reader, "cell_activation", CellActivation::kTanh),
          ReadActivation(reader, "candidate_activation", CellActivation::kTanh)};
}

absl::Status Infer(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Shape& bias = ctx.input(kBias).shape;
  if (x.shape.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected a matrix");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  if (bias.rank() != 2 || bias[0] != 1 || bias[1] < 4 || bias[1] % 4 != 0) {
    return InvalidArgument("input 'LSTMBias' has shape ", ToString(bias), ", expected [1,4 D]");
  }
  const int64_t size = bias[1] / 4;
  const int64_t depth = size + x.shape[1];
  const Shape states = {SequenceCount(offsets), size};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kWeight), "LSTMWeight", {depth, 4 * size}));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kC0), "C0", states));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kH0, "H0", states));
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx.input(kAttentionWeight), "AttentionWeight", {depth, 1}));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kAttentionBias, "AttentionBias", {1, 1}));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kAttentionScalar, "AttentionScalar", {1, 1}));
  INTERP_RETURN_IF_ERROR(
      CheckOptionalShape(ctx, kAttentionScalarBias, "AttentionScalarBias", {1, 1}));
  if (ctx.has_input(kAttentionScalarBias) && !ctx.has_input(kAttentionScalar)) {
    return InvalidArgument("input 'AttentionScalarBias' is given without 'AttentionScalar'");
  }
  for (int output = 0; output < kOutputs; ++output) ctx.SetShape(output, {0});
  for (const int output : {kHidden, kCell}) {
    ctx.SetShape(output, {x.shape[0], size});
    if (Tensor* out = ctx.optional_output(output)) out->lod = x.lod;
  }
  return absl::OkStatus();
}

// What all sequences share.
template <typename T>
struct AttentionLstm {
  Attrs attrs;
  int64_t size = 0;   // of the cell
  int64_t width = 0;  // of the input
  const T* attention_weight = nullptr;
  const T* attention_bias = nullptr;  // null: 0; so are the other two
  const T* scalar = nullptr;
  const T* scalar_bias = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;

  // Elements of scratch for a sequence of `rows` rows.
  int64_t scratch(int64_t rows) const { return 2 * rows + width + 4 * size; }

  // Runs over the sequence `x` from the states h0, which may be null, and c0.
  void Run(const T* x, int64_t rows, const T* h0, const T* c0, T* hidden, T* cell,
           T* scratch) const {
    T* const scores = scratch;
    T* const weights = scores + rows;
    T* const input = weights + rows;
    T* const gates = input + width;
    for (int64_t row = 0; row < rows; ++row) {
      scores[row] = Dot(x + row * width, attention_weight, width) +
                    (attention_bias == nullptr ? T{0} : *attention_bias);
    }
    for (int64_t step = 0; step < rows; ++step) {
      Attend(scores, rows, c0, weights);
      std::fill_n(input, width, T{0});
      for (int64_t row = 0; row < rows; ++row)
        AddScaled(weights[row], x + row * width, width, input);
      Gates(input, h0, gates);
      Update(gates, c0, hidden, cell);
      h0 = hidden;
      c0 = cell;
      hidden += size;
      cell += size;
    }
  }

 private:
  static T Dot(const T* x, const T* y, int64_t n) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
  }

  static void AddScaled(T factor, const T* x, int64_t n, T* out) {
    for (int64_t i = 0; i < n; ++i) out[i] += factor * x[i];
  }

  void Attend(const T* scores, int64_t rows, const T* c, T* weights) const {
    const T of_state = Dot(c, attention_weight + width, size);
    T most = 0;
    for (int64_t row = 0; row < rows; ++row) {
      T score = std::max(scores[row] + of_state, T{0});
      if (scalar != nullptr) {
        score = std::max(score * *scalar + (scalar_bias == nullptr ? T{0} : *scalar_bias), T{0});
      }
      weights[row] = score;
      most = std::max(most, score);
    }
    T sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += weights[row] = std::exp(weights[row] - most);
    for (int64_t row = 0; row < rows; ++row) weights[row] /= sum;
  }

  void Gates(const T* input, const T* h, T* gates) const {
    std::copy_n(bias, 4 * size, gates);
    for (int64_t k = 0; k < size && h != nullptr; ++k) {
      AddScaled(h[k], weight + k * 4 * size, 4 * size, gates);
    }
    for (int64_t k = 0; k < width; ++k) {
      AddScaled(input[k], weight + (size + k) * 4 * size, 4 * size, gates);
    }
    Activate(attrs.gate, gates, 3 * size);
    Activate(attrs.candidate, gates + 3 * size, size);
  }

  void Update(const T* gates, const T* c, T* hidden, T* cell) const {
    const T* const input = gates + size;
    const T* const output = input + size;
    const T* const candidate = output + size;
    for (int64_t j = 0; j < size; ++j) cell[j] = gates[j] * c[j] + input[j] * candidate[j];
    std::copy_n(cell, size, hidden);
    Activate(attrs.cell, hidden, size);
    for (int64_t j = 0; j < size; ++j) hidden[j] *= output[j];
  }
};

template <typename T>
absl::Status RunAttentionLstm(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Offsets offsets = x.lod.back();
  const int64_t size = ctx.input(kBias).shape[1] / 4;
  const AttentionLstm<T> lstm = {
      .attrs = ctx.attrs<Attrs>(),
      .size = size,
      .width = x.shape[1],
      .attention_weight = ctx.input(kAttentionWeight).data<T>(),
      .attention_bias = InputOrNull<T>(ctx, kAttentionBias),
      .scalar = InputOrNull<T>(ctx, kAttentionScalar),
      .scalar_bias = InputOrNull<T>(ctx, kAttentionScalarBias),
      .weight = ctx.input(kWeight).data<T>(),
      .bias = ctx.input(kBias).data<T>(),
  };
  const int64_t sequences = SequenceCount(offsets);
  // Each sequence has its own: 2 elements for each of its rows, and the rest.
  const int64_t rest = lstm.scratch(0);
  INTERP_ASSIGN_OR_RETURN(const int64_t rests, CheckedProduct(sequences, rest));
  INTERP_ASSIGN_OR_RETURN(const int64_t elements, CheckedSum(rests, 2 * x.shape[0]));
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes,
                          CheckedProduct(elements, static_cast<int64_t>(sizeof(T))));
  INTERP_ASSIGN_OR_RETURN(const Workspace memory, ctx.workspace(static_cast<size_t>(bytes)));
  const T* const h0 = InputOrNull<T>(ctx, kH0);
  const T* const c0 = ctx.input(kC0).data<T>();
  T* const hidden = ctx.output(kHidden).mutable_data<T>();
  T* const cell = ctx.output(kCell).mutable_data<T>();
  T* const scratch = memory.data<T>();
  ParallelFor(ctx.num_threads(), sequences, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t first = offsets[n];
      lstm.Run(x.data<T>() + first * lstm.width, offsets[n + 1] - first,
               h0 == nullptr ? nullptr : h0 + n * size, c0 + n * size, hidden + first * size,
               cell + first * size, scratch + 2 * first + n * rest);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "attention_lstm",
    .inputs = {{"X"},
               {"C0"},
               {"H0", kOptional},
               {"AttentionWeight"},
               {"AttentionBias", kOptional},
               {"AttentionScalar", kOptional},
               {"AttentionScalarBias", kOptional},
               {"LSTMWeight"},
               {"LSTMBias"}},
    .outputs = {{"Hidden"},
                {"Cell"},
                {"AttentionedX", kOptional},
                {"AttentionFCOut", kOptional},
                {"LSTMX", kOptional},
                {"LSTMOUT", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, RunAttentionLstm<float>},
                {DType::kFloat64, RunAttentionLstm<double>}},
});

}  // namespace
}  // namespace interp::recurrent
