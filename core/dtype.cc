#include "core/dtype.h"

namespace interp {
namespace {

struct Row {
  DType dtype;
  size_t size_bytes;
  absl::string_view name;
};

constexpr Row kRows[] = {
    {DType::kBool, 1, "bool"},
    {DType::kInt16, 2, "int16"},
    {DType::kInt32, 4, "int32"},
    {DType::kInt64, 8, "int64"},
    {DType::kFloat16, 2, "float16"},
    {DType::kFloat32, 4, "float32"},
    {DType::kFloat64, 8, "float64"},
    {DType::kUInt8, 1, "uint8"},
    {DType::kInt8, 1, "int8"},
    {DType::kBFloat16, 2, "bfloat16"},
    {DType::kComplex64, 8, "complex64"},
    {DType::kComplex128, 16, "complex128"},
    {DType::kFloat8E4M3, 1, "float8_e4m3fn"},
    {DType::kFloat8E5M2, 1, "float8_e5m2"},
};
constexpr int kSizeTCode = 19;

const Row* Find(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

size_t SizeOf(DType dtype) {
  const Row* row = Find(dtype);
  return row != nullptr ? row->size_bytes : 0;
}

absl::string_view Name(DType dtype) {
  const Row* row = Find(dtype);
  return row != nullptr ? row->name : "undefined";
}

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromCode(int code) {
  if (code == kSizeTCode) return DType::kInt64;
  for (const Row& row : kRows) {
    if (static_cast<int>(row.dtype) == code) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace interp
