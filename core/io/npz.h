// NumPy's .npz files: zip archives of .npy files. The array of variable `x` is the entry "x.npy".
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/io/npy.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// The arrays of an archive in file order. Errors: those of zip_reader.h and npy.h; InvalidArgument
// for an entry that is no .npy file or a name that appears twice; ResourceExhausted when the
// entries claim more than `max_bytes` together, before any is extracted.
absl::StatusOr<std::vector<NamedTensor>> ParseNpz(absl::string_view file,
                                                  size_t max_bytes = kMaxArrayBytes);

// Files. Errors start with the path. `compress` is slow and gains little on parameters.
absl::StatusOr<std::vector<NamedTensor>> ReadNpz(const std::string& path,
                                                 size_t max_bytes = kMaxArrayBytes);
absl::Status WriteNpz(const std::string& path, absl::Span<const NamedTensor> tensors,
                      bool compress = false);

}  // namespace interp
