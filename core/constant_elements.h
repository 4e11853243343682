// ConstantElements: reading a constant that may lie in a file still.
//
// A kernel that packs a weight has no use for the weight itself afterwards. So a parameter file
// stays mapped instead of copied, for slots that are kMayBeUnaligned (core/op_def.h): weights are
// held once, in the form that kernels read.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Whether the elements may be read where they lie: a file may have them at any byte.
bool IsAligned(const Tensor& tensor);

// Takes the whole pages of [data, data + size_bytes), memory of a mapped file that nobody writes
// to, out of the memory of this process; they come back when they are touched.
void DropFilePages(const void* data, size_t size_bytes);

// The same for the elements of a tensor that lies in a file (Buffer::in_file); nothing for others.
void GiveBackPages(const Tensor& tensor);

// The tensor in memory that lasts, and its pages of a file given back.
// REQUIRES: on the host, plain. Error: ResourceExhausted.
absl::StatusOr<Tensor> TakeFromFile(const Tensor& tensor);

// Thread-safety: as an int; several may read one tensor.
class ConstantElements {
 public:
  // `tensor` is borrowed, and copied where it is not aligned, into memory that is no core's: limits
  // of what variables take leave parameters out. Error: ResourceExhausted.
  static absl::StatusOr<ConstantElements> Of(const Tensor& tensor);
  // Gives the pages of a file back; the copy's memory is kept for the next one.
  ~ConstantElements();
  ConstantElements(ConstantElements&& other) noexcept;
  ConstantElements& operator=(ConstantElements&& other) noexcept;

  // The same values, aligned.
  const Tensor& operator*() const { return copy_.has_memory() ? copy_ : *tensor_; }
  const Tensor* operator->() const { return &**this; }

 private:
  explicit ConstantElements(const Tensor& tensor) : tensor_(&tensor) {}

  const Tensor* tensor_;  // null when moved from
  Tensor copy_;           // without memory: none was needed
};

// Gives the system the memory of copies that nobody has any more. A core calls it after each run.
void TrimCopiesOfConstants();

}  // namespace interp
