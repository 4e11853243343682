#include "core/io/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/io/file.h"

namespace interp {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kDataAlignment = 64;  // of the elements within the file, as NumPy pads

// --- dtypes ---

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

// Size of the unit whose bytes are in one order: the real number, also for complex.
size_t UnitBytes(DType dtype) {
  const bool complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  return SizeOf(dtype) / (complex ? 2 : 1);
}

// --- the header, a Python dictionary ---

// Parses "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".
class HeaderParser {
 public:
  // `base` is the offset of `text` in the file.
  HeaderParser(absl::string_view text, size_t base) : text_(text), base_(base) {}

  absl::Status Parse(NpyHeader* header) {
    if (!Take('{')) return Expected("'{'");
    while (!Take('}')) {
      std::string key;
      INTERP_RETURN_IF_ERROR(ParseString(&key));
      if (!Take(':')) return Expected("':'");
      INTERP_RETURN_IF_ERROR(ParseValue(key, header));
      if (!Take(',') && Peek() != '}') return Expected("',' or '}'");
    }
    if (Peek() != '\0' || position_ != text_.size()) return Expected("the end of the header");
    if (seen_ != kDescr + kOrder + kShape) {
      return Fail("the header lacks one of 'descr', 'fortran_order' and 'shape'");
    }
    return absl::OkStatus();
  }

 private:
  enum Key { kDescr = 1, kOrder = 2, kShape = 4 };

  absl::Status ParseValue(absl::string_view key, NpyHeader* header) {
    const Key id = key == "descr" ? kDescr : key == "fortran_order" ? kOrder : kShape;
    if (id == kShape && key != "shape") {
      return Fail(absl::StrCat("unknown key '", absl::Utf8SafeCEscape(key), "'"));
    }
    if ((seen_ & id) != 0) return Fail(absl::StrCat("key '", key, "' appears twice"));
    seen_ |= id;
    if (id == kDescr) return ParseDescr(header);
    if (id == kShape) return ParseShape(&header->shape);
    header->fortran_order = TakeWord("True");
    return header->fortran_order || TakeWord("False") ? absl::OkStatus()
                                                      : Expected("True or False");
  }

  absl::Status ParseDescr(NpyHeader* header) {
    if (Peek() == '[') return absl::UnimplementedError("arrays of records are not supported");
    std::string descr;
    INTERP_RETURN_IF_ERROR(ParseString(&descr));
    absl::string_view kind = descr;
    if (!kind.empty() && absl::StrContains("<>|=", kind.substr(0, 1))) {
      header->big_endian = kind[0] == '>';
      kind.remove_prefix(1);
    }
    for (const DescrRow& row : kDescrs) {
      if (row.descr == kind) {
        header->dtype = row.dtype;
        return absl::OkStatus();
      }
    }
    return Unimplemented("arrays of type '", absl::Utf8SafeCEscape(descr), "' are not supported");
  }

  absl::Status ParseShape(Shape* shape) {
    if (!Take('(')) return Expected("'('");
    while (!Take(')')) {
      int64_t dim = 0;
      INTERP_RETURN_IF_ERROR(ParseInteger(&dim));
      if (shape->rank() == kMaxRank) {
        return Fail(absl::StrCat("the array has more than ", kMaxRank, " dims"));
      }
      shape->push_back(dim);
      if (!Take(',') && Peek() != ')') return Expected("',' or ')'");
    }
    return absl::OkStatus();
  }

  absl::Status ParseInteger(int64_t* value) {
    Peek();
    const size_t begin = position_;
    while (position_ < text_.size() && absl::ascii_isdigit(text_[position_])) ++position_;
    const absl::string_view digits = text_.substr(begin, position_ - begin);
    if (digits.empty()) return Expected("a dim");
    if (!absl::SimpleAtoi(digits, value)) return Fail("a dim does not fit into 64 bits");
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // Python 2
    return absl::OkStatus();
  }

