// rnn_grad: backpropagation through time. Layer by layer, from the last: the steps of a layer give
// the gradients of its gates (rnn_layer_grad.h); then products over all steps at once give those of
//   weights  dgates^T input, dgates^T (states before), and for the biases the sums of dgates
//   input    dgates W
#include <algorithm>
#include <optional>

#include "kernels/nn/gradient_shape.h"
#include "kernels/nn/onednn.h"
#include "kernels/nn/product.h"
#include "kernels/nn/rnn_layer_grad.h"
#include "kernels/nn/rnn_shapes.h"
#include "kernels/util/flops.h"
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
  INTERP_RETURN_IF_ERROR(CheckGradient(ctx.input(kOut), "Out", out));
  INTERP_RETURN_IF_ERROR(CheckGradient(ctx.input(kOutGrad), "Out@GRAD", out));
  INTERP_RETURN_IF_ERROR(CheckGradient(ctx.input(kReserve), "Reserve", {ReserveSize(attrs, s)}));
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
        CheckGradient(*state, "State@GRAD", {s.layers * s.directions, s.batch, s.hidden}));
  }
  ctx.ShareShape(kRnnInput, kInputGrad);
  INTERP_RETURN_IF_ERROR(ShareShapes(ctx, kRnnPreState, kPreStateGrad, "PreState@GRAD"));
  return ShareShapes(ctx, kRnnWeightList, kWeightGrad, "WeightList@GRAD");
}

// Memory of a run.
template <typename T>
struct RnnGradBuffers {
  T* dh;      // as PreState[0]
  T* dc;      // as PreState[1], LSTM
  T* dgates;  // of one layer
  T* dstate;
  T* states;      // [time, batch, hidden]: before the steps of one direction
  T* douts[2];    // [time, batch, width]: of the layers but the last, in turns
  T* masked;      // as a layer's output
  T* one_dinput;  // of one direction, when there are two
};

template <typename T>
class RnnGradRun {
 public:
  RnnGradRun(KernelContext& ctx, const RnnSizes& s, const std::vector<int64_t>& lengths)
      : ctx_(ctx), attrs_(ctx.attrs<RnnAttrs>()), s_(s), lengths_(lengths) {
    gates_ = ctx.input(kReserve).template data<T>();
    extra_ = gates_ + s.gates_part();
    outputs_ = extra_ + (HasExtra(attrs_.mode) ? s.extra_part() : 0);
  }

  absl::Status Run() {
    INTERP_RETURN_IF_ERROR(TakeMemory());
    TakeStateGradients();
    const T* dout = ctx_.input(kOutGrad).template data<T>();
    for (int64_t layer = s_.layers - 1; layer >= 0; --layer) {
      INTERP_RETURN_IF_ERROR(StepBack(layer, dout));
      for (int64_t d = 0; d < s_.directions; ++d) {
        INTERP_RETURN_IF_ERROR(WeightGradients(layer, d));
      }
      Tensor* input_grad = ctx_.optional_output(kInputGrad);
      T* din = work_.douts[layer % 2];
      if (layer == 0) din = DataOrNull<T>(input_grad);
      if (din != nullptr) INTERP_RETURN_IF_ERROR(InputGradient(layer, din));
      if (layer > 0 && Masks(attrs_)) {
        ApplyMask(ctx_.input(kDropoutState), attrs_.dropout, din, din);
      }
      dout = din;
    }
    GiveStateGradients();
    return absl::OkStatus();
  }

 private:
  int64_t Features(int64_t layer) const { return layer == 0 ? s_.input : s_.width(); }
  int64_t StateSize() const { return s_.layers * s_.directions * s_.batch * s_.hidden; }
  bool Lstm() const { return attrs_.mode == RnnMode::kLstm; }
  bool Gru() const { return attrs_.mode == RnnMode::kGru; }

