// What the kernels need of oneDNN: descriptors of strided memory and primitives that are made once
// per shape and then only get new data pointers.
//
// oneDNN throws; everything here that calls it returns a Status instead.
//
// Threads. oneDNN reads the number of OpenMP threads of the calling thread both when a primitive is
// made and when it runs, and the two must agree: call `UseThreads(n)` first in every kernel that
// gets here, and make n a part of the ShapeCache key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/op_def.h"
#include "core/status.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace interp::nn {

// The one CPU engine and stream. A CPU stream of oneDNN's OpenMP build runs primitives on the
// calling thread and has no state, so that all threads may share it.
const dnnl::engine& Engine();
const dnnl::stream& Stream();

// Whether oneDNN multiplies tiles of bfloat16 here: the processor has AMX, and the system lets the
// process use it.
bool MultipliesBf16Tiles();

// Makes this thread's OpenMP pool `num_threads` wide, unless it is so already, and has its threads
// flush denormal numbers (kernels/util/flush_denormals.h).
void UseThreads(int num_threads);

// Runs `body` (absl::Status()) and turns what oneDNN and the standard library throw into a Status:
// Unimplemented when oneDNN has no such primitive, ResourceExhausted for memory, else Internal.
absl::Status StatusOfException(const std::exception& exception);
template <typename Body>
absl::Status CatchErrors(const Body& body) {
  try {
    return body();
  } catch (const std::exception& exception) {
    return StatusOfException(exception);
  }
}

// The same where a primitive is made that there is something instead of: Unimplemented also when
// oneDNN fails to generate its code, as it does for some post-ops of grouped convolutions that it
// has offered to run.
template <typename Body>
absl::Status CatchErrorsOfMaking(const Body& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_runtime_error) return StatusOfException(error);
    return Unimplemented("oneDNN: ", error.message);
  } catch (const std::exception& exception) {
    return StatusOfException(exception);
  }
}

using MemDesc = dnnl::memory::desc;

// Descriptor of strided elements; strides count elements. Empty strides: row-major.
MemDesc StridedDesc(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides,
                    dnnl::memory::data_type type = dnnl::memory::data_type::f32);
// Descriptor that lets the primitive choose the format.
MemDesc AnyDesc(absl::Span<const int64_t> dims,
                dnnl::memory::data_type type = dnnl::memory::data_type::f32);

// oneDNN's name of an element type. REQUIRES: float32 or bfloat16.
inline dnnl::memory::data_type DataType(DType dtype) {
  return dtype == DType::kBFloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// A number below 2^63 that tells memory formats of equal dims apart, the same in every process; for
// keys of KernelContext::Shared.
uint64_t FormatHash(const MemDesc& desc);

// A primitive with its arguments, ready to run on changing data pointers without allocating.
// Thread-safety: not for concurrent use; each core has its own.
class Primitive {
 public:
  // `scratchpad` describes the user-mode scratchpad (primitive_desc::scratchpad_desc()).
  // May throw; call inside CatchErrors.
  Primitive(dnnl::primitive primitive, const MemDesc& scratchpad);

  // Adds an argument (a DNNL_ARG_* number) whose memory changes, returns its position. May throw.
  int AddArg(int arg, const MemDesc& desc);
  // Adds an argument that stays the same and returns its position. May throw.
  int AddMemory(int arg, dnnl::memory memory);
  // Replaces an argument.
  void SetMemory(int position, dnnl::memory memory);
  // Points argument `position` at `data`, which lives until the next Execute has returned.
  // REQUIRES: a format without padding, into which oneDNN would write zeros each time.
  void SetData(int position, const void* data);
  size_t scratchpad_bytes() const { return scratchpad_bytes_; }

  // Runs on this thread's OpenMP pool; the scratchpad comes from the allocator of `ctx`.
  absl::Status Execute(const KernelContext& ctx);
  // The same with scratchpad_bytes() of the caller's memory.
  absl::Status Execute(void* scratchpad);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;  // the scratchpad is the first
  std::vector<dnnl_exec_arg_t> args_;
  size_t scratchpad_bytes_;
};

// Copies `source` into the format of `target`, which has the same dims. Allocates; for weights.
absl::Status Reorder(const MemDesc& from, const void* source, dnnl::memory target);

// Attributes of a primitive whose scratchpad the caller gives. May throw.
dnnl::primitive_attr UserScratchpad();

// A copy between two formats, ready to run on changing pointers.
// Thread-safety: not for concurrent use.
class FormatCopy {
 public:
  // May throw; call inside CatchErrors.
  FormatCopy(const MemDesc& from, const MemDesc& to);
  absl::Status Run(const KernelContext& ctx, const void* from, dnnl::memory to);
  absl::Status Run(const KernelContext& ctx, dnnl::memory from, void* to);

 private:
  std::unique_ptr<Primitive> primitive_;
  int from_ = 0;
  int to_ = 0;
};

// What an instruction has prepared for the few shapes it met last, most recent first. A program
// that sees many shapes keeps a bounded number of primitives.
template <typename Value>
class ShapeCache {
 public:
  using Key = absl::InlinedVector<int64_t, 24>;

  // The value under `key`, or null.
  Value* Find(const Key& key) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].first != key) continue;
      if (i > 0) std::swap(entries_[0], entries_[i]);
      return entries_[0].second.get();
    }
    return nullptr;
  }
  // Adds a value, which drops an old one when there are too many.
  Value& Insert(Key key, std::unique_ptr<Value> value) {
    if (entries_.size() == kCapacity) entries_.pop_back();
    entries_.emplace(entries_.begin(), std::move(key), std::move(value));
    return *entries_[0].second;
  }

 private:
  static constexpr size_t kCapacity = 8;
  std::vector<std::pair<Key, std::unique_ptr<Value>>> entries_;
};

}  // namespace interp::nn
