#include "core/io/params.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/io/array_elements.h"
#include "core/io/file.h"
#include "proto/framework.pb.h"

namespace interp {
namespace {

using TensorDesc = proto::VarType::TensorDesc;

std::string Quoted(absl::string_view name) {
  return absl::StrCat("'", absl::Utf8SafeCEscape(name), "'");
}

// --- records ---

// Reads records one after the other. Messages of errors start with the byte offset.
class RecordReader {
 public:
  explicit RecordReader(absl::string_view file) : file_(file) {}

  bool at_end() const { return position_ == file_.size(); }
  size_t position() const { return position_; }

  absl::StatusOr<ParamRecord> Next() {
    ParamRecord record;
    record.offset = position_;
    INTERP_RETURN_IF_ERROR(ReadVersion("LoD tensor"));
    INTERP_RETURN_IF_ERROR(ReadLod(&record.lod));
    INTERP_RETURN_IF_ERROR(ReadVersion("tensor"));
    INTERP_RETURN_IF_ERROR(ReadDesc(&record));
    INTERP_RETURN_IF_ERROR(CheckLod(record));
    record.data_offset = position_;
    const uint64_t size_bytes = record.size_bytes();
    if (size_bytes > left()) {
      return DataLoss("byte ", position_, ": ", Name(record.dtype), ToString(record.shape),
                      " needs ", size_bytes, " bytes, but only ", left(), " are left");
    }
    position_ += size_bytes;
    return record;
  }

 private:
  size_t left() const { return file_.size() - position_; }

  absl::Status Fail(size_t at, absl::string_view what) const {
    return DataLoss("byte ", at, ": ", what);
  }

  template <typename T>
  absl::Status Read(T* value, absl::string_view what) {
    static_assert(std::is_integral_v<T>);
    if (left() < sizeof(T)) return Fail(position_, absl::StrCat("the file ends within ", what));
    std::memcpy(value, file_.data() + position_, sizeof(T));  // little endian, as the machine
    position_ += sizeof(T);
    return absl::OkStatus();
  }

  absl::Status ReadVersion(absl::string_view of) {
    uint32_t version = 0;
    INTERP_RETURN_IF_ERROR(Read(&version, absl::StrCat("the ", of, " version")));
    if (version == 0) return absl::OkStatus();
    return Fail(position_ - sizeof(version),
                absl::StrCat(of, " version is ", version, ", expected 0; not a parameter file?"));
  }

  absl::Status ReadLod(Lod* lod) {
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
        return Fail(
            position_ - sizeof(size_bytes),
            absl::StrCat("a LoD level of ", size_bytes, " bytes, but ", left(), " are left"));
      }
      std::vector<int64_t>& level = lod->emplace_back(size_bytes / sizeof(uint64_t));
      std::copy_n(file_.data() + position_, size_bytes, reinterpret_cast<char*>(level.data()));
      position_ += size_bytes;
    }
    return absl::OkStatus();
  }

