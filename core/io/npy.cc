#include "core/io/npy.h"

#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "core/io/file.h"

namespace interp {
namespace {

constexpr absl::string_view kNpyMagic("\x93NUMPY", 6);
constexpr size_t kDataAlignment = 64;  // of the elements within the file, as NumPy pads

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
    return SetNumpyType(descr, header);
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

// The header of a whole file, with the elements checked to be there and nothing behind them.
absl::StatusOr<NpyHeader> ParseWhole(absl::string_view file) {
  INTERP_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(file));
  const size_t expected = header.size_bytes();
  const size_t found = file.size() - header.data_offset;
  if (found != expected) {
    return DataLoss("byte ", header.data_offset, ": ", found, " bytes of elements, expected ",
                    expected, " for ", Name(header.dtype), ToString(header.shape));
  }
  return header;
}

absl::StatusOr<std::string> FormatHeader(const Tensor& tensor) {
  const absl::string_view type = NumpyType(tensor.dtype);
  if (type.empty()) {
    return Unimplemented("a tensor of ", Name(tensor.dtype), " cannot be stored as .npy");
  }
  std::string text =
      absl::StrCat("{'descr': '", UnitBytes(tensor.dtype) == 1 ? "|" : "<", type,
                   "', 'fortran_order': False, 'shape': (", absl::StrJoin(tensor.shape, ", "),
                   tensor.shape.rank() == 1 ? ",), }" : "), }");
  constexpr size_t kPrefixBytes = 10;  // magic, version, length
  const size_t used = kPrefixBytes + text.size() + 1;
  text.append((kDataAlignment - used % kDataAlignment) % kDataAlignment, ' ');
  text.push_back('\n');
  const char head[] = {1, 0, static_cast<char>(text.size() & 0xff),
                       static_cast<char>(text.size() >> 8)};
  return absl::StrCat(kNpyMagic, absl::string_view(head, sizeof(head)), text);
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes) {
  constexpr size_t kVersionOffset = 6;
  constexpr size_t kLengthOffset = 8;
  if (!absl::StartsWith(bytes, kNpyMagic)) return InvalidArgument("byte 0: no .npy file");
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
  return ShareElements(header, std::move(file), data);
}

absl::StatusOr<NpyParts> FormatNpy(const Tensor& tensor) {
  NpyParts parts;
  parts.elements = tensor;
  if (tensor.numel() > 0 && !tensor.has_memory()) {
    return InvalidArgument("a tensor of ", DescribeType(tensor), " has no memory to write");
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
  return Annotate(ParseNpy(file->bytes()), path);
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  INTERP_ASSIGN_OR_RETURN(const NpyParts parts, Annotate(FormatNpy(tensor), path));
  INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(writer.Append(parts.header));
  INTERP_RETURN_IF_ERROR(writer.Append(parts.element_bytes()));
  return writer.Commit();
}

}  // namespace interp