  absl::Status TakeMemory() {
    const int64_t widest = std::max(s_.input, s_.width());
    const int64_t rows = s_.rows();
    const int64_t gates = s_.directions * rows * s_.gates;
    const int64_t out = rows * s_.width();
    const int64_t sizes[] = {StateSize(),
                             Lstm() ? StateSize() : 0,
                             gates,
                             Gru() ? gates : 0,
                             rows * s_.hidden,
                             s_.layers > 2 ? out : 0,  // a layer i > 0 writes to douts[i % 2]
                             s_.layers > 1 ? out : 0,
                             s_.layers > 1 && Masks(attrs_) ? out : 0,
                             s_.directions > 1 ? rows * widest : 0};
    T** const parts[] = {&work_.dh,       &work_.dc,     &work_.dgates,
                         &work_.dstate,   &work_.states, &work_.douts[0],
                         &work_.douts[1], &work_.masked, &work_.one_dinput};
    int64_t total = 0;
    for (const int64_t size : sizes) total += size;
    INTERP_ASSIGN_OR_RETURN(memory_, ctx_.workspace(static_cast<size_t>(total) * sizeof(T)));
    T* at = memory_->data<T>();
    for (size_t i = 0; i < std::size(sizes); at += sizes[i++]) *parts[i] = at;
    if (!Gru()) work_.dstate = work_.dgates;
    return absl::OkStatus();
  }

  void TakeStateGradients() {
    T* const targets[] = {work_.dh, work_.dc};
    const absl::Span<const Tensor* const> grads = ctx_.inputs(kStateGrad);
    for (size_t i = 0; i < (Lstm() ? 2 : 1); ++i) {
      const Tensor* grad = i < grads.size() ? grads[i] : nullptr;
      if (grad != nullptr) {
        std::copy_n(grad->data<T>(), StateSize(), targets[i]);
      } else {
        std::fill_n(targets[i], StateSize(), T{0});
      }
    }
  }

  void GiveStateGradients() {
    const T* const sources[] = {work_.dh, work_.dc};
    const absl::Span<Tensor* const> grads = ctx_.outputs(kPreStateGrad);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] != nullptr) std::copy_n(sources[i], StateSize(), grads[i]->mutable_data<T>());
    }
  }

  const Tensor& Weight(int64_t layer, int64_t d, int64_t which) const {
    return *ctx_.inputs(kRnnWeightList)[2 * (layer * s_.directions + d) + which];
  }

  LayerGradRun<T> Layer(int64_t layer, const T* dout) const {
    const int64_t state = layer * s_.directions * s_.batch * s_.hidden;
    const int64_t kept = layer * s_.directions * s_.rows();
    const absl::Span<const Tensor* const> before = ctx_.inputs(kRnnPreState);
    return {s_,
            attrs_.mode,
            lengths_,
            packed_.data(),
            gates_ + kept * s_.gates,
            extra_ + kept * s_.hidden,
            Output(layer),
            before[0]->data<T>() + state,
            Lstm() ? before[1]->data<T>() + state : nullptr,
            dout,
            work_.dh + state,
            work_.dc + state,
            work_.dgates,
            work_.dstate};
  }

  const T* Output(int64_t layer) const {
    if (layer + 1 == s_.layers) return ctx_.input(kOut).template data<T>();
    return outputs_ + layer * s_.rows() * s_.width();
  }

  absl::Status StepBack(int64_t layer, const T* dout) {
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      packed_.clear();
      for (int64_t d = 0; d < s_.directions; ++d) {
        packed_.emplace_back(PackedSize<T>(s_.gates, s_.hidden));
        PackMatrix(s_.gates, s_.hidden, Weight(layer, d, 1).template data<T>(), s_.hidden,
                   int64_t{1}, packed_.back().data());
      }
      return absl::OkStatus();
    }));
    Layer(layer, dout).Run(ctx_.num_threads());
    return absl::OkStatus();
  }

  // What went into the layer: the input, or what the layer below gave after dropout.
  const T* LayerInput(int64_t layer) {
    if (layer == 0) return ctx_.input(kRnnInput).template data<T>();
    const T* out = Output(layer - 1);
    if (!Masks(attrs_)) return out;
    ApplyMask(ctx_.input(kDropoutState), attrs_.dropout, out, work_.masked);
    return work_.masked;
  }

  // The states before all steps of direction d, [rows, hidden].
  void StatesBefore(int64_t layer, int64_t d) const {
    const LayerGradRun<T> run = Layer(layer, nullptr);
    ParallelFor(ctx_.num_threads(), s_.rows(), /*grain=*/64, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* h = run.StateBefore(d, row / s_.batch, row % s_.batch);
        std::copy_n(h, s_.hidden, work_.states + row * s_.hidden);
      }
    });
  }

  // The memory of gradient `index` of WeightList, or null.
  T* WeightGrad(size_t index) {
    const absl::Span<Tensor* const> grads = ctx_.outputs(kWeightGrad);
    return index < grads.size() ? DataOrNull<T>(grads[index]) : nullptr;
  }

  // to [gates, features] = gradients^T [gates, rows] x values [rows, features]
  absl::Status WeightGradient(const T* gradients, const T* values, int64_t features, T* to) {
    if (to == nullptr) return absl::OkStatus();
    Product product;
    product.m = s_.gates;
    product.k = s_.rows();
    product.n = features;
    product.trans_x = true;
    return RunProduct<T>(ctx_, product, gradients, values, /*y_constant=*/false, nullptr, to);
  }

  // Of gradients `bias` and the one after it, from the gates of a direction, which lie at `at`.
  void BiasGradients(size_t bias, int64_t at) {
    T* const input = WeightGrad(bias);
    T* const state = WeightGrad(bias + 1);
    const int threads = ctx_.num_threads();
    if (input != nullptr) SumRows(threads, work_.dgates + at, s_.rows(), s_.gates, input);
    if (state == nullptr) return;
    if (input != nullptr && !Gru()) {
      std::copy_n(input, s_.gates, state);
    } else {
      SumRows(threads, work_.dstate + at, s_.rows(), s_.gates, state);
    }
  }

  absl::Status WeightGradients(int64_t layer, int64_t d) {
    if (ctx_.outputs(kWeightGrad).empty()) return absl::OkStatus();
    const size_t weight = static_cast<size_t>(2 * (layer * s_.directions + d));
    const size_t bias = weight + ctx_.inputs(kRnnWeightList).size() / 2;
    const int64_t at = d * s_.rows() * s_.gates;
    BiasGradients(bias, at);
    INTERP_RETURN_IF_ERROR(
        WeightGradient(work_.dgates + at, LayerInput(layer), Features(layer), WeightGrad(weight)));
    StatesBefore(layer, d);
    return WeightGradient(work_.dstate + at, work_.states, s_.hidden, WeightGrad(weight + 1));
  }

  // Sums over the directions.
  absl::Status InputGradient(int64_t layer, T* din) {
    Product product;
    product.m = s_.rows();
    product.k = s_.gates;
    product.n = Features(layer);
    for (int64_t d = 0; d < s_.directions; ++d) {
      T* to = d == 0 ? din : work_.one_dinput;
      INTERP_RETURN_IF_ERROR(RunProduct<T>(ctx_, product, work_.dgates + d * s_.rows() * s_.gates,
                                           Weight(layer, d, 0).template data<T>(),
                                           /*y_constant=*/false, nullptr, to));
      if (d == 0) continue;
      ParallelFor(ctx_.num_threads(), product.m * product.n, kElementwiseGrain,
                  [=](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) din[i] += to[i];
                  });
    }
    return absl::OkStatus();
  }

  KernelContext& ctx_;
  const RnnAttrs& attrs_;
  const RnnSizes& s_;
  const std::vector<int64_t>& lengths_;
  const T* gates_;
  const T* extra_;
  const T* outputs_;
  std::optional<Workspace> memory_;
  RnnGradBuffers<T> work_ = {};
  std::vector<AlignedArray<T>> packed_;
};

