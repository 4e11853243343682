// What the ops that read and write files have in common: attributes, the folder that they may use,
// and conversion to float16.
#pragma once

#include <string>

#include "core/buffer.h"
#include "core/op_def.h"

namespace interp {

struct SaveAttrs {
  std::string path;
  bool overwrite = true;
  bool as_fp16 = false;

  static SaveAttrs Read(AttrReader& reader);
};

// The file that an op is to write, and is allowed to. PermissionDenied unless the run has a folder
// for files (CoreOptions::file_folder) that it lies in; AlreadyExists for one that is to be kept.
absl::StatusOr<std::string> FileToWrite(const KernelContext& ctx, const SaveAttrs& attrs);

// The file that an op is to read, mapped. The same errors, and NotFound.
absl::StatusOr<BufferRef> FileToRead(const KernelContext& ctx, const std::string& path);

inline absl::string_view BytesOf(const BufferRef& file) {
  return {static_cast<const char*>(file->data), file->size_bytes};
}

// `tensor` in float16, with its LoD. Unimplemented for one that is no number.
absl::StatusOr<Tensor> AsFloat16(const KernelContext& ctx, const Tensor& tensor);

}  // namespace interp
