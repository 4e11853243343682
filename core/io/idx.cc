#include "core/io/idx.h"

#include <algorithm>
#include <cstring>

namespace interp {
namespace {

constexpr size_t kMagicBytes = 4;

DType TypeOf(uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::kUInt8;
    case 0x09:
      return DType::kInt8;
    case 0x0B:
      return DType::kInt16;
    case 0x0C:
      return DType::kInt32;
    case 0x0D:
      return DType::kFloat32;
    case 0x0E:
      return DType::kFloat64;
    default:
      return DType::kUndefined;
  }
}

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = (value << 8) | static_cast<uint8_t>(c);
  return value;
}

}  // namespace

bool IsIdx(absl::string_view file) {
  return file.size() >= kMagicBytes && file[0] == 0 && file[1] == 0 &&
         TypeOf(static_cast<uint8_t>(file[2])) != DType::kUndefined &&
         static_cast<uint8_t>(file[3]) <= kMaxRank;
}

absl::StatusOr<Tensor> ParseIdx(absl::string_view file, size_t max_bytes) {
  if (file.size() < kMagicBytes || file[0] != 0 || file[1] != 0) {
    return DataLoss("does not start as an idx file");
  }
  Tensor tensor;
  tensor.dtype = TypeOf(static_cast<uint8_t>(file[2]));
  if (tensor.dtype == DType::kUndefined) {
    return Unimplemented("has idx elements of type ", static_cast<int>(file[2]));
  }
  const auto rank = static_cast<uint8_t>(file[3]);
  const size_t header = kMagicBytes + size_t{4} * rank;
  if (rank > kMaxRank || file.size() < header) {
    return DataLoss("has ", static_cast<int>(rank), " dimensions in ", file.size(), " bytes");
  }
  for (uint8_t d = 0; d < rank; ++d) {
    tensor.shape.push_back(BigEndian(file.substr(kMagicBytes + size_t{4} * d)));
  }
  if (!tensor.shape.CheckedNumel().has_value() || tensor.size_bytes() != file.size() - header) {
    return DataLoss("has ", file.size() - header, " bytes of elements, expected ",
                    DescribeType(tensor));
  }
  if (tensor.size_bytes() > max_bytes) {
    return ResourceExhausted("takes ", tensor.size_bytes(), " bytes, more than ", max_bytes);
  }
  INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  const size_t width = SizeOf(tensor.dtype);
  char* to = static_cast<char*>(tensor.mutable_raw_data());
  std::memcpy(to, file.data() + header, tensor.size_bytes());
  for (int64_t i = 0; width > 1 && i < tensor.numel(); ++i) {
    std::reverse(to + i * width, to + (i + 1) * width);
  }
  return tensor;
}

}  // namespace interp
