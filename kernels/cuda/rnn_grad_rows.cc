// Row of rnn_grad. Layer by layer, from the last: for each step a launch for all cells and a
// product with the state weights; then products over all steps at once for weights and input.
#include <utility>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rnn.h"
#include "kernels/cuda/rnn_layers.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/strided_copy.h"

namespace interp::cuda {
namespace {

constexpr int kOut = 4;
constexpr int kReserve = 6;
constexpr int kOutGrad = 7;
constexpr int kStateGrad = 8;
constexpr int kInputGrad = 0;
constexpr int kPreStateGrad = 1;
constexpr int kWeightGrad = 2;

// Memory beside inputs and outputs.
struct RnnGradMemory {
  Elements state_grads[2];  // h, and c of LSTM: of all layers
  Elements dgates;          // of both directions of a layer
  Elements dstate;          // the same but for GRU
  Elements states;          // [rows, hidden]
  Elements douts[2];        // of the layers' outputs, in turns
};

class RnnBackward {
 public:
  explicit RnnBackward(KernelContext& ctx)
      : ctx_(ctx),
        layers_(ctx),
        s_(layers_.sizes),
        kept_(layers_.Kept(ctx.input(kReserve).raw_data())) {}

  absl::Status Run() {
    INTERP_ASSIGN_OR_RETURN(const Workspace memory, ctx_.workspace(layers_.Bytes(Divide({}))));
    Divide(layers_.ElementsAt(memory.data()));
    for (size_t i = 0; i < States(); ++i) INTERP_RETURN_IF_ERROR(TakeStateGradient(i));
    Elements dout = layers_.ElementsAt(ctx_.input(kOutGrad).raw_data());
    for (int64_t layer = s_.layers - 1; layer >= 0; --layer) {
      for (int64_t d = 0; d < s_.directions; ++d) {
        INTERP_RETURN_IF_ERROR(StepBack(layer, d, dout));
        INTERP_RETURN_IF_ERROR(BiasGradients(layer, d));
        INTERP_RETURN_IF_ERROR(WeightGradients(layer, d));
      }
      dout = InputGradientOf(layer);
      if (dout.data != nullptr) INTERP_RETURN_IF_ERROR(InputGradient(layer, dout));
    }
    for (size_t i = 0; i < States(); ++i) INTERP_RETURN_IF_ERROR(GiveStateGradient(i));
    return absl::OkStatus();
  }

 private:
  size_t States() const { return layers_.Lstm() ? 2 : 1; }
  bool Gru() const { return layers_.attrs.mode == nn::RnnMode::kGru; }

  // Divides the memory up and returns how many elements are needed.
  int64_t Divide(Elements memory) {
    int64_t used = 0;
    const auto take = [&](int64_t count) { return memory + std::exchange(used, used + count); };
    for (size_t i = 0; i < States(); ++i) memory_.state_grads[i] = take(s_.state_size());
    memory_.dgates = take(s_.directions * s_.rows() * s_.gates);
    memory_.dstate = Gru() ? take(s_.directions * s_.rows() * s_.gates) : memory_.dgates;
    memory_.states = take(s_.rows() * s_.hidden);
    for (int64_t i = 0; i < 2 && i + 1 < s_.layers; ++i) {
      memory_.douts[i] = take(s_.rows() * s_.width());
    }
    return used;
  }

  absl::Status Copy(const void* from, void* to, int64_t count) const {
    const int64_t step[] = {1};
    return StridedCopy(static_cast<int>(SizeOf(layers_.dtype)), {count}, {from, step}, {to, step},
                       StreamOf(ctx_));
  }

  absl::Status TakeStateGradient(size_t i) const {
    const absl::Span<const Tensor* const> grads = ctx_.inputs(kStateGrad);
    void* const to = memory_.state_grads[i].data;
    if (i < grads.size() && grads[i] != nullptr) {
      return Copy(grads[i]->raw_data(), to, s_.state_size());
    }
    return Fill(static_cast<int>(SizeOf(layers_.dtype)), /*bits=*/0, to, s_.state_size(),
                StreamOf(ctx_));
  }
  absl::Status GiveStateGradient(size_t i) const {
    const absl::Span<Tensor* const> grads = ctx_.outputs(kPreStateGrad);
    if (i >= grads.size() || grads[i] == nullptr) return absl::OkStatus();
    return Copy(memory_.state_grads[i].data, grads[i]->mutable_raw_data(), s_.state_size());
  }

  // Output `index` of WeightList@GRAD, or null.
  Elements WeightGrad(int64_t index) const {
    const absl::Span<Tensor* const> grads = ctx_.outputs(kWeightGrad);
    if (grads.empty() || grads[index] == nullptr) return {};
    return layers_.ElementsAt(grads[index]->mutable_raw_data());
  }

  Elements Output(int64_t layer) const {
    if (layer + 1 == s_.layers) return layers_.ElementsAt(ctx_.input(kOut).raw_data());
    return kept_.outputs + layer * s_.rows() * s_.width();
  }
  // State `i` before the first step of a direction.
  Elements FirstState(size_t i, int64_t layer, int64_t d) const {
    return layers_.ElementsAt(ctx_.inputs(nn::kRnnPreState)[i]->raw_data()) + StateAt(layer, d);
  }
  int64_t StateAt(int64_t layer, int64_t d) const {
    return (layer * s_.directions + d) * s_.batch * s_.hidden;
  }
  // Where direction `d` begins in the gradients of gates.
  int64_t GatesAt(int64_t d) const { return d * s_.rows() * s_.gates; }

