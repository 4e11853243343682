// rnn_grad: backpropagation through time. Layer by layer, from the last: the steps of a layer give
// the gradients of its gates (rnn_layer_grad.h); then products over all steps at once give those of
//   weights  dgates^T input, dgates^T (states before), and for the biases the sums of dgates
//   input    dgates W
#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/nn/onednn.h"
#include "kernels/product/product.h"
#include "kernels/recurrent/rnn_grad_memory.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/row_sum.h"

namespace interp::nn {
namespace {

constexpr int kOut = 4;
constexpr int kDropoutState = 5;
constexpr int kReserve = 6;
constexpr int kOutGrad = 7;
constexpr int kStateGrad = 8;
constexpr int kInputGrad = 0;
constexpr int kPreStateGrad = 1;
constexpr int kWeightGrad = 2;

// Outputs i of a slot get the shape of inputs i of another.
absl::Status ShareShapes(const InferContext& ctx, int input_slot, int output_slot,
                         absl::string_view name) {
  const absl::Span<const Tensor* const> from = ctx.inputs(input_slot);
  const absl::Span<Tensor* const> to = ctx.outputs(output_slot);
  if (!to.empty() && to.size() != from.size()) {
    return InvalidArgument("output '", name, "' has ", to.size(), " arguments, expected ",
                           from.size());
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] != nullptr) to[i]->shape = from[i]->shape;
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<RnnAttrs>();
  INTERP_RETURN_IF_ERROR(CheckRnnInputs(ctx));
  const RnnSizes s = RnnSizesOf(ctx);
  if (attrs.test) return InvalidArgument("attribute 'is_test' is true: nothing was kept");
  const Shape out = {s.time, s.batch, s.width()};
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOut, "Out", out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kReserve, "Reserve", {ReserveSize(attrs, s)}));
  const DType computed = ReserveDType(ctx.input(kOut).dtype);
  if (ctx.input(kReserve).dtype != computed) {
    return InvalidArgument("input 'Reserve' is ", DescribeType(ctx.input(kReserve)), ", expected ",
                           Name(computed));
  }
  if (Masks(attrs)) {
    const Tensor* mask = ctx.optional_input(kDropoutState);
    if (mask == nullptr || !(mask->shape == out) || mask->dtype != DType::kUInt8) {
      return InvalidArgument("input 'DropoutState' is ",
                             mask == nullptr ? "absent" : DescribeType(*mask), ", expected uint8",
                             ToString(out));
    }
  }
  const absl::Span<const Tensor* const> states = ctx.inputs(kStateGrad);
  if (states.size() > ctx.inputs(kRnnPreState).size()) {
    return InvalidArgument("input 'State@GRAD' has ", states.size(), " arguments");
  }
  for (const Tensor* state : states) {
    if (state == nullptr) continue;
    INTERP_RETURN_IF_ERROR(
        CheckGradientShape(*state, "State@GRAD", {s.layers * s.directions, s.batch, s.hidden}));
  }
  ctx.ShareShape(kRnnInput, kInputGrad);
  INTERP_RETURN_IF_ERROR(ShareShapes(ctx, kRnnPreState, kPreStateGrad, "PreState@GRAD"));
  return ShareShapes(ctx, kRnnWeightList, kWeightGrad, "WeightList@GRAD");
}

template <typename E>
class RnnGradRun {
 public:
  using T = ComputeType<E>;

  RnnGradRun(KernelContext& ctx, const RnnSizes& s, const std::vector<int64_t>& lengths)
      : ctx_(ctx), attrs_(ctx.attrs<RnnAttrs>()), s_(s), lengths_(lengths) {
    gates_ = ctx.input(kReserve).template data<T>();
    extra_ = gates_ + s.gates_part();
    outputs_ = extra_ + (HasExtra(attrs_.mode) ? s.extra_part() : 0);
  }

  absl::Status Run() {
    INTERP_ASSIGN_OR_RETURN(memory_, TakeRnnGradMemory(ctx_, attrs_, s_, work_));
    TakeInputs();
    TakeStateGradients();
    const T* dout = dout_;
    for (int64_t layer = s_.layers - 1; layer >= 0; --layer) {
      INTERP_RETURN_IF_ERROR(StepBack(layer, dout));
      for (int64_t d = 0; d < s_.directions; ++d) {
        INTERP_RETURN_IF_ERROR(WeightGradients(layer, d));
      }
      T* din = layer == 0 ? InputGradientMemory() : work_.douts[layer % 2];
      if (din != nullptr) INTERP_RETURN_IF_ERROR(InputGradient(layer, din));
      if (layer > 0 && Masks(attrs_)) {
        ApplyMask(ctx_.input(kDropoutState), attrs_.dropout, din, din);
      }
      dout = din;
    }
    GiveGradients();
    return absl::OkStatus();
  }

 private:
  // Computes in more bits than the op gives and takes.
  static constexpr bool kWidens = !std::is_same_v<E, T>;

  int64_t Features(int64_t layer) const { return layer == 0 ? s_.input : s_.width(); }
  bool Lstm() const { return attrs_.mode == RnnMode::kLstm; }
  bool Gru() const { return attrs_.mode == RnnMode::kGru; }

