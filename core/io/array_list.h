// MXNet's lists of arrays (.params, .nd): what mx.nd.save writes, a list or a dict.
//
//   file : u64 0x112 | u64 0 | u64 n | n x array | u64 m | m x { u64 length, bytes }
//   array: u32 magic | i32 storage | [shape of the rows there are] | shape
//          | i32 device kind, i32 device | i32 dtype | [i32 dtype, shape of the row numbers]
//          | elements | [row numbers]
//   shape: i32 rank | rank x i64
//
// little-endian; m is 0 for a list and n for a dict (NDArray::Save, src/ndarray/ndarray.cc). Reads
// all versions: V0, which has no magic but the rank and dims of 32 bits; V1, without storage; V2;
// V3, where scalars and dims of 0 are arrays and not "none". Writes V2, and V3 for what V2 has not.
//
// Files are untrusted: sizes are checked against the file before memory is taken, row numbers
// against the height. Errors tell the array and the byte offset.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/variable.h"

namespace interp {

struct ListedArray {
  std::string name;  // empty in a list
  // Of rows: those there are, [number, ...]. Undefined dtype: "none", an array without a shape.
  Tensor tensor;
  std::optional<RowIndex> rows;
};

struct ArrayList {
  std::vector<ListedArray> arrays;
  bool named = false;  // a dict
};

// Tensors share `file` where their elements lie as they need them. Errors: DataLoss for damaged
// files and for names that appear twice; Unimplemented for compressed sparse rows, unsigned
// integers of 16 to 64 bits and ranks above kMaxRank.
absl::StatusOr<ArrayList> ParseArrayList(const BufferRef& file);

// Files. Errors start with the path. Writing: InvalidArgument for a tensor without memory, a name
// that appears twice or numbers of rows that do not fit; Unimplemented for dtypes MXNet has not.
absl::StatusOr<ArrayList> ReadArrayList(const std::string& path);
absl::Status WriteArrayList(const std::string& path, const ArrayList& list);

}  // namespace interp