  absl::Status ReadDesc(ParamRecord* record) {
    int32_t size_bytes = 0;
    INTERP_RETURN_IF_ERROR(Read(&size_bytes, "the size of the description"));
    if (size_bytes < 0 || static_cast<size_t>(size_bytes) > left()) {
      return Fail(
          position_ - sizeof(size_bytes),
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

  // Offsets start at 0 and do not descend; each level ends where the next one has its last entry,
  // the lowest one at the first dim.
  static absl::Status CheckLod(const ParamRecord& record) {
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

  absl::string_view file_;
  size_t position_ = 0;
};

// --- reading ---

// The tensor of a record: in `file` when aligned, else copied.
absl::StatusOr<Tensor> TensorOf(const ParamRecord& record, const BufferRef& file) {
  Tensor tensor;
  tensor.dtype = record.dtype;
  tensor.shape = record.shape;
  tensor.lod = record.lod;
  char* data = static_cast<char*>(file->data) + record.data_offset;
  // A bool may only be 0 or 1, in a file it may be anything.
  const bool ready = record.dtype != DType::kBool &&
                     reinterpret_cast<uintptr_t>(data) % UnitBytes(record.dtype) == 0;
  if (ready) {
    tensor.SetMemory(file, data);
    return tensor;
  }
  INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  char* out = static_cast<char*>(tensor.mutable_raw_data());
  std::memcpy(out, data, record.size_bytes());
  if (record.dtype == DType::kBool) {
    for (uint64_t i = 0; i < record.size_bytes(); ++i) out[i] = out[i] != 0;
  }
  return tensor;
}

absl::StatusOr<NamedTensor> ReadOne(RecordReader& reader, const BufferRef& file,
                                    const ParamDecl& param) {
  const size_t offset = reader.position();
  const auto annotate = [&](const absl::Status& status) {
    return Annotate(status, absl::StrCat("parameter ", Quoted(param.name), " at byte ", offset));
  };
  const absl::StatusOr<ParamRecord> record = reader.Next();
  if (!record.ok()) return annotate(record.status());
  const absl::Status declared = CheckDeclared(record->dtype, record->shape, param);
  if (!declared.ok()) return annotate(declared);
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, TensorOf(*record, file));
  return NamedTensor(param.name, std::move(tensor));
}

// A name is a path below the folder; one that leaves it is an attack.
bool StaysInFolder(absl::string_view name) {
  if (name.empty() || name.front() == '/') return false;
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return false;
  }
  return true;
}

absl::StatusOr<std::vector<NamedTensor>> ReadFolder(const std::string& folder,
                                                    absl::Span<const ParamDecl> params) {
  std::vector<NamedTensor> tensors;
  tensors.reserve(params.size());
  for (const ParamDecl& param : params) {
    if (!StaysInFolder(param.name)) {
      return InvalidArgument(folder, ": ", Quoted(param.name), " is no name for a file in it");
    }
    const std::string path = absl::StrCat(folder, "/", param.name);
    INTERP_ASSIGN_OR_RETURN(const BufferRef file, MapAsBuffer(path));
    absl::StatusOr<std::vector<NamedTensor>> tensor =
        ParseCombinedParams(file, absl::MakeConstSpan(&param, 1));
    if (!tensor.ok()) return Annotate(tensor.status(), path);
    tensors.push_back(std::move(tensor->front()));
  }
  return tensors;
}

// --- writing ---

absl::Status AppendRecord(const Tensor& tensor, FileWriter& out) {
  if (SizeOf(tensor.dtype) == 0) return InvalidArgument("the tensor has no dtype");
  if (tensor.numel() > 0 && !tensor.has_memory()) return InvalidArgument("it has no memory");
  if (tensor.layout != Layout::kPlain) {
    INTERP_ASSIGN_OR_RETURN(const Tensor plain, tensor.Clone(SystemAllocator()));
    return AppendRecord(plain, out);
  }
  TensorDesc desc;
  desc.set_data_type(static_cast<proto::VarType::Type>(tensor.dtype));
  for (const int64_t dim : tensor.shape) desc.add_dims(dim);

  std::string head;
  const auto append = [&head](auto value) {
    head.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(uint32_t{0});
  append(uint64_t{tensor.lod.size()});
  for (const std::vector<int64_t>& level : tensor.lod) {
    append(uint64_t{level.size() * sizeof(uint64_t)});
    for (const int64_t offset : level) append(offset);
  }
  append(uint32_t{0});
  append(static_cast<int32_t>(desc.ByteSizeLong()));
  desc.AppendToString(&head);
  INTERP_RETURN_IF_ERROR(out.Append(head));
  return out.Append({static_cast<const char*>(tensor.raw_data()), tensor.size_bytes()});
}

}  // namespace

std::vector<ParamDecl> ParamsOf(const Program& program) {
  std::vector<ParamDecl> params;
  std::vector<bool> seen(program.names.size());
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (!var.persistable || var.kind != VarKind::kLodTensor || seen[var.id]) continue;
      seen[var.id] = true;
      params.push_back({program.NameOf(var.id), var.dtype, var.dims});
    }
  }
  std::sort(params.begin(), params.end(),
            [](const ParamDecl& a, const ParamDecl& b) { return a.name < b.name; });
  return params;
}

