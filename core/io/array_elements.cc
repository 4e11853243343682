#include "core/io/array_elements.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace interp {
namespace {

struct DescrRow {
  absl::string_view descr;  // without the byte order
  DType dtype;
};

// The first row of a dtype is the one that is written.
constexpr DescrRow kDescrs[] = {
    {"b1", DType::kBool},      {"i1", DType::kInt8},        {"u1", DType::kUInt8},
    {"i2", DType::kInt16},     {"i4", DType::kInt32},       {"i8", DType::kInt64},
    {"f2", DType::kFloat16},   {"f4", DType::kFloat32},     {"f8", DType::kFloat64},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128}, {"u2", DType::kBFloat16},
    {"V2", DType::kBFloat16},
};

void SwapBytes(char* data, size_t size_bytes, size_t unit_bytes) {
  for (size_t at = 0; at < size_bytes; at += unit_bytes) {
    std::reverse(data + at, data + at + unit_bytes);
  }
}

// Copies elements of `shape` that lie column by column at `src` row by row to `dst`.
template <size_t kElementBytes>
void CopyFromFortran(const char* src, const Shape& shape, char* dst) {
  std::array<int64_t, kMaxRank> index = {};
  std::array<int64_t, kMaxRank> stride = {};
  for (int i = 0; i < shape.rank(); ++i) stride[i] = shape.numel(0, i);
  const int64_t numel = shape.numel();
  int64_t from = 0;
  for (int64_t i = 0; i < numel; ++i) {
    std::memcpy(dst + i * kElementBytes, src + from * kElementBytes, kElementBytes);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      from += stride[axis];
      if (++index[axis] < shape[axis]) break;
      from -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

void CopyFromFortran(const char* src, const ArrayLayout& layout, char* dst) {
  switch (SizeOf(layout.dtype)) {
    case 1:
      return CopyFromFortran<1>(src, layout.shape, dst);
    case 2:
      return CopyFromFortran<2>(src, layout.shape, dst);
    case 4:
      return CopyFromFortran<4>(src, layout.shape, dst);
    case 8:
      return CopyFromFortran<8>(src, layout.shape, dst);
    case 16:
      return CopyFromFortran<16>(src, layout.shape, dst);
  }
}

Tensor TensorOf(const ArrayLayout& layout) {
  Tensor tensor;
  tensor.dtype = layout.dtype;
  tensor.shape = layout.shape;
  return tensor;
}

bool IsReadyToUse(const ArrayLayout& layout, const char* data) {
  const size_t unit = UnitBytes(layout.dtype);
  return !(layout.big_endian && unit > 1) && !(layout.fortran_order && layout.shape.rank() > 1) &&
         layout.dtype != DType::kBool && reinterpret_cast<uintptr_t>(data) % unit == 0;
}

}  // namespace

absl::string_view NumpyType(DType dtype) {
  const auto* row = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                 [&](const DescrRow& r) { return r.dtype == dtype; });
  return row == std::end(kDescrs) ? absl::string_view() : row->descr;
}

absl::Status SetNumpyType(absl::string_view type, ArrayLayout* layout) {
  absl::string_view kind = type;
  if (!kind.empty() && absl::StrContains("<>|=", kind.substr(0, 1))) {
    layout->big_endian = kind[0] == '>';
    kind.remove_prefix(1);
  }
  for (const DescrRow& row : kDescrs) {
    if (row.descr != kind) continue;
    layout->dtype = row.dtype;
    return absl::OkStatus();
  }
  return Unimplemented("arrays of type '", absl::Utf8SafeCEscape(type), "' are not supported");
}

size_t UnitBytes(DType dtype) {
  const bool complex = IsComplex(dtype);
  return SizeOf(dtype) / (complex ? 2 : 1);
}

void NormalizeBools(char* data, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; ++i) data[i] = data[i] != 0;
}

absl::StatusOr<Tensor> CopyElements(const ArrayLayout& layout, const char* data) {
  Tensor tensor = TensorOf(layout);
  INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  char* out = static_cast<char*>(tensor.mutable_raw_data());
  if (layout.fortran_order) {
    CopyFromFortran(data, layout, out);
  } else if (tensor.size_bytes() > 0) {
    std::memcpy(out, data, tensor.size_bytes());
  }
  if (layout.big_endian) SwapBytes(out, tensor.size_bytes(), UnitBytes(layout.dtype));
  if (layout.dtype == DType::kBool) NormalizeBools(out, tensor.size_bytes());
  return tensor;
}

absl::StatusOr<Tensor> ShareElements(const ArrayLayout& layout, BufferRef file, char* data) {
  if (!IsReadyToUse(layout, data)) return CopyElements(layout, data);
  Tensor tensor = TensorOf(layout);
  tensor.SetMemory(std::move(file), data);
  return tensor;
}

}  // namespace interp
