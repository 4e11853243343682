// Tensor: a shape, an element type, a memory layout, a LoD and shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/buffer.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/status.h"

namespace interp {

// How the elements lie in memory. `shape` always names dimensions in logical order.
enum class Layout : int8_t {
  kPlain,         // row-major in the order of `shape`
  kChannelsLast,  // rank 4 and 5: logical N,C,spatial lies in memory as N,spatial,C
};
// "plain" or "channels_last".
absl::string_view Name(Layout layout);

// Level of detail, offset form: each level starts with 0 and does not descend; the last entry of
// the lowest level is the first dimension. Empty: none. (Paddle's LoDTensor.)
using Lod = std::vector<std::vector<int64_t>>;

// InvalidArgument unless `lod` is as described above for a tensor of this shape. Kernels use
// offsets as indices without a check, so whatever comes from outside goes through here.
absl::Status CheckLod(const Lod& lod, const Shape& shape);

// A value type: copying shares the memory. Metadata are plain members; the memory is set by
// `Allocate`, `ShareMemory` or `Borrow`. A tensor without memory may still have a shape: garbage
// collection drops the memory and keeps the rest.
// Thread-safety: like an int; copies that share memory may live on different threads.
class Tensor {
 public:
  Shape shape;
  DType dtype = DType::kUndefined;
  Layout layout = Layout::kPlain;
  Lod lod;

  int64_t numel() const { return shape.numel(); }
  size_t size_bytes() const { return static_cast<size_t>(numel()) * SizeOf(dtype); }
  bool has_memory() const { return static_cast<bool>(buffer_); }
  // Where the memory lies; cpu without memory.
  Place place() const { return buffer_ ? buffer_->place : Place{}; }
  const BufferRef& buffer() const { return buffer_; }

  // Typed access. REQUIRES: T is the C++ type of `dtype` and has_memory().
  template <typename T>
  const T* data() const {
    INTERP_CHECK(DTypeOf<T> == dtype && "kernel reads a tensor as the wrong type");
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data() {
    INTERP_CHECK(DTypeOf<T> == dtype && "kernel writes a tensor as the wrong type");
    return static_cast<T*>(data_);
  }
  const void* raw_data() const { return data_; }
  void* mutable_raw_data() { return data_; }

  // Gives memory for `shape` x `dtype`. Memory that this tensor alone owns is reused when it is
  // large enough. Errors: InvalidArgument for a shape that overflows, and those of the allocator.
  absl::Status Allocate(Allocator& allocator);
  // The same for a caller who knows the size. REQUIRES: size_bytes == size_bytes().
  absl::Status AllocateBytes(Allocator& allocator, size_t size_bytes);
  // Shares the memory of `other`, metadata untouched.
  void ShareMemory(const Tensor& other) {
    buffer_ = other.buffer_;
    data_ = other.data_;
  }
  // Uses `size_bytes()` bytes at `data`, which lie in `buffer`.
  void SetMemory(BufferRef buffer, void* data) {
    buffer_ = std::move(buffer);
    data_ = data;
  }
  // Drops the memory, keeps the metadata.
  void DropMemory() {
    buffer_.reset();
    data_ = nullptr;
  }

  // A tensor over the caller's memory, kept alive and unchanged while in use. Null: no memory.
  static Tensor Borrow(DType dtype, const Shape& shape, const void* data);
  // A deep copy in plain layout and memory of `allocator`.
  absl::StatusOr<Tensor> Clone(Allocator& allocator) const;

  // Builds a plain tensor from values, for tests and small constants.
  template <typename T>
  static Tensor Of(const Shape& shape, absl::Span<const T> values);

 private:
  BufferRef buffer_;
  void* data_ = nullptr;
};

// Shape, dtype, layout and LoD; the memory of `to` stays.
inline void CopyMetadata(const Tensor& from, Tensor& to) {
  to.shape = from.shape;
  to.dtype = from.dtype;
  to.layout = from.layout;
  to.lod = from.lod;
}
// Whether all that CopyMetadata copies is equal.
inline bool SameMetadata(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.layout == b.layout && a.lod == b.lod;
}

// A feed, a fetch or a parameter with the name of its variable.
using NamedTensor = std::pair<std::string, Tensor>;

// "float32[2,3]"
std::string DescribeType(const Tensor& tensor);

template <typename T>
Tensor Tensor::Of(const Shape& shape, absl::Span<const T> values) {
  Tensor t;
  t.shape = shape;
  t.dtype = DTypeOf<T>;
  INTERP_CHECK(t.numel() == static_cast<int64_t>(values.size()));
  const absl::Status status = t.Allocate(SystemAllocator());
  INTERP_CHECK(status.ok());
  std::copy(values.begin(), values.end(), t.mutable_data<T>());
  return t;
}

}  // namespace interp