  absl::Status ParseString(std::string* value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Expected("a string");
    const size_t end = text_.find(quote, position_ + 1);
    if (end == absl::string_view::npos) return Fail("a string does not end");
    *value = std::string(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return absl::OkStatus();
  }

  // The next character that is no white space, '\0' at the end.
  char Peek() {
    while (position_ < text_.size() && absl::ascii_isspace(text_[position_])) ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++position_;
    return true;
  }
  bool TakeWord(absl::string_view word) {
    Peek();
    if (!absl::StartsWith(text_.substr(position_), word)) return false;
    position_ += word.size();
    return true;
  }

  absl::Status Fail(absl::string_view what) const {
    return InvalidArgument("byte ", base_ + position_, ": ", what);
  }
  absl::Status Expected(absl::string_view what) const {
    if (position_ == text_.size()) return Fail(absl::StrCat("the header ends before ", what));
    return Fail(absl::StrCat("found '", absl::Utf8SafeCEscape(text_.substr(position_, 1)),
                             "', expected ", what));
  }

  absl::string_view text_;
  size_t base_;
  size_t position_ = 0;
  int seen_ = 0;  // set of Key
};

uint32_t LittleEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  }
  return value;
}

// --- elements ---

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

void CopyFromFortran(const char* src, const NpyHeader& header, char* dst) {
  switch (SizeOf(header.dtype)) {
    case 1:
      return CopyFromFortran<1>(src, header.shape, dst);
    case 2:
      return CopyFromFortran<2>(src, header.shape, dst);
    case 4:
      return CopyFromFortran<4>(src, header.shape, dst);
    case 8:
      return CopyFromFortran<8>(src, header.shape, dst);
    case 16:
      return CopyFromFortran<16>(src, header.shape, dst);
  }
}

// Any non-zero byte of a bool array means true; a C++ bool may only be 0 or 1.
void NormalizeBools(char* data, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; ++i) data[i] = data[i] != 0;
}

// The header of a whole file, with the elements checked to be there and nothing behind them.
absl::StatusOr<NpyHeader> ParseWhole(absl::string_view file) {
  INTERP_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(file));
  const size_t expected = static_cast<size_t>(header.shape.numel()) * SizeOf(header.dtype);
  const size_t found = file.size() - header.data_offset;
  if (found != expected) {
    return DataLoss("byte ", header.data_offset, ": ", found, " bytes of elements, expected ",
                    expected, " for ", Name(header.dtype), ToString(header.shape));
  }
  return header;
}

Tensor TensorOf(const NpyHeader& header) {
  Tensor tensor;
  tensor.dtype = header.dtype;
  tensor.shape = header.shape;
  return tensor;
}

absl::StatusOr<std::string> FormatHeader(const Tensor& tensor) {
  const auto* row = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                 [&](const DescrRow& r) { return r.dtype == tensor.dtype; });
  if (row == std::end(kDescrs)) {
    return Unimplemented("a tensor of ", Name(tensor.dtype), " cannot be stored as .npy");
  }
  std::string text =
      absl::StrCat("{'descr': '", UnitBytes(tensor.dtype) == 1 ? "|" : "<", row->descr,
                   "', 'fortran_order': False, 'shape': (", absl::StrJoin(tensor.shape, ", "),
                   tensor.shape.rank() == 1 ? ",), }" : "), }");
  constexpr size_t kPrefixBytes = 10;  // magic, version, length
  const size_t used = kPrefixBytes + text.size() + 1;
  text.append((kDataAlignment - used % kDataAlignment) % kDataAlignment, ' ');
  text.push_back('\n');
  const char head[] = {1, 0, static_cast<char>(text.size() & 0xff),
                       static_cast<char>(text.size() >> 8)};
  return absl::StrCat(kMagic, absl::string_view(head, sizeof(head)), text);
}

bool IsReadyToUse(const NpyHeader& header, const char* data) {
  const size_t unit = UnitBytes(header.dtype);
  return !(header.big_endian && unit > 1) && !(header.fortran_order && header.shape.rank() > 1) &&
         header.dtype != DType::kBool && reinterpret_cast<uintptr_t>(data) % unit == 0;
}