  // The elements of an input in what is computed in: its own, or copied to `memory`.
  static const T* Widened(const Tensor& tensor, T* memory) {
    if constexpr (kWidens) {
      return std::copy_n(tensor.data<E>(), tensor.numel(), memory) - tensor.numel();
    } else {
      return tensor.data<T>();
    }
  }

  void TakeInputs() {
    const absl::Span<const Tensor* const> before = ctx_.inputs(kRnnPreState);
    for (size_t i = 0; i < before.size(); ++i) before_[i] = Widened(*before[i], work_.before[i]);
    out_ = Widened(ctx_.input(kOut), work_.out);
    dout_ = Widened(ctx_.input(kOutGrad), work_.dout);
  }

  void TakeStateGradients() {
    T* const targets[] = {work_.dh, work_.dc};
    const absl::Span<const Tensor* const> grads = ctx_.inputs(kStateGrad);
    for (size_t i = 0; i < (Lstm() ? 2 : 1); ++i) {
      const Tensor* grad = i < grads.size() ? grads[i] : nullptr;
      if (grad != nullptr) {
        std::copy_n(grad->data<E>(), s_.state_size(), targets[i]);
      } else {
        std::fill_n(targets[i], s_.state_size(), T{0});
      }
    }
  }

  // Where the gradient of Input is summed up, or null.
  T* InputGradientMemory() {
    Tensor* const grad = ctx_.optional_output(kInputGrad);
    if constexpr (kWidens) {
      return grad == nullptr ? nullptr : work_.dinput;
    } else {
      return DataOrNull<T>(grad);
    }
  }

