// Attributes of gru, gru_unit and their gradients, and the inputs of gru_unit.
#pragma once

#include "kernels/recurrent/activation.h"
#include "kernels/util/check_shape.h"

namespace interp::recurrent {

struct GruAttrs {
  bool reverse = false;
  bool test = false;
  bool origin_mode = false;  // the update gate keeps the old state, not the new one
  CellActivation gate = CellActivation::kSigmoid;
  CellActivation candidate = CellActivation::kTanh;
};

inline GruAttrs ReadGru(AttrReader& reader) {
  return {reader.Bool("is_reverse", false), reader.Bool("is_test", false),
          reader.Bool("origin_mode", false),
          ReadActivation(reader, "gate_activation", CellActivation::kSigmoid),
          ReadActivation(reader, "activation", CellActivation::kTanh)};
}

// gru_unit has numbers for activations.
inline GruAttrs ReadGruUnit(AttrReader& reader) {
  return {.origin_mode = reader.Bool("origin_mode", false),
          .gate = ReadActivationNumber(reader, "gate_activation", CellActivation::kSigmoid),
          .candidate = ReadActivationNumber(reader, "activation", CellActivation::kTanh)};
}

// Positions of input slots of gru_unit and its gradient.
inline constexpr int kGruUnitInput = 0;
inline constexpr int kGruUnitHiddenPrev = 1;
inline constexpr int kGruUnitWeight = 2;

// The shape of the state that these inputs give. InvalidArgument unless all fit it.
inline absl::StatusOr<Shape> CheckGruUnitInputs(const InferContext& ctx) {
  const Shape& gates = ctx.input(kGruUnitInput).shape;
  if (gates.rank() != 2 || gates[1] < 1 || gates[1] % 3 != 0) {
    return InvalidArgument("input 'Input' has shape ", ToString(gates),
                           ", expected [batch, columns] with a multiple of 3 columns");
  }
  const int64_t size = gates[1] / 3;
  const Shape state = {gates[0], size};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kGruUnitHiddenPrev, "HiddenPrev", state));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kGruUnitWeight, "Weight", {size, 3 * size}));
  return state;
}

}  // namespace interp::recurrent