absl::Status CheckDeclared(DType dtype, const Shape& shape, const ParamDecl& param) {
  if (param.dtype == DType::kUndefined) return absl::OkStatus();
  const auto fits = [](int64_t found, int64_t declared) {
    return declared == -1 || declared == found;
  };
  if (dtype == param.dtype &&
      std::equal(shape.begin(), shape.end(), param.dims.begin(), param.dims.end(), fits)) {
    return absl::OkStatus();
  }
  return InvalidArgument("the file has ", Name(dtype), ToString(shape), ", the program declares ",
                         Name(param.dtype), "[", absl::StrJoin(param.dims, ","), "]");
}

absl::StatusOr<BufferRef> MapAsBuffer(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return BorrowBuffer(file->mutable_data(), file->bytes().size(), /*writable=*/false,
                      [file] { (void)file; });
}

absl::StatusOr<std::vector<NamedTensor>> ParseCombinedParams(const BufferRef& file,
                                                             absl::Span<const ParamDecl> params) {
  RecordReader reader({static_cast<const char*>(file->data), file->size_bytes});
  std::vector<NamedTensor> tensors;
  for (const ParamDecl& param : params) {
    if (reader.at_end()) {
      return InvalidArgument("byte ", reader.position(), ": the file ends before parameter ",
                             Quoted(param.name), ", ", tensors.size() + 1, " of ", params.size());
    }
    INTERP_ASSIGN_OR_RETURN(NamedTensor tensor, ReadOne(reader, file, param));
    tensors.push_back(std::move(tensor));
  }
  if (!reader.at_end()) {
    return InvalidArgument("byte ", reader.position(), ": ", file->size_bytes - reader.position(),
                           " bytes follow the last of ", params.size(), " parameters",
                           params.empty() ? "" : ", ",
                           params.empty() ? "" : Quoted(params.back().name));
  }
  return tensors;
}

absl::StatusOr<std::vector<NamedTensor>> ReadParams(const std::string& path,
                                                    absl::Span<const ParamDecl> params) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return ReadFolder(path, params);
  INTERP_ASSIGN_OR_RETURN(const BufferRef file, MapAsBuffer(path));
  absl::StatusOr<std::vector<NamedTensor>> tensors = ParseCombinedParams(file, params);
  if (!tensors.ok()) return Annotate(tensors.status(), path);
  return tensors;
}

absl::StatusOr<std::vector<ParamRecord>> ParseParamRecords(absl::string_view file) {
  std::vector<ParamRecord> records;
  for (RecordReader reader(file); !reader.at_end();) {
    absl::StatusOr<ParamRecord> record = reader.Next();
    if (!record.ok()) {
      return Annotate(record.status(), absl::StrCat("record #", records.size()));
    }
    records.push_back(*std::move(record));
  }
  return records;
}

absl::StatusOr<std::vector<ParamRecord>> ListParams(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  absl::StatusOr<std::vector<ParamRecord>> records = ParseParamRecords(file->bytes());
  if (!records.ok()) return Annotate(records.status(), path);
  return records;
}

absl::Status WriteCombinedParams(const std::string& path, absl::Span<const NamedTensor> params) {
  std::vector<const NamedTensor*> sorted;
  for (const NamedTensor& param : params) sorted.push_back(&param);
  std::sort(sorted.begin(), sorted.end(),
            [](const NamedTensor* a, const NamedTensor* b) { return a->first < b->first; });
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto& [name, tensor] = *sorted[i];
    const bool twice = i > 0 && sorted[i - 1]->first == name;
    const absl::Status status =
        twice ? InvalidArgument("it appears twice") : AppendRecord(tensor, file);
    if (!status.ok()) return Annotate(status, absl::StrCat(path, ": parameter ", Quoted(name)));
  }
  return file.Commit();
}

}  // namespace interp
