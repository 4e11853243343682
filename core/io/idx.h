// The idx files of the MNIST database (yann.lecun.com/exdb/mnist): two zero bytes, the element
// type, the number of dimensions, each dimension and the elements, all big-endian.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/io/npy.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Whether the bytes start as an idx file does.
bool IsIdx(absl::string_view file);

// Errors: DataLoss for a file that is cut off or longer than its dimensions say; Unimplemented for
// other element types than unsigned and signed bytes, int16, int32, float32 and float64;
// ResourceExhausted for more than `max_bytes`. No memory is taken before the sizes are checked.
absl::StatusOr<Tensor> ParseIdx(absl::string_view file, size_t max_bytes = kMaxArrayBytes);

}  // namespace interp
