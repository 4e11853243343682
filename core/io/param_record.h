// One variable as Paddle writes it to a file: a tensor, or selected rows.
//
//   tensor         u32 version, u64 levels of LoD, each u64 bytes and offsets; values
//   selected rows  u32 version, u64 count, i64 rows[count], i64 height; values
//   values         u32 version, i32 size of a TensorDesc, the TensorDesc, the elements
//
// All versions are 0, all numbers little endian. (Paddle 2.6: lod_tensor.cc,
// selected_rows_utils.cc, tensor_util.cc.) Files are untrusted: sizes are checked against the file
// before memory is taken.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/io/file.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/variable.h"

namespace interp {

// A tensor in a file.
struct ParamRecord {
  uint64_t offset = 0;       // of the record in the file
  uint64_t data_offset = 0;  // of its elements
  DType dtype = DType::kUndefined;
  Shape shape;
  Lod lod;

  uint64_t size_bytes() const { return static_cast<uint64_t>(shape.numel()) * SizeOf(dtype); }
};

// Reads records one after the other. `file` is borrowed. Errors are DataLoss, and their messages
// start with the byte offset.
class ParamRecordReader {
 public:
  explicit ParamRecordReader(absl::string_view file) : file_(file) {}

  bool at_end() const { return position_ == file_.size(); }
  size_t position() const { return position_; }
  size_t left() const { return file_.size() - position_; }

  // A tensor.
  absl::StatusOr<ParamRecord> Next();
  // Selected rows: which they are goes to `index`, their values are returned.
  absl::StatusOr<ParamRecord> NextRows(RowIndex& index);

 private:
  absl::Status Fail(size_t at, absl::string_view what) const;
  template <typename T>
  absl::Status Read(T* value, absl::string_view what);
  absl::Status ReadVersion(absl::string_view of);
  absl::Status ReadLod(Lod* lod);
  absl::Status ReadIndex(RowIndex& index);
  absl::Status ReadDesc(ParamRecord* record);
  // Version, description and elements, for both kinds.
  absl::Status ReadValues(ParamRecord* record);

  absl::string_view file_;
  size_t position_ = 0;
};

// Copies elements of a record, from element `first` on, as many as `out` has. `file` is what the
// record was read from. REQUIRES: they are there, and `out` has memory and the record's dtype.
void CopyElements(const ParamRecord& record, absl::string_view file, int64_t first, Tensor& out);

// Writes a tensor. InvalidArgument for one without dtype or memory.
absl::Status AppendRecord(const Tensor& tensor, FileWriter& out);
// Writes selected rows.
absl::Status AppendRowsRecord(const RowIndex& index, const Tensor& values, FileWriter& out);

}  // namespace interp
