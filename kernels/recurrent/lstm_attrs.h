// What lstm, lstmp and their gradients have in common: attributes, and the inputs that come first.
// The same of lstm_unit and its gradient.
#pragma once

#include <cstdint>

#include "core/op_def.h"
#include "kernels/recurrent/activation.h"

namespace interp::recurrent {

struct LstmAttrs {
  bool peepholes = true;
  bool reverse = false;
  bool test = false;
  bool projected = false;  // lstmp
  CellActivation gate = CellActivation::kSigmoid;
  CellActivation cell = CellActivation::kTanh;
  CellActivation candidate = CellActivation::kTanh;
  CellActivation projection = CellActivation::kTanh;
  float cell_clip = 0;
  float projection_clip = 0;
};

LstmAttrs ReadLstm(AttrReader& reader);
LstmAttrs ReadLstmp(AttrReader& reader);

struct LstmUnitAttrs {
  float forget_bias = 0;
};

inline LstmUnitAttrs ReadLstmUnit(AttrReader& reader) { return {reader.Float("forget_bias", 0)}; }

// Positions of input slots.
inline constexpr int kLstmInput = 0;
inline constexpr int kLstmH0 = 1;
inline constexpr int kLstmC0 = 2;
inline constexpr int kLstmWeight = 3;
inline constexpr int kLstmBias = 4;

// The sizes of a run.
struct LstmSizes {
  int64_t sequences = 0;
  int64_t size = 0;   // of the cell
  int64_t width = 0;  // of the recurrent state
};

// The sizes that the inputs give; `projection` is ProjWeight, null without. InvalidArgument unless
// all these inputs fit them.
absl::StatusOr<LstmSizes> CheckLstmInputs(const InferContext& ctx, const Tensor* projection);

// Positions of input slots of lstm_unit and its gradient.
inline constexpr int kLstmUnitX = 0;
inline constexpr int kLstmUnitCPrev = 1;

// The shape of the state that these inputs give. InvalidArgument unless both fit it.
absl::StatusOr<Shape> CheckLstmUnitInputs(const InferContext& ctx);

}  // namespace interp::recurrent
