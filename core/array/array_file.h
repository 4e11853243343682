// Arrays in files: MXNet's lists (core/io/array_list.h) and NumPy's archives (core/io/npz.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/array/array.h"

namespace interp {

using NamedArray = std::pair<std::string, Array>;

// Writes an archive where the path ends in .npz, else MXNet's format: a dict, or a list when all
// names are empty. Waits for the arrays and returns their errors; then no file is made.
// Unimplemented for rows in an archive.
absl::Status SaveArrays(const std::string& path, absl::Span<const NamedArray> arrays);

// The arrays of a file of either kind, told apart by content, in its order. What MXNet saved as
// "none" is an array that is none.
absl::StatusOr<std::vector<NamedArray>> LoadArrays(ArrayRuntime& runtime, const std::string& path,
                                                   Place place = {});

}  // namespace interp
