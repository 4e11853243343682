// rnn: layers of LSTM, GRU or plain cells over time-major sequences [time, batch, features], in one
// or both directions. A sequence shorter than the batch's time leaves its state alone after its end
// (before it, in the reverse direction) and has zeros as output there.
//
// WeightList holds, per layer and direction, the input and the state weights, then the biases in
// the same order. State gives the last hidden (and, for LSTM, cell) states of all layers.
//
// In training Reserve keeps what a gradient needs, see rnn_shapes.h, and DropoutState the mask that
// is applied between layers (the same between all).
#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/constant_elements.h"
#include "kernels/nn/dropout_kernel.h"
#include "kernels/nn/onednn.h"
#include "kernels/recurrent/rnn_shapes.h"
#include "kernels/util/all_present.h"
#include "kernels/util/gradient_op.h"

namespace interp::nn {
namespace {

constexpr int kOut = 0;
constexpr int kDropoutState = 1;
constexpr int kReserve = 2;
constexpr int kState = 3;

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<RnnAttrs>();
  INTERP_RETURN_IF_ERROR(CheckRnnInputs(ctx));
  const RnnSizes s = RnnSizesOf(ctx);
  ctx.SetShape(kOut, {s.time, s.batch, s.width()});
  if (ctx.outputs(kState).size() != ctx.inputs(kRnnPreState).size()) {
    return InvalidArgument("output 'State' has ", ctx.outputs(kState).size(),
                           " arguments, expected ", ctx.inputs(kRnnPreState).size());
  }
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.outputs(kState), "State"));
  for (Tensor* state : ctx.outputs(kState)) {
    state->shape = {s.layers * s.directions, s.batch, s.hidden};
  }
  ctx.SetShape(kDropoutState, Masks(attrs) ? Shape{s.time, s.batch, s.width()} : Shape{0});
  ctx.SetShape(kReserve, {attrs.test ? 0 : ReserveSize(attrs, s)});
  return absl::OkStatus();
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kDropoutState, DType::kUInt8);
  ctx.Set(kReserve, ReserveDType(ctx.kernel()));
}

// May throw std::bad_alloc.
template <typename E>
PackedWeight<E> PackTransposed(const Tensor& weight) {
  return {weight.shape[1], weight.shape[0], weight.data<E>(), /*transposed=*/true};
}

// May throw std::bad_alloc.
template <typename E>
RnnWeights<E> PackWeights(const KernelContext& ctx, const RnnSizes& s,
                          absl::Span<const ConstantElements> list) {
  const size_t pairs = list.size() / 2;
  const bool gru = ctx.attrs<RnnAttrs>().mode == RnnMode::kGru;
  RnnWeights<E> weights;
  for (size_t i = 0; i < pairs; i += 2) {
    DirectionWeights<E> packed = {
        PackTransposed<E>(*list[i]), PackTransposed<E>(*list[i + 1]), {}, {}};
    const E* input_bias = list[pairs + i]->data<E>();
    const E* state_bias = list[pairs + i + 1]->data<E>();
    packed.bias.assign(input_bias, input_bias + s.gates);
    const int64_t joined = gru ? 2 * s.hidden : s.gates;
    for (int64_t j = 0; j < joined; ++j) packed.bias[j] += state_bias[j];
    if (gru) packed.hidden_bias.assign(state_bias + joined, state_bias + s.gates);
    weights.directions.push_back(std::move(packed));
  }
  return weights;
}

template <typename E>
absl::StatusOr<std::shared_ptr<const RnnWeights<E>>> Weights(KernelContext& ctx,
                                                             const RnnSizes& s) {
  using Shared = std::shared_ptr<const RnnWeights<E>>;
  const auto pack = [&]() -> absl::StatusOr<Shared> {
    std::vector<ConstantElements> list;
    for (const Tensor* weight : ctx.inputs(kRnnWeightList)) {
      INTERP_ASSIGN_OR_RETURN(ConstantElements elements, ConstantElements::Of(*weight));
      list.push_back(std::move(elements));
    }
    Shared packed;
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      packed = std::make_shared<RnnWeights<E>>(PackWeights<E>(ctx, s, list));
      return absl::OkStatus();
    }));
    return packed;
  };
  for (size_t i = 0; i < ctx.inputs(kRnnWeightList).size(); ++i) {
    if (!ctx.input_is_constant(kRnnWeightList, static_cast<int>(i))) return pack();
  }
  return ctx.Shared<RnnWeights<E>>(/*key=*/0, pack);
}

