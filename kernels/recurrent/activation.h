// The activations that recurrent cells let a program choose.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/attr_reader.h"
#include "kernels/util/vector_math.h"

namespace interp::recurrent {

// Numbered as in the attributes of gru_unit.
enum class CellActivation : int8_t { kIdentity, kSigmoid, kTanh, kRelu };

// Reads the attribute `name`: "identity", "sigmoid", "tanh" or "relu". "" is the identity.
CellActivation ReadActivation(AttrReader& reader, absl::string_view name, CellActivation fallback);
// The same for an attribute that is a number.
CellActivation ReadActivationNumber(AttrReader& reader, absl::string_view name,
                                    CellActivation fallback);

// x[i] = activation(x[i])
template <typename T>
void Activate(CellActivation activation, T* x, int64_t size) {
  switch (activation) {
    case CellActivation::kIdentity:
      return;
    case CellActivation::kSigmoid:
      for (int64_t i = 0; i < size; ++i) x[i] = Sigmoid(x[i]);
      return;
    case CellActivation::kTanh:
      for (int64_t i = 0; i < size; ++i) x[i] = Tanh(x[i]);
      return;
    case CellActivation::kRelu:
      for (int64_t i = 0; i < size; ++i) x[i] = x[i] > T{0} ? x[i] : T{0};
      return;
  }
}

// grad[i] *= the derivative of the activation where it gave y[i]
template <typename T>
void ScaleByDerivative(CellActivation activation, const T* y, T* grad, int64_t size) {
  switch (activation) {
    case CellActivation::kIdentity:
      return;
    case CellActivation::kSigmoid:
      for (int64_t i = 0; i < size; ++i) grad[i] *= y[i] * (T{1} - y[i]);
      return;
    case CellActivation::kTanh:
      for (int64_t i = 0; i < size; ++i) grad[i] *= T{1} - y[i] * y[i];
      return;
    case CellActivation::kRelu:
      for (int64_t i = 0; i < size; ++i) grad[i] = y[i] > T{0} ? grad[i] : T{0};
      return;
  }
}

}  // namespace interp::recurrent
