// NumPy's .npz files: zip archives of .npy files. The array of variable `x` is the entry "x.npy".
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// The arrays of an archive in file order. Errors: those of zip.h and npy.h; InvalidArgument for an
// entry that is no .npy file or a name that appears twice.
absl::StatusOr<std::vector<NamedTensor>> ParseNpz(absl::string_view file);

// Files. Errors start with the path. `compress` is slow and gains little on parameters.
absl::StatusOr<std::vector<NamedTensor>> ReadNpz(const std::string& path);
absl::Status WriteNpz(const std::string& path, absl::Span<const NamedTensor> tensors,
                      bool compress = false);

}  // namespace interp