// Draws the mask between layers, with a seed of its own like Paddle.
void DrawMask(const KernelContext& ctx, const RnnAttrs& attrs, Tensor& mask) {
  uint8_t* const values = mask.mutable_data<uint8_t>();
  ForEachKept(ctx, attrs.seed, attrs.dropout, mask.numel(),
              [=](int64_t i, bool keep) { values[i] = keep ? 1 : 0; });
}

// What a run reads and writes, in what is computed in, and its memory beside that. Tests reuse one
// layer's memory for the next.
template <typename E>
struct RnnBuffers {
  using T = ComputeType<E>;
  const T* before[2];  // PreState
  T* after[2];         // State
  T* out;              // Out
  T* gates;
  T* extra;       // null: not kept
  T* outputs[2];  // of the layers but the last, in turns; in training [0] is Reserve's part
  T* masked;      // a layer's output after dropout
  T* scratch;
  E* operands;  // a layer's input, rounded
};

template <typename E>
class RnnRun {
 public:
  using T = ComputeType<E>;

  RnnRun(KernelContext& ctx, const RnnSizes& s, const RnnWeights<E>& weights,
         const std::vector<int64_t>& lengths, const RnnBuffers<E>& work)
      : ctx_(ctx),
        attrs_(ctx.attrs<RnnAttrs>()),
        s_(s),
        weights_(weights),
        lengths_(lengths),
        work_(work) {}

  void Run() {
    const E* in = Operands(ctx_.input(kRnnInput).template data<E>());
    int64_t features = s_.input;
    Tensor& mask = ctx_.output(kDropoutState);
    const bool masked = Masks(attrs_);
    if (masked) DrawMask(ctx_, attrs_, mask);
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      const T* out = OutputOf(layer);
      RunLayer(layer, in, features, OutputOf(layer));
      if (layer + 1 == s_.layers) break;
      if (masked) {
        ApplyMask(mask, attrs_.dropout, out, work_.masked);
        out = work_.masked;
      }
      features = s_.width();
      in = RoundRows<E>(s_.rows(), features, out, work_.operands);
    }
  }

 private:
  // The op's input as operands of a product: itself, or with rows of whole pairs.
  const E* Operands(const E* input) const {
    const int64_t length = OperandLength<E>(s_.input);
    if (length == s_.input) return input;
    for (int64_t i = 0; i < s_.rows(); ++i) {
      std::copy_n(input + i * s_.input, s_.input, work_.operands + i * length);
      std::fill_n(work_.operands + i * length + s_.input, length - s_.input, E());
    }
    return work_.operands;
  }

  T* OutputOf(int64_t layer) {
    if (layer + 1 == s_.layers) return work_.out;
    if (attrs_.test) return work_.outputs[layer % 2];
    return work_.outputs[0] + layer * s_.rows() * s_.width();
  }

  void RunLayer(int64_t layer, const E* in, int64_t features, T* out) {
    const bool lstm = attrs_.mode == RnnMode::kLstm;
    const int64_t state = layer * s_.directions * s_.batch * s_.hidden;
    const int64_t kept = attrs_.test ? 0 : layer * s_.directions * s_.rows();
    const LayerRun<E> run = {s_,
                             attrs_.mode,
                             lengths_,
                             weights_.directions.data() + layer * s_.directions,
                             in,
                             features,
                             work_.before[0] + state,
                             lstm ? work_.before[1] + state : nullptr,
                             work_.gates + kept * s_.gates,
                             work_.extra == nullptr ? nullptr : work_.extra + kept * s_.hidden,
                             out,
                             work_.after[0] + state,
                             lstm ? work_.after[1] + state : nullptr,
                             work_.scratch};
    run.Project(ctx_.num_threads());
    run.Recur(ctx_.num_threads());
  }

  KernelContext& ctx_;
  const RnnAttrs& attrs_;
  const RnnSizes& s_;
  const RnnWeights<E>& weights_;
  const std::vector<int64_t>& lengths_;
  const RnnBuffers<E>& work_;
};

// Cuts `count` elements off the memory at `at`.
template <typename T>
T* Cut(T*& at, int64_t count) {
  return std::exchange(at, at + count);
}