absl::StatusOr<Tensor> CopyElements(const NpyHeader& header, const char* data) {
  Tensor tensor = TensorOf(header);
  INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  char* out = static_cast<char*>(tensor.mutable_raw_data());
  if (header.fortran_order) {
    CopyFromFortran(data, header, out);
  } else {
    std::memcpy(out, data, tensor.size_bytes());
  }
  if (header.big_endian) SwapBytes(out, tensor.size_bytes(), UnitBytes(header.dtype));
  if (header.dtype == DType::kBool) NormalizeBools(out, tensor.size_bytes());
  return tensor;
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes) {
  constexpr size_t kVersionOffset = 6;
  constexpr size_t kLengthOffset = 8;
  if (!absl::StartsWith(bytes, kMagic)) return InvalidArgument("byte 0: no .npy file");
  if (bytes.size() < kLengthOffset) return DataLoss("byte ", bytes.size(), ": the file ends here");
  const int version = static_cast<unsigned char>(bytes[kVersionOffset]);
  if (version < 1 || version > 3 || bytes[kVersionOffset + 1] != 0) {
    return Unimplemented("byte ", kVersionOffset, ": format version ", version, ".",
                         static_cast<int>(static_cast<unsigned char>(bytes[kVersionOffset + 1])),
                         ", expected 1.0 to 3.0");
  }
  const size_t text_offset = kLengthOffset + (version == 1 ? 2 : 4);
  if (bytes.size() < text_offset) return DataLoss("byte ", bytes.size(), ": the file ends here");
  const size_t length = LittleEndian(bytes.substr(kLengthOffset, text_offset - kLengthOffset));
  if (length > bytes.size() - text_offset) {
    return DataLoss("byte ", kLengthOffset, ": a header of ", length, " bytes, but only ",
                    bytes.size() - text_offset, " are left");
  }
  NpyHeader header;
  INTERP_RETURN_IF_ERROR(
      HeaderParser(bytes.substr(text_offset, length), text_offset).Parse(&header));
  if (!header.shape.CheckedNumel().has_value()) {
    return InvalidArgument("shape ", ToString(header.shape), " is too large for memory");
  }
  header.data_offset = text_offset + length;
  return header;
}

absl::StatusOr<Tensor> ParseNpy(absl::string_view file) {
  INTERP_ASSIGN_OR_RETURN(const NpyHeader header, ParseWhole(file));
  return CopyElements(header, file.data() + header.data_offset);
}

absl::StatusOr<Tensor> ParseNpy(BufferRef file) {
  char* bytes = static_cast<char*>(file->data);
  INTERP_ASSIGN_OR_RETURN(const NpyHeader header, ParseWhole({bytes, file->size_bytes}));
  char* data = bytes + header.data_offset;
  if (!IsReadyToUse(header, data)) return CopyElements(header, data);
  Tensor tensor = TensorOf(header);
  tensor.SetMemory(std::move(file), data);
  return tensor;
}

absl::StatusOr<NpyParts> FormatNpy(const Tensor& tensor) {
  NpyParts parts;
  parts.elements = tensor;
  if (tensor.numel() > 0 && !tensor.has_memory()) {
    return InvalidArgument("the tensor to write has no memory");
  }
  if (tensor.layout != Layout::kPlain) {
    INTERP_ASSIGN_OR_RETURN(parts.elements, tensor.Clone(SystemAllocator()));
  }
  INTERP_ASSIGN_OR_RETURN(parts.header, FormatHeader(tensor));
  return parts;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path, size_t max_bytes) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  if (file->bytes().size() > max_bytes) {
    return ResourceExhausted(path, ": has ", file->bytes().size(), " bytes, the limit is ",
                             max_bytes);
  }
  absl::StatusOr<Tensor> tensor = ParseNpy(file->bytes());
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  return tensor;
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  const absl::StatusOr<NpyParts> parts = FormatNpy(tensor);
  if (!parts.ok()) return Annotate(parts.status(), path);
  INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(writer.Append(parts->header));
  INTERP_RETURN_IF_ERROR(writer.Append(parts->element_bytes()));
  return writer.Commit();
}

}  // namespace interp
