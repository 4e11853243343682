// NumPy arrays <-> tensors, and statuses -> exceptions.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "core/status.h"
#include "core/tensor.h"

namespace interp::python {

// Raises the exception of `status` (interp/errors.py); returns when it is OK. REQUIRES: the GIL.
void Check(const absl::Status& status);
template <typename T>
T Take(absl::StatusOr<T> result) {
  Check(result.status());
  return *std::move(result);
}

// A tensor over the memory of an array, which the caller keeps alive; `what` is for errors. An
// array of uint16 is bfloat16, which NumPy lacks. Raises for arrays that are not contiguous,
// aligned and of the machine's byte order. REQUIRES: the GIL.
Tensor BorrowArray(const pybind11::array& array, const std::string& what);

// An array over the memory of a tensor in plain layout, which it then shares, without a copy.
// bfloat16 becomes uint16, 8-bit floats uint8. REQUIRES: the GIL.
pybind11::array GiveArray(Tensor tensor);

// The NumPy name of the dtype that arrays of `dtype` have; "" for kUndefined.
std::string ArrayDType(DType dtype);

}  // namespace interp::python