  // Those that were summed up in memory of their own.
  void GiveGradients() {
    const T* const sources[] = {work_.dh, work_.dc};
    const absl::Span<Tensor* const> grads = ctx_.outputs(kPreStateGrad);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] == nullptr) continue;
      std::copy_n(sources[i], s_.state_size(), grads[i]->mutable_data<E>());
    }
    E* const input = OutputOrNull<E>(ctx_, kInputGrad);
    if (kWidens && input != nullptr) std::copy_n(work_.dinput, s_.rows() * s_.input, input);
  }

  const Tensor& Weight(int64_t layer, int64_t d, int64_t which) const {
    return *ctx_.inputs(kRnnWeightList)[2 * (layer * s_.directions + d) + which];
  }

  LayerGradRun<E> Layer(int64_t layer, const T* dout) const {
    const int64_t state = layer * s_.directions * s_.batch * s_.hidden;
    const int64_t kept = layer * s_.directions * s_.rows();
    return {s_,
            attrs_.mode,
            lengths_,
            packed_.data(),
            gates_ + kept * s_.gates,
            extra_ + kept * s_.hidden,
            Output(layer),
            before_[0] + state,
            Lstm() ? before_[1] + state : nullptr,
            dout,
            work_.dh + state,
            work_.dc + state,
            work_.dgates,
            work_.dstate,
            work_.operands};
  }

  const T* Output(int64_t layer) const {
    if (layer + 1 == s_.layers) return out_;
    return outputs_ + layer * s_.rows() * s_.width();
  }

  absl::Status StepBack(int64_t layer, const T* dout) {
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      packed_.clear();
      for (int64_t d = 0; d < s_.directions; ++d) {
        packed_.emplace_back(s_.gates, s_.hidden, Weight(layer, d, 1).template data<E>(),
                             /*transposed=*/false);
      }
      return absl::OkStatus();
    }));
    Layer(layer, dout).Run(ctx_.num_threads());
    const int64_t size = s_.directions * s_.rows() * s_.gates;
    dgates_ = AsOperands(work_.dgates, size, work_.rounded_dgates);
    dstate_ = Gru() ? AsOperands(work_.dstate, size, work_.rounded_dstate) : dgates_;
    return absl::OkStatus();
  }

  // The same numbers, rounded to `memory` unless E is what is computed in.
  const E* AsOperands(const T* values, int64_t count, E* memory) const {
    if constexpr (kWidens) {
      ParallelFor(ctx_.num_threads(), count, kElementwiseGrain, [=](int64_t begin, int64_t end) {
        std::copy(values + begin, values + end, memory + begin);
      });
      return memory;
    } else {
      return values;
    }
  }

  // What went into the layer: the input, or what the layer below gave after dropout.
  const E* LayerInput(int64_t layer) {
    if (layer == 0) return ctx_.input(kRnnInput).template data<E>();
    const T* out = Output(layer - 1);
    if (Masks(attrs_)) {
      ApplyMask(ctx_.input(kDropoutState), attrs_.dropout, out, work_.masked);
      out = work_.masked;
    }
    return AsOperands(out, s_.rows() * s_.width(), work_.rounded_input);
  }

  // The states before all steps of direction d, [rows, hidden].
  void StatesBefore(int64_t layer, int64_t d) const {
    const LayerGradRun<E> run = Layer(layer, nullptr);
    ParallelFor(ctx_.num_threads(), s_.rows(), /*grain=*/64, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* h = run.StateBefore(d, row / s_.batch, row % s_.batch);
        std::copy_n(h, s_.hidden, work_.states + row * s_.hidden);
      }
    });
  }

  // The memory of gradient `index` of WeightList, or null.
  E* WeightGrad(size_t index) {
    const absl::Span<Tensor* const> grads = ctx_.outputs(kWeightGrad);
    return index < grads.size() ? DataOrNull<E>(grads[index]) : nullptr;
  }

  // to [gates, features] = gradients^T [gates, rows] x values [rows, features]
  absl::Status WeightGradient(const E* gradients, const E* values, int64_t features, E* to) {
    if (to == nullptr) return absl::OkStatus();
    Product product = ProductOf(s_.gates, features, s_.rows());
    product.trans_x = true;
    return RunProduct<E>(ctx_, product, gradients, values, /*y_constant=*/false, nullptr, to);
  }

  // Of gradients `bias` and the one after it, from the gates of a direction, which lie at `at`.
  void BiasGradients(size_t bias, int64_t at) {
    E* const input = WeightGrad(bias);
    E* const state = WeightGrad(bias + 1);
    const auto sum = [&](const T* gates, E* to) {
      SumRows(ctx_.num_threads(), gates + at, s_.rows(), s_.gates, work_.bias);
      std::copy_n(work_.bias, s_.gates, to);
    };
    if (input != nullptr) sum(work_.dgates, input);
    if (state == nullptr) return;
    if (input != nullptr && !Gru()) {
      std::copy_n(input, s_.gates, state);
    } else {
      sum(work_.dstate, state);
    }
  }

  absl::Status WeightGradients(int64_t layer, int64_t d) {
    if (ctx_.outputs(kWeightGrad).empty()) return absl::OkStatus();
    const size_t weight = static_cast<size_t>(2 * (layer * s_.directions + d));
    const size_t bias = weight + ctx_.inputs(kRnnWeightList).size() / 2;
    const int64_t at = d * s_.rows() * s_.gates;
    BiasGradients(bias, at);
    INTERP_RETURN_IF_ERROR(
        WeightGradient(dgates_ + at, LayerInput(layer), Features(layer), WeightGrad(weight)));
    StatesBefore(layer, d);
    return WeightGradient(dstate_ + at, work_.states, s_.hidden, WeightGrad(weight + 1));
  }

  // Sums over the directions.
  absl::Status InputGradient(int64_t layer, T* din) {
    Product product = ProductOf(s_.rows(), Features(layer), s_.gates);
    for (int64_t d = 0; d < s_.directions; ++d) {
      T* to = d == 0 ? din : work_.one_dinput;
      INTERP_RETURN_IF_ERROR(Multiply(product, dgates_ + d * s_.rows() * s_.gates,
                                      Weight(layer, d, 0).template data<E>(), to));
      if (d == 0) continue;
      ParallelFor(ctx_.num_threads(), product.m * product.n, kElementwiseGrain,
                  [=](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) din[i] += to[i];
                  });
    }
    return absl::OkStatus();
  }

  absl::Status Multiply(const Product& product, const E* x, const E* y, T* out) {
    if constexpr (kWidens) {
      return RunWideProduct(ctx_, product, x, y, out);
    } else {
      return RunProduct<E>(ctx_, product, x, y, /*y_constant=*/false, nullptr, out);
    }
  }

  KernelContext& ctx_;
  const RnnAttrs& attrs_;
  const RnnSizes& s_;
  const std::vector<int64_t>& lengths_;
  const T* gates_;
  const T* extra_;
  const T* outputs_;
  const T* before_[2] = {};
  const T* out_ = nullptr;
  const T* dout_ = nullptr;
  const E* dgates_ = nullptr;  // of one layer
  const E* dstate_ = nullptr;
  std::optional<Workspace> memory_;
  RnnGradBuffers<E> work_ = {};
  std::vector<PackedWeight<E>> packed_;
};

template <typename E>
absl::Status RnnGrad(KernelContext& ctx) {
  const RnnSizes s = RnnSizesOf(ctx);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, RnnLengths(ctx, s));
  return RnnGradRun<E>(ctx, s, lengths).Run();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rnn_grad",
    .inputs = {{"Input"},
               {"PreState", kVariadic},
               {"WeightList", kVariadic},
               {"SequenceLength", kOptional | kAnyDType},
               {"Out"},
               {"DropoutState", kOptional | kAnyDType},
               {"Reserve", kAnyDType},
               {"Out@GRAD"},
               {"State@GRAD", kOptional | kVariadic}},
    .outputs = {{"Input@GRAD", kOptional},
                {"PreState@GRAD", kOptional | kVariadic},
                {"WeightList@GRAD", kOptional | kVariadic}},
    .parse = ParseAttrs<RnnAttrs, ReadRnn>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, RnnGrad<float>},
                {DType::kFloat64, RnnGrad<double>},
                {DType::kBFloat16, RnnGrad<bfloat16>}},
    .precision = PrecisionRule::kReduced,
    .flops = RnnFlops<2>,
});

}  // namespace
}  // namespace interp::nn
