// Paddle's parameter files.
//
// One tensor is one record: version, LoD, dtype and dims (a small protobuf message), elements. A
// combined file (.pdiparams, __params__) is records back to back in the order of the sorted names,
// without the names: those come from the program. The other form is a folder with one file per
// variable, named after it.
//
// Files are mapped. A tensor uses the mapping where its elements happen to be aligned for their
// dtype; else the elements are copied, but see ParamMemory. Ops do not write into a mapping; who
// owns the tensors may, which changes neither the file nor what others have read from it. The
// mapping lives as long as the last tensor that uses it.
//
// Files are untrusted: sizes are checked against the file before memory is taken, LoDs are checked
// against the shape. Errors name the variable and the byte offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/buffer.h"
#include "core/io/param_decl.h"
#include "core/io/param_record.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// A file as memory that tensors may share, mapped copy-on-write.
absl::StatusOr<BufferRef> MapAsBuffer(const std::string& path);

// Where large matrices of float32 lie that are not aligned in their file.
enum class ParamMemory : bool {
  kCopied,  // in memory of their own, as any code may read them
  // In the file, mapped: for kernels that read them by ConstantElements. Nobody writes to any
  // tensor that lies there: its pages are read from the file again.
  kFile,
};

// Reads a combined file or, when `path` is a folder, one file per variable. Tensors come
// AsDeclared, in the order of `params`, which for a combined file must be sorted by name. Errors:
// DataLoss for damaged files, InvalidArgument where file and declaration differ (also in the number
// of parameters), ResourceExhausted.
absl::StatusOr<std::vector<NamedTensor>> ReadParams(const std::string& path,
                                                    absl::Span<const ParamDecl> params,
                                                    ParamMemory memory = ParamMemory::kCopied);

// The same for a combined file in memory; tensors share `file` where they can.
absl::StatusOr<std::vector<NamedTensor>> ParseCombinedParams(const BufferRef& file,
                                                             absl::Span<const ParamDecl> params);

// The records of a combined file, for looking at one without its program.
absl::StatusOr<std::vector<ParamRecord>> ParseParamRecords(absl::string_view file);

// Writes a combined file that Paddle and ReadParams read. Any order: they are sorted here.
// Errors: InvalidArgument for a tensor without memory or a name that appears twice.
absl::Status WriteCombinedParams(const std::string& path, absl::Span<const NamedTensor> params);

}  // namespace interp
