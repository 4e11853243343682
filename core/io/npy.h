// NumPy's .npy files: one array with its dtype and shape.
//
// Reading takes format versions 1 to 3, C and Fortran order, little and big endian, and gives plain
// row-major tensors. bfloat16 is stored as uint16, Paddle's convention for NumPy; V2, what
// ml_dtypes writes for it, is read too. Not supported: float8, unsigned integers of 32 and 64 bits,
// strings, objects and records. A LoD is not stored.
//
// Files are untrusted: the header is parsed, not evaluated, and memory is only allocated for data
// that is there. Errors tell the byte offset.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/io/array_elements.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// The most that the arrays of one file may take in memory, unless the caller says otherwise: more
// than any feed or parameter file seen, and less than what makes a machine useless.
inline constexpr size_t kMaxArrayBytes = size_t{16} << 30;

// What the head of a .npy file says.
struct NpyHeader : ArrayLayout {
  size_t data_offset = 0;  // where the elements start
};

// Reads the head of the file that starts with `bytes`; the elements need not be there.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes);

// The array of a whole file. The first form copies; the second shares `file` when the elements
// lie in it as a tensor needs them.
absl::StatusOr<Tensor> ParseNpy(absl::string_view file);
absl::StatusOr<Tensor> ParseNpy(BufferRef file);

// The two parts of a .npy file, so that writing one does not copy the elements.
struct NpyParts {
  std::string header;
  Tensor elements;  // in plain layout

  absl::string_view element_bytes() const {
    return {static_cast<const char*>(elements.raw_data()), elements.size_bytes()};
  }
};

// The file for `tensor`. Errors: Unimplemented for a dtype that NumPy has not; InvalidArgument for
// a tensor without memory.
absl::StatusOr<NpyParts> FormatNpy(const Tensor& tensor);

// Files. Errors start with the path; ResourceExhausted for an array of more than `max_bytes`.
absl::StatusOr<Tensor> ReadNpy(const std::string& path, size_t max_bytes = kMaxArrayBytes);
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace interp
