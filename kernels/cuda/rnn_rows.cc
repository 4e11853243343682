// Row of rnn, of modes LSTM, GRU, tanh and relu: a product of all steps with the input weights,
// then for each step a product with the state weights and one launch for all cells. Steps follow
// each other on the stream; the host waits for none. Dropout between layers is left to the host.
#include "kernels/cuda/rnn.h"
#include "kernels/cuda/rnn_layers.h"
#include "kernels/cuda/row.h"
#include "kernels/util/data_mover.h"

namespace interp::cuda {
namespace {

constexpr int kOut = 0;
constexpr int kReserve = 2;
constexpr int kState = 3;

// Memory of a run, in elements of its dtype. Tests reuse that of one layer for the next.
struct RnnMemory {
  Elements gates;
  Elements extra;        // null: not kept
  Elements outputs;      // of the layers but the last; in tests of two of them
  Elements hidden_sums;  // GRU
};

class RnnForward {
 public:
  explicit RnnForward(KernelContext& ctx) : ctx_(ctx), layers_(ctx), s_(layers_.sizes) {}

  absl::Status Run() {
    INTERP_ASSIGN_OR_RETURN(const Workspace scratch, ctx_.workspace(ScratchBytes()));
    Divide(layers_.ElementsAt(scratch.data()));
    for (size_t i = 0; i < ctx_.inputs(nn::kRnnPreState).size(); ++i) {
      INTERP_RETURN_IF_ERROR(
          CopyUnlessShared(ctx_, *ctx_.inputs(nn::kRnnPreState)[i], *ctx_.outputs(kState)[i]));
    }
    Elements in = layers_.ElementsAt(ctx_.input(nn::kRnnInput).raw_data());
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      const Elements out = OutputOf(layer);
      for (int64_t d = 0; d < s_.directions; ++d) {
        INTERP_RETURN_IF_ERROR(RunDirection(layer, d, in, out));
      }
      in = out;
    }
    return absl::OkStatus();
  }

 private:
  bool Test() const { return layers_.attrs.test; }
  bool Gru() const { return layers_.attrs.mode == nn::RnnMode::kGru; }

  size_t ScratchBytes() const {
    int64_t elements = Gru() ? s_.batch * s_.gates : 0;
    if (Test()) elements += s_.rows() * s_.gates + (s_.layers > 1 ? 2 : 0) * s_.rows() * s_.width();
    return layers_.Bytes(elements);
  }

  void Divide(Elements scratch) {
    memory_.hidden_sums = scratch;
    if (Gru()) scratch = scratch + s_.batch * s_.gates;
    if (Test()) {
      memory_.gates = scratch;
      memory_.outputs = scratch + s_.rows() * s_.gates;
      return;
    }
    const KeptParts kept = layers_.Kept(ctx_.output(kReserve).mutable_raw_data());
    memory_.gates = kept.gates;
    memory_.extra = kept.extra;
    memory_.outputs = kept.outputs;
  }

  Elements OutputOf(int64_t layer) {
    if (layer + 1 == s_.layers) {
      return layers_.ElementsAt(ctx_.output(kOut).mutable_raw_data());
    }
    return memory_.outputs + (Test() ? layer % 2 : layer) * s_.rows() * s_.width();
  }

  absl::Status RunDirection(int64_t layer, int64_t d, Elements in, Elements out) {
    if (s_.batch == 0) return absl::OkStatus();  // there may be 2^59 steps
    const int64_t number = layer * s_.directions + d;
    const int64_t kept = Test() ? 0 : number * s_.rows();
    const Elements gates = memory_.gates + kept * s_.gates;
    INTERP_RETURN_IF_ERROR(layers_.Multiply(
        {.m = s_.rows(), .n = s_.gates, .k = layers_.Features(layer), .trans_y = true}, in,
        layers_.Weight(layer, d, 0), gates));
    const Elements h = State(0) + number * s_.batch * s_.hidden;
    for (int64_t i = 0; i < s_.time; ++i) {
      const int64_t t = d == 0 ? i : s_.time - 1 - i;
      const int64_t row = t * s_.batch;
      const Elements sums = gates + row * s_.gates;
      INTERP_RETURN_IF_ERROR(layers_.Multiply({.m = s_.batch,
                                               .n = s_.gates,
                                               .k = s_.hidden,
                                               .trans_y = true,
                                               .beta = Gru() ? 0.0 : 1.0},
                                              h, layers_.Weight(layer, d, 1),
                                              Gru() ? memory_.hidden_sums : sums));
      CellMemory cells = {.input_bias = layers_.Bias(layer, d, 0).data,
                          .state_bias = layers_.Bias(layer, d, 1).data,
                          .hidden_sums = memory_.hidden_sums.data,
                          .gates = sums.data,
                          .h = h.data,
                          .y = (out + row * s_.width() + d * s_.hidden).data};
      if (layers_.Lstm()) cells.c = (State(1) + number * s_.batch * s_.hidden).data;
      if (memory_.extra.data != nullptr) {
        cells.kept = (memory_.extra + (kept + row) * s_.hidden).data;
      }
      INTERP_RETURN_IF_ERROR(StepCells(layers_.dtype, layers_.Step(t), cells, StreamOf(ctx_)));
    }
    return absl::OkStatus();
  }

  Elements State(size_t i) const {
    return layers_.ElementsAt(ctx_.outputs(kState)[i]->mutable_raw_data());
  }

  KernelContext& ctx_;
  const RnnLayers layers_;
  const nn::RnnSizes& s_;
  RnnMemory memory_;
};

absl::Status Rnn(KernelContext& ctx) { return RnnForward(ctx).Run(); }

INTERP_REGISTER_KERNELS("rnn", RowsFor({DType::kFloat32, DType::kFloat64}, Rnn, TakesRnn));

}  // namespace
}  // namespace interp::cuda