// Inputs and outputs in what is computed in: their own memory, or some at `at`, which inputs are
// widened to.
template <typename E>
void BindStates(const KernelContext& ctx, const RnnSizes& s, ComputeType<E>*& at,
                RnnBuffers<E>& work) {
  const int64_t size = s.state_size();
  const absl::Span<const Tensor* const> before = ctx.inputs(kRnnPreState);
  const absl::Span<Tensor* const> after = ctx.outputs(kState);
  if constexpr (std::is_same_v<E, ComputeType<E>>) {
    for (size_t i = 0; i < before.size(); ++i) {
      work.before[i] = before[i]->data<E>();
      work.after[i] = after[i]->mutable_data<E>();
    }
    work.out = ctx.output(kOut).mutable_data<E>();
  } else {
    for (size_t i = 0; i < before.size(); ++i) {
      ComputeType<E>* const widened = Cut(at, size);
      std::copy_n(before[i]->data<E>(), size, widened);
      work.before[i] = widened;
      work.after[i] = Cut(at, size);
    }
    work.out = Cut(at, s.rows() * s.width());
  }
}

// Rounds what was computed in more bits than the outputs have.
template <typename E>
void RoundOutputs(const KernelContext& ctx, const RnnSizes& s, const RnnBuffers<E>& work) {
  if constexpr (!std::is_same_v<E, ComputeType<E>>) {
    const absl::Span<Tensor* const> after = ctx.outputs(kState);
    for (size_t i = 0; i < after.size(); ++i) {
      std::copy_n(work.after[i], s.state_size(), after[i]->mutable_data<E>());
    }
    std::copy_n(work.out, s.rows() * s.width(), ctx.output(kOut).mutable_data<E>());
  }
}

template <typename E>
absl::Status Rnn(KernelContext& ctx) {
  using T = ComputeType<E>;
  const auto& attrs = ctx.attrs<RnnAttrs>();
  const RnnSizes s = RnnSizesOf(ctx);
  INTERP_ASSIGN_OR_RETURN(const auto weights, Weights<E>(ctx, s));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, RnnLengths(ctx, s));
  const int64_t layer_gates = s.directions * s.rows() * s.gates;
  const int64_t layer_out = s.rows() * s.width();
  const int64_t widened = std::is_same_v<E, T> ? 0 : 4 * s.state_size() + layer_out;
  const int64_t operands =
      std::is_same_v<E, T> ? 0 : s.rows() * OperandLength<E>(std::max(s.input, s.width()));
  const int64_t size = LayerRun<E>::scratch_size(s) + 2 * layer_out + layer_gates + widened;
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(size) * sizeof(T) +
                                        static_cast<size_t>(operands) * sizeof(E)));
  T* at = static_cast<T*>(scratch.data());
  RnnBuffers<E> work = {};
  BindStates<E>(ctx, s, at, work);
  work.outputs[0] = Cut(at, layer_out);
  work.outputs[1] = work.masked = Cut(at, layer_out);
  work.gates = Cut(at, layer_gates);
  work.scratch = Cut(at, LayerRun<E>::scratch_size(s));
  work.operands = reinterpret_cast<E*>(at);
  if (!attrs.test) {
    work.gates = ctx.output(kReserve).mutable_data<T>();
    work.extra = HasExtra(attrs.mode) ? work.gates + s.gates_part() : nullptr;
    work.outputs[0] = work.gates + s.gates_part() + (HasExtra(attrs.mode) ? s.extra_part() : 0);
  }
  RnnRun<E>(ctx, s, *weights, lengths, work).Run();
  RoundOutputs<E>(ctx, s, work);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rnn",
    .inputs = {{"Input"},
               {"PreState", kVariadic},
               {"WeightList", kVariadic | kMayBeUnaligned},
               {"SequenceLength", kOptional | kAnyDType}},
    .outputs = {{"Out"}, {"DropoutState"}, {"Reserve"}, {"State", kVariadic}},
    .parse = ParseAttrs<RnnAttrs, ReadRnn>,
    .infer_dtype = InferDTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Rnn<float>},
                {DType::kFloat64, Rnn<double>},
                {DType::kBFloat16, Rnn<bfloat16>}},
    .precision = PrecisionRule::kReduced,
    .random = true,
    .gradient = {.inputs = {"Input", "PreState", "WeightList", "SequenceLength", "Out",
                            "DropoutState", "Reserve", "Out@GRAD", "State@GRAD"},
                 .outputs = {"Input@GRAD", "PreState@GRAD", "WeightList@GRAD"},
                 .make = AddTrainingGradient},
    .flops = RnnFlops<1>,
});

}  // namespace
}  // namespace interp::nn
