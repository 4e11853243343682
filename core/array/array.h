// Array: values at a place, whose every use is an operation of an engine.
//
//   std::unique_ptr<ArrayRuntime> runtime = *ArrayRuntime::Create();
//   Array x = *runtime->FromTensor(tensor);
//   Array y = *Relu(x);                    // pushed; returns at once
//   Tensor value = *y.Read();              // waits, and tells what has failed
//
// An array is a handle: copies name the same array. Its memory and one variable of the engine are a
// chunk, which views (slices, other shapes) share: what is written through one is seen by all, and
// operations on any of them happen in the order of their pushes. Memory is taken by the first
// operation that writes, on the thread that runs it. Copies between arrays of the host share memory
// until one of the two is written to.
//
// Errors. What is wrong with shapes, dtypes or places is returned by the call. What fails in a
// kernel spoils what the operation writes and comes out where a value is read.
//
// The model is MXNet's NDArray (include/mxnet/ndarray.h). docs/arrays.md tells more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/variable.h"

namespace interp {

class ArrayRuntime;

// The memory of an array and of its views. Internal to core/array.
struct Chunk {
  // `value` is touched by operations that name `variable`, by nobody else.
  Variable value;
  engine::Variable variable;
  ArrayRuntime* runtime = nullptr;
  size_t size_bytes = 0;  // of the memory; that of rows arrays has any size
  Place place;
  std::atomic<uint64_t> num_writes = 0;  // pushed so far, for tapes

  Chunk() = default;
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  ~Chunk();
};

// Thread-safety: as std::shared_ptr; what the methods push may be pushed from any thread. All
// arrays end before their runtime.
class Array {
 public:
  // No array; only assignment and the test are allowed.
  Array() = default;
  explicit operator bool() const { return chunk_ != nullptr; }

  // None of these waits.
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Place place() const { return chunk_->place; }
  int64_t numel() const { return shape_.numel(); }
  size_t size_bytes() const { return static_cast<size_t>(numel()) * SizeOf(dtype_); }
  // Holds some rows of its shape with their numbers (RowIndex); see ArrayRuntime::NewRows.
  bool is_rows() const { return rows_; }
  ArrayRuntime& runtime() const { return *chunk_->runtime; }
  // Of the chunk: for operations of one's own that use arrays.
  engine::Variable variable() const { return chunk_->variable; }
  // The same for copies of a handle, different for all else that lives.
  bool SameAs(const Array& other) const { return id_ == other.id_; }
  bool SharesMemoryWith(const Array& other) const { return chunk_ == other.chunk_; }

  // Views. Rows [begin, end) of the first axis; row `i` without that axis; another shape of the
  // same elements, in which one dim may be -1. InvalidArgument for what does not fit, and for rows
  // arrays.
  absl::StatusOr<Array> Slice(int64_t begin, int64_t end) const;
  absl::StatusOr<Array> At(int64_t i) const;
  absl::StatusOr<Array> Reshape(const Shape& shape) const;

  // A new array with these values at `place`.
  absl::StatusOr<Array> CopyTo(Place place, int32_t priority = 0) const;
  // Gives this array the values of another of the same shape and dtype, at any place.
  absl::Status CopyFrom(const Array& from, int32_t priority = 0) const;
  // The same of a host tensor, which may change as soon as this returns.
  absl::Status CopyFrom(const Tensor& from) const;

  // Wait until the values may be read, or overwritten. Return what has spoilt them, each time,
  // until they are overwritten.
  absl::Status WaitToRead() const;
  absl::Status WaitToWrite() const;
  // The values, on the host. They stay as they are whatever is done to the array later. Waits.
  absl::StatusOr<Tensor> Read() const;
  // The same of a rows array.
  struct Rows {
    Tensor values;  // [number of rows, ...]
    RowIndex index;
  };
  absl::StatusOr<Rows> ReadRows() const;

 private:
  friend class ArrayRuntime;
  friend class ArrayAccess;

  // CopyFrom without what tapes say of it.
  absl::Status TakeValues(const Array& from, int32_t priority) const;

  std::shared_ptr<Chunk> chunk_;
  size_t offset_bytes_ = 0;
  Shape shape_;
  uint64_t id_ = 0;
  DType dtype_ = DType::kUndefined;
  bool rows_ = false;
};

// "float32[2,3] on sim:0"
std::string DescribeArray(const Array& array);

// What operations on arrays may see of them. Internal to core/array and to those who push
// operations of their own.
class ArrayAccess {
 public:
  static const std::shared_ptr<Chunk>& chunk(const Array& array) { return array.chunk_; }
  static size_t offset_bytes(const Array& array) { return array.offset_bytes_; }
  static uint64_t id(const Array& array) { return array.id_; }
  // Who has pushed an operation that writes the array says so.
  static void CountWrite(const Array& array) { array.chunk_->num_writes.fetch_add(1); }
  static uint64_t num_writes(const Array& array) { return array.chunk_->num_writes.load(); }
  // All memory of its chunk is the array's.
  static bool IsWhole(const Array& array) {
    return array.rows_ ||
           (array.offset_bytes_ == 0 && array.size_bytes() == array.chunk_->size_bytes);
  }
  // The array as a tensor. NotFound when nothing has given it values. REQUIRES: an operation that
  // names its variable.
  static absl::StatusOr<Tensor> Readable(const Array& array);
  // Its memory as a tensor to be written, on memory that nobody else sees. The old values are kept
  // unless the array is whole and `overwrites`. REQUIRES: the same, as one that writes.
  static absl::StatusOr<Tensor> Writable(const Array& array, bool overwrites,
                                         const engine::RunContext& context);
};

}  // namespace interp
