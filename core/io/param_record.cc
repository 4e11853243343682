#include "core/io/param_record.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/types/span.h"
#include "core/buffer.h"
#include "proto/framework.pb.h"

namespace interp {
namespace {

using TensorDesc = proto::VarType::TensorDesc;

// Offsets start at 0 and do not descend; each level ends where the next one has its last entry,
// the lowest one at the first dim.
absl::Status CheckLod(const ParamRecord& record) {
  for (size_t i = 0; i < record.lod.size(); ++i) {
    const std::vector<int64_t>& level = record.lod[i];
    const bool lowest = i + 1 == record.lod.size();
    if (lowest && record.shape.rank() == 0) {
      return DataLoss("byte ", record.offset, ": a LoD on a tensor without dims");
    }
    const int64_t end =
        lowest ? record.shape[0] : static_cast<int64_t>(record.lod[i + 1].size()) - 1;
    if (level.size() < 2 || level.front() != 0 || level.back() != end ||
        !std::is_sorted(level.begin(), level.end())) {
      return DataLoss("byte ", record.offset, ": LoD level ", i,
                      " is not a list of offsets from 0 to ", end);
    }
  }
  return absl::OkStatus();
}

// Each value has its row, and each row lies below the height.
absl::Status CheckIndex(const RowIndex& index, const ParamRecord& record) {
  const auto count = static_cast<int64_t>(index.rows.size());
  if (record.shape.rank() == 0 || record.shape[0] != count) {
    return DataLoss("byte ", record.offset, ": ", count, " selected rows with values of shape ",
                    ToString(record.shape));
  }
  for (const int64_t row : index.rows) {
    if (row < 0 || row >= index.height) {
      return DataLoss("byte ", record.offset, ": selected row ", row,
                      " of a tensor with a height of ", index.height);
    }
  }
  return absl::OkStatus();
}

template <typename T>
void AppendNumber(T value, std::string& to) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

absl::Status CheckWritable(const Tensor& tensor) {
  if (SizeOf(tensor.dtype) == 0) return InvalidArgument("the tensor has no dtype");
  if (tensor.numel() > 0 && !tensor.has_memory()) {
    return InvalidArgument("a tensor of ", DescribeType(tensor), " has no memory to write");
  }
  return absl::OkStatus();
}

// Version, description and elements after `head`. REQUIRES: CheckWritable.
absl::Status AppendValues(std::string head, const Tensor& tensor, FileWriter& out) {
  if (tensor.layout != Layout::kPlain) {
    INTERP_ASSIGN_OR_RETURN(const Tensor plain, tensor.Clone(SystemAllocator()));
    return AppendValues(std::move(head), plain, out);
  }
  TensorDesc desc;
  desc.set_data_type(static_cast<proto::VarType::Type>(tensor.dtype));
  for (const int64_t dim : tensor.shape) desc.add_dims(dim);
  AppendNumber(uint32_t{0}, head);
  AppendNumber(static_cast<int32_t>(desc.ByteSizeLong()), head);
  desc.AppendToString(&head);
  INTERP_RETURN_IF_ERROR(out.Append(head));
  return out.Append({static_cast<const char*>(tensor.raw_data()), tensor.size_bytes()});
}

}  // namespace

absl::StatusOr<ParamRecord> ParamRecordReader::Next() {
  ParamRecord record;
  record.offset = position_;
  INTERP_RETURN_IF_ERROR(ReadVersion("LoD tensor"));
  INTERP_RETURN_IF_ERROR(ReadLod(&record.lod));
  INTERP_RETURN_IF_ERROR(ReadValues(&record));
  INTERP_RETURN_IF_ERROR(CheckLod(record));
  return record;
}

absl::StatusOr<ParamRecord> ParamRecordReader::NextRows(RowIndex& index) {
  ParamRecord record;
  record.offset = position_;
  INTERP_RETURN_IF_ERROR(ReadVersion("selected rows"));
  INTERP_RETURN_IF_ERROR(ReadIndex(index));
  INTERP_RETURN_IF_ERROR(ReadValues(&record));
  INTERP_RETURN_IF_ERROR(CheckIndex(index, record));
  return record;
}

absl::Status ParamRecordReader::ReadValues(ParamRecord* record) {
  INTERP_RETURN_IF_ERROR(ReadVersion("tensor"));
  INTERP_RETURN_IF_ERROR(ReadDesc(record));
  record->data_offset = position_;
  const uint64_t size_bytes = record->size_bytes();
  if (size_bytes > left()) {
    return DataLoss("byte ", position_, ": ", Name(record->dtype), ToString(record->shape),
                    " needs ", size_bytes, " bytes, but only ", left(), " are left");
  }
  position_ += size_bytes;
  return absl::OkStatus();
}

absl::Status ParamRecordReader::Fail(size_t at, absl::string_view what) const {
  return DataLoss("byte ", at, ": ", what);
}

template <typename T>
absl::Status ParamRecordReader::Read(T* value, absl::string_view what) {
  static_assert(std::is_integral_v<T>);
  if (left() < sizeof(T)) return Fail(position_, absl::StrCat("the file ends within ", what));
  std::memcpy(value, file_.data() + position_, sizeof(T));  // little endian, as the machine
  position_ += sizeof(T);
  return absl::OkStatus();
}

absl::Status ParamRecordReader::ReadVersion(absl::string_view of) {
  uint32_t version = 0;
  INTERP_RETURN_IF_ERROR(Read(&version, absl::StrCat("the ", of, " version")));
  if (version == 0) return absl::OkStatus();
  return Fail(position_ - sizeof(version),
              absl::StrCat(of, " version is ", version, ", expected 0; not a parameter file?"));
}

absl::Status ParamRecordReader::ReadLod(Lod* lod) {
  uint64_t num_levels = 0;
  INTERP_RETURN_IF_ERROR(Read(&num_levels, "the number of LoD levels"));
  if (num_levels > left() / sizeof(uint64_t)) {
    return Fail(position_ - sizeof(num_levels),
                absl::StrCat(num_levels, " LoD levels do not fit into the file"));
  }
  for (uint64_t i = 0; i < num_levels; ++i) {
    uint64_t size_bytes = 0;
    INTERP_RETURN_IF_ERROR(Read(&size_bytes, "the size of a LoD level"));
    if (size_bytes > left() || size_bytes % sizeof(uint64_t) != 0) {
      return Fail(position_ - sizeof(size_bytes),
                  absl::StrCat("a LoD level of ", size_bytes, " bytes, but ", left(), " are left"));
    }
    std::vector<int64_t>& level = lod->emplace_back(size_bytes / sizeof(uint64_t));
    std::copy_n(file_.data() + position_, size_bytes, reinterpret_cast<char*>(level.data()));
    position_ += size_bytes;
  }
  return absl::OkStatus();
}

absl::Status ParamRecordReader::ReadDesc(ParamRecord* record) {
  int32_t size_bytes = 0;
  INTERP_RETURN_IF_ERROR(Read(&size_bytes, "the size of the description"));
  if (size_bytes < 0 || static_cast<size_t>(size_bytes) > left()) {
    return Fail(position_ - sizeof(size_bytes),
                absl::StrCat("a description of ", size_bytes, " bytes, but ", left(), " are left"));
  }
  TensorDesc desc;
  if (!desc.ParsePartialFromArray(file_.data() + position_, size_bytes)) {
    return Fail(position_, "the description is damaged");
  }
  const std::optional<DType> dtype =
      desc.has_data_type() ? DTypeFromCode(desc.data_type()) : std::nullopt;
  if (!dtype.has_value()) return Fail(position_, "the description has no known element type");
  record->dtype = *dtype;
  if (desc.dims_size() > kMaxRank) {
    return Fail(position_, absl::StrCat(desc.dims_size(), " dims, the most is ", kMaxRank));
  }
  record->shape = Shape(absl::MakeConstSpan(desc.dims().data(), desc.dims_size()));
  if (!record->shape.CheckedNumel().has_value()) {
    return Fail(position_,
                absl::StrCat("dims ", ToString(record->shape), " are negative or too large"));
  }
  position_ += static_cast<size_t>(size_bytes);
  return absl::OkStatus();
}

absl::Status ParamRecordReader::ReadIndex(RowIndex& index) {
  uint64_t count = 0;
  INTERP_RETURN_IF_ERROR(Read(&count, "the number of selected rows"));
  if (count > left() / sizeof(int64_t)) {
    return Fail(position_ - sizeof(count),
                absl::StrCat(count, " selected rows do not fit into the file"));
  }
  index.rows.resize(count);
  std::copy_n(file_.data() + position_, count * sizeof(int64_t),
              reinterpret_cast<char*>(index.rows.data()));
  position_ += count * sizeof(int64_t);
  return Read(&index.height, "the height of selected rows");
}

void CopyElements(const ParamRecord& record, absl::string_view file, int64_t first, Tensor& out) {
  const char* const from =
      file.data() + record.data_offset + static_cast<size_t>(first) * SizeOf(record.dtype);
  char* const to = static_cast<char*>(out.mutable_raw_data());
  std::copy_n(from, out.size_bytes(), to);
  // A bool may only be 0 or 1, in a file it may be anything.
  if (record.dtype == DType::kBool) {
    for (size_t i = 0; i < out.size_bytes(); ++i) to[i] = static_cast<char>(to[i] != 0);
  }
}

absl::Status AppendRecord(const Tensor& tensor, FileWriter& out) {
  INTERP_RETURN_IF_ERROR(CheckWritable(tensor));
  std::string head;
  AppendNumber(uint32_t{0}, head);
  AppendNumber(uint64_t{tensor.lod.size()}, head);
  for (const std::vector<int64_t>& level : tensor.lod) {
    AppendNumber(uint64_t{level.size() * sizeof(uint64_t)}, head);
    for (const int64_t offset : level) AppendNumber(offset, head);
  }
  return AppendValues(std::move(head), tensor, out);
}

absl::Status AppendRowsRecord(const RowIndex& index, const Tensor& values, FileWriter& out) {
  INTERP_RETURN_IF_ERROR(CheckWritable(values));
  std::string head;
  AppendNumber(uint32_t{0}, head);
  AppendNumber(uint64_t{index.rows.size()}, head);
  for (const int64_t row : index.rows) AppendNumber(row, head);
  AppendNumber(index.height, head);
  return AppendValues(std::move(head), values, out);
}

}  // namespace interp