template <typename T>
absl::Status RnnGrad(KernelContext& ctx) {
  const RnnSizes s = RnnSizesOf(ctx);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, RnnLengths(ctx, s));
  return RnnGradRun<T>(ctx, s, lengths).Run();
}

// Twice the products of the forward op.
int64_t Flops(const OpContext& ctx) {
  const Shape& x = ctx.input(kRnnInput).shape;
  if (x.rank() != 3) return 0;
  const absl::Span<const Tensor* const> weights = ctx.inputs(kRnnWeightList);
  double per_step = 0;
  for (const Tensor* weight : weights.subspan(0, weights.size() / 2)) {
    if (weight != nullptr) per_step += 4.0 * static_cast<double>(weight->numel());
  }
  return ToFlops(per_step * static_cast<double>(x[0]) * static_cast<double>(x[1]));
}

INTERP_REGISTER_OP(OpDef{
    .type = "rnn_grad",
    .inputs = {{"Input"},
               {"PreState", kVariadic},
               {"WeightList", kVariadic},
               {"SequenceLength", kOptional | kAnyDType},
               {"Out"},
               {"DropoutState", kOptional | kAnyDType},
               {"Reserve"},
               {"Out@GRAD"},
               {"State@GRAD", kOptional | kVariadic}},
    .outputs = {{"Input@GRAD", kOptional},
                {"PreState@GRAD", kOptional | kVariadic},
                {"WeightList@GRAD", kOptional | kVariadic}},
    .parse = ParseAttrs<RnnAttrs, ReadRnn>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, RnnGrad<float>}, {DType::kFloat64, RnnGrad<double>}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::nn
