// The rnn op: slots, attributes and shapes, for both directions.
#pragma once

#include <vector>

#include "core/attr_reader.h"
#include "core/op_def.h"
#include "kernels/recurrent/rnn_layer.h"
#include "kernels/util/flops.h"

namespace interp::nn {

// The first inputs of rnn and of rnn_grad.
inline constexpr int kRnnInput = 0;
inline constexpr int kRnnPreState = 1;
inline constexpr int kRnnWeightList = 2;
inline constexpr int kRnnSequenceLength = 3;

struct RnnAttrs {
  RnnMode mode = RnnMode::kTanh;
  int64_t hidden = 100;
  int64_t layers = 1;
  int64_t directions = 1;
  float dropout = 0;
  int32_t seed = 0;
  bool test = false;
};

RnnAttrs ReadRnn(AttrReader& reader);

// Whether Reserve has the part `extra`.
inline bool HasExtra(RnnMode mode) { return mode == RnnMode::kLstm || mode == RnnMode::kGru; }

// Dropout acts between layers, in training only.
inline bool Masks(const RnnAttrs& attrs) {
  return !attrs.test && attrs.dropout > 0 && attrs.layers > 1;
}

// What Reserve keeps, one part after the other, each part by layer:
//   gates   [direction, time, batch, gates * hidden]  after their activations
//   extra   [direction, time, batch, hidden]          LSTM: cell states; GRU: the state's share of
//                                                     the candidate, before the reset gate
//   outputs [time, batch, direction * hidden]         of all layers but the last
inline int64_t ReserveSize(const RnnAttrs& attrs, const RnnSizes& s) {
  return s.gates_part() + (HasExtra(attrs.mode) ? s.extra_part() : 0) + s.outputs_part();
}

// Reserve has what is computed in, not what an op of 16 bits gives and takes.
inline DType ReserveDType(DType kernel) {
  return kernel == DType::kBFloat16 ? DType::kFloat32 : kernel;
}

// REQUIRES: an Input of rank 3.
RnnSizes RnnSizesOf(const OpContext& ctx);

// Checks Input, PreState, WeightList and SequenceLength.
absl::Status CheckRnnInputs(const InferContext& ctx);

// The values of SequenceLength; empty: all sequences are full.
absl::StatusOr<std::vector<int64_t>> RnnLengths(const KernelContext& ctx, const RnnSizes& s);

// The products with the weights, kTimes over: of every step of every sequence, to the end of the
// longest.
template <int kTimes>
int64_t RnnFlops(const OpContext& ctx) {
  const Shape& x = ctx.input(kRnnInput).shape;
  if (x.rank() != 3) return 0;
  const absl::Span<const Tensor* const> weights = ctx.inputs(kRnnWeightList);
  double per_step = 0;
  for (const Tensor* weight : weights.subspan(0, weights.size() / 2)) {
    if (weight != nullptr) per_step += 2.0 * kTimes * static_cast<double>(weight->numel());
  }
  return ToFlops(per_step * static_cast<double>(x[0]) * static_cast<double>(x[1]));
}

// Keeps what the mask between layers keeps, in `to`, which may be `from`.
template <typename T>
void ApplyMask(const Tensor& mask, float dropout, const T* from, T* to) {
  const uint8_t* keep = mask.data<uint8_t>();
  const T factor = dropout < 1 ? T{1} / static_cast<T>(1.0F - dropout) : T{0};
  for (int64_t i = 0; i < mask.numel(); ++i) to[i] = keep[i] != 0 ? from[i] * factor : T{0};
}

}  // namespace interp::nn
