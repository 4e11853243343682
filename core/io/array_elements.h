// Elements of NumPy arrays as files hold them (.npy, pickles), and the tensors they become.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/buffer.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// How the elements of an array lie in memory.
struct ArrayLayout {
  DType dtype = DType::kUndefined;
  Shape shape;
  bool fortran_order = false;
  bool big_endian = false;

  // REQUIRES: shape.CheckedNumel().
  size_t size_bytes() const { return static_cast<size_t>(shape.numel()) * SizeOf(dtype); }
};

// NumPy's type of a dtype without the byte order: "f4"; empty for one that NumPy has not. bfloat16
// is "u2", Paddle's convention.
absl::string_view NumpyType(DType dtype);
// Sets dtype and byte order from a type with or without its order: "<f4", "i8", ">c16", "V2".
// Unimplemented for unsigned integers of 32 and 64 bits, strings, objects and records.
absl::Status SetNumpyType(absl::string_view type, ArrayLayout* layout);

// Bytes of the unit whose bytes are in one order: the real number, also for complex.
size_t UnitBytes(DType dtype);

// Any non-zero byte of a bool array means true; a C++ bool may only be 0 or 1.
void NormalizeBools(char* data, size_t size_bytes);

// The tensor of the elements at `data`, in plain row-major order. The first form copies, the second
// uses `file`, in which they lie, when they are as a tensor needs them.
// REQUIRES: layout.size_bytes() bytes at `data`.
absl::StatusOr<Tensor> CopyElements(const ArrayLayout& layout, const char* data);
absl::StatusOr<Tensor> ShareElements(const ArrayLayout& layout, BufferRef file, char* data);

}  // namespace interp