  CellGradientMemory CellsOf(int64_t layer, int64_t d, int64_t t, Elements dout) const {
    const int64_t kept = (layer * s_.directions + d) * s_.rows();
    const int64_t row = t * s_.batch;
    CellGradientMemory cells = {.gates = (kept_.gates + (kept + row) * s_.gates).data,
                                .step_before = d == 0 ? t - 1 : t + 1,
                                .first = FirstState(layers_.Lstm() ? 1 : 0, layer, d).data,
                                .dy = (dout + row * s_.width() + d * s_.hidden).data,
                                .dh = (memory_.state_grads[0] + StateAt(layer, d)).data,
                                .dgates = (memory_.dgates + GatesAt(d) + row * s_.gates).data,
                                .dstate = (memory_.dstate + GatesAt(d) + row * s_.gates).data};
    if (kept_.extra.data != nullptr) cells.kept = (kept_.extra + (kept + row) * s_.hidden).data;
    if (layers_.Lstm()) cells.dc = (memory_.state_grads[1] + StateAt(layer, d)).data;
    if (cells.step_before < 0 || cells.step_before >= s_.time) return cells;
    const int64_t row_before = cells.step_before * s_.batch;
    cells.before_width = layers_.Lstm() ? s_.hidden : s_.width();
    cells.before = layers_.Lstm() ? (kept_.extra + (kept + row_before) * s_.hidden).data
                                  : (Output(layer) + row_before * s_.width() + d * s_.hidden).data;
    return cells;
  }

  absl::Status StepBack(int64_t layer, int64_t d, Elements dout) {
    if (s_.batch == 0) return absl::OkStatus();  // there may be 2^59 steps
    const Elements dh = memory_.state_grads[0] + StateAt(layer, d);
    for (int64_t i = s_.time - 1; i >= 0; --i) {
      const int64_t t = d == 0 ? i : s_.time - 1 - i;
      INTERP_RETURN_IF_ERROR(StepCellsBack(layers_.dtype, layers_.Step(t),
                                           CellsOf(layer, d, t, dout), StreamOf(ctx_)));
      INTERP_RETURN_IF_ERROR(layers_.Multiply(
          {.m = s_.batch, .n = s_.hidden, .k = s_.gates, .beta = 1},
          memory_.dstate + GatesAt(d) + t * s_.batch * s_.gates, layers_.Weight(layer, d, 1), dh));
    }
    return absl::OkStatus();
  }

  absl::Status BiasGradients(int64_t layer, int64_t d) const {
    const int64_t bias = 2 * ((s_.layers + layer) * s_.directions + d);
    for (const int64_t which : {0, 1}) {
      const Elements to = WeightGrad(bias + which);
      if (to.data == nullptr) continue;
      const Elements from = (which == 0 ? memory_.dgates : memory_.dstate) + GatesAt(d);
      INTERP_RETURN_IF_ERROR(Reduce(layers_.dtype, ReduceOp::kSum, from.data, {s_.rows(), s_.gates},
                                    /*reduced=*/1, to.data, WorkspaceOf(ctx_), StreamOf(ctx_)));
    }
    return absl::OkStatus();
  }

  // to [gates, features] = gradients^T [gates, rows] values [rows, features]
  absl::Status WeightGradient(Elements gradients, Elements values, int64_t features, Elements to) {
    return layers_.Multiply({.m = s_.gates, .n = features, .k = s_.rows(), .trans_x = true},
                            gradients, values, to);
  }

  absl::Status WeightGradients(int64_t layer, int64_t d) {
    const int64_t weight = 2 * (layer * s_.directions + d);
    if (const Elements to = WeightGrad(weight); to.data != nullptr) {
      const Elements in =
          layer == 0 ? layers_.ElementsAt(ctx_.input(nn::kRnnInput).raw_data()) : Output(layer - 1);
      INTERP_RETURN_IF_ERROR(
          WeightGradient(memory_.dgates + GatesAt(d), in, layers_.Features(layer), to));
    }
    const Elements to = WeightGrad(weight + 1);
    if (to.data == nullptr) return absl::OkStatus();
    INTERP_RETURN_IF_ERROR(
        StatesBeforeSteps(layers_.dtype, layers_.Step(0), s_.time, /*backward=*/d == 1,
                          (Output(layer) + d * s_.hidden).data, FirstState(0, layer, d).data,
                          memory_.states.data, StreamOf(ctx_)));
    return WeightGradient(memory_.dstate + GatesAt(d), memory_.states, s_.hidden, to);
  }

  // Where the gradient of a layer's input goes, or null.
  Elements InputGradientOf(int64_t layer) const {
    if (layer > 0) return memory_.douts[(layer - 1) % 2];
    Tensor* const grad = ctx_.optional_output(kInputGrad);
    return grad == nullptr ? Elements() : layers_.ElementsAt(grad->mutable_raw_data());
  }

  // The sum over the directions.
  absl::Status InputGradient(int64_t layer, Elements to) {
    for (int64_t d = 0; d < s_.directions; ++d) {
      INTERP_RETURN_IF_ERROR(layers_.Multiply(
          {.m = s_.rows(), .n = layers_.Features(layer), .k = s_.gates, .beta = d == 0 ? 0.0 : 1.0},
          memory_.dgates + GatesAt(d), layers_.Weight(layer, d, 0), to));
    }
    return absl::OkStatus();
  }

  KernelContext& ctx_;
  const RnnLayers layers_;
  const nn::RnnSizes& s_;
  const KeptParts kept_;
  RnnGradMemory memory_;
};

absl::Status RnnGrad(KernelContext& ctx) { return RnnBackward(ctx).Run(); }

INTERP_REGISTER_KERNELS("rnn_grad", RowsFor({DType::kFloat32, DType::kFloat64}, RnnGrad, TakesRnn));

}  // namespace
}  // namespace interp::cuda
