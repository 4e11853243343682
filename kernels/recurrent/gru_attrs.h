// Attributes of gru, gru_unit and their gradients.
#pragma once

#include "kernels/recurrent/activation.h"

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

}  // namespace interp::recurrent
