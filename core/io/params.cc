#include "core/io/params.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/annotate.h"
#include "core/base/quoted.h"
#include "core/constant_elements.h"
#include "core/io/file.h"
#include "core/storage/aligned_memory.h"
#include "core/storage/lasting_memory.h"

namespace interp {
namespace {

// --- reading ---

// Whose memory records are in.
enum class Source : bool { kMappedFile, kCaller };

// Whether the elements may stay where the file has them, aligned or not: kernels that have forms of
// their own of a constant have them of matrices.
bool StaysInFile(const Tensor& tensor, const ParamDecl& param) {
  constexpr size_t kLarge = size_t{1} << 16;  // bytes
  const bool converted = param.dtype != DType::kUndefined && param.dtype != tensor.dtype;
  const auto longest = std::max_element(tensor.shape.begin(), tensor.shape.end());
  const bool is_matrix = longest != tensor.shape.end() && *longest < tensor.numel();
  return tensor.dtype == DType::kFloat32 && !converted && is_matrix &&
         tensor.size_bytes() >= kLarge;
}

// The tensor of a record: in `file` when aligned, or when it stays there, else copied.
absl::StatusOr<Tensor> TensorOf(const ParamRecord& record, const BufferRef& file, Source source,
                                const ParamDecl& param) {
  Tensor tensor;
  tensor.dtype = record.dtype;
  tensor.shape = record.shape;
  tensor.lod = record.lod;
  char* const data = static_cast<char*>(file->data) + record.data_offset;
  tensor.SetMemory(file, data);
  if (file->in_file && StaysInFile(tensor, param)) return tensor;
  // A bool may only be 0 or 1, in a file it may be anything.
  if (record.dtype != DType::kBool && IsAligned(tensor)) return tensor;
  tensor.DropMemory();
  INTERP_RETURN_IF_ERROR(tensor.Allocate(LastingAllocator()));
  PopulatePages(tensor.mutable_raw_data(), tensor.size_bytes());
  CopyElements(record, {static_cast<const char*>(file->data), file->size_bytes}, 0, tensor);
  if (source == Source::kMappedFile) DropFilePages(data, tensor.size_bytes());
  return tensor;
}

absl::StatusOr<NamedTensor> ReadOne(ParamRecordReader& reader, const BufferRef& file, Source source,
                                    const ParamDecl& param) {
  const size_t offset = reader.position();
  const auto annotate = [&](const absl::Status& status) {
    return Annotate(status, absl::StrCat("parameter ", Quoted(param.name), " at byte ", offset));
  };
  const absl::StatusOr<ParamRecord> record = reader.Next();
  if (!record.ok()) return annotate(record.status());
  // Before there is memory for what a file claims to hold.
  const absl::Status taken = CheckTaken(record->dtype, record->shape, record->lod, param);
  if (!taken.ok()) return annotate(taken);
  absl::StatusOr<Tensor> tensor = TensorOf(*record, file, source, param);
  if (tensor.ok()) tensor = AsDeclared(*std::move(tensor), param);
  if (!tensor.ok()) return annotate(tensor.status());
  return NamedTensor(param.name, *std::move(tensor));
}

// A name is a path below the folder; one that leaves it is an attack.
bool StaysInFolder(absl::string_view name) {
  if (name.empty() || name.front() == '/') return false;
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return false;
  }
  return true;
}

absl::StatusOr<std::vector<NamedTensor>> ReadRecords(const BufferRef& file, Source source,
                                                     absl::Span<const ParamDecl> params) {
  ParamRecordReader reader({static_cast<const char*>(file->data), file->size_bytes});
  std::vector<NamedTensor> tensors;
  for (const ParamDecl& param : params) {
    if (reader.at_end()) {
      return InvalidArgument("byte ", reader.position(), ": the file ends before parameter ",
                             Quoted(param.name), ", ", tensors.size() + 1, " of ", params.size());
    }
    INTERP_ASSIGN_OR_RETURN(NamedTensor tensor, ReadOne(reader, file, source, param));
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

absl::StatusOr<std::vector<NamedTensor>> ReadFile(const std::string& path,
                                                  absl::Span<const ParamDecl> params,
                                                  ParamMemory memory) {
  INTERP_ASSIGN_OR_RETURN(const BufferRef file, MapAsBuffer(path));
  file->in_file = memory == ParamMemory::kFile;
  return Annotate(ReadRecords(file, Source::kMappedFile, params), path);
}

absl::StatusOr<std::vector<NamedTensor>> ReadFolder(const std::string& folder,
                                                    absl::Span<const ParamDecl> params,
                                                    ParamMemory memory) {
  std::vector<NamedTensor> tensors;
  tensors.reserve(params.size());
  for (const ParamDecl& param : params) {
    if (!StaysInFolder(param.name)) {
      return InvalidArgument(folder, ": ", Quoted(param.name), " is no name for a file in it");
    }
    INTERP_ASSIGN_OR_RETURN(
        std::vector<NamedTensor> tensor,
        ReadFile(absl::StrCat(folder, "/", param.name), absl::MakeConstSpan(&param, 1), memory));
    tensors.push_back(std::move(tensor.front()));
  }
  return tensors;
}

}  // namespace

absl::StatusOr<BufferRef> MapAsBuffer(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return BorrowBuffer(file->mutable_data(), file->bytes().size(), /*writable=*/false,
                      [file] { (void)file; });
}

absl::StatusOr<std::vector<NamedTensor>> ParseCombinedParams(const BufferRef& file,
                                                             absl::Span<const ParamDecl> params) {
  return ReadRecords(file, Source::kCaller, params);
}

absl::StatusOr<std::vector<NamedTensor>> ReadParams(const std::string& path,
                                                    absl::Span<const ParamDecl> params,
                                                    ParamMemory memory) {
  struct stat info;
  const bool is_folder = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return is_folder ? ReadFolder(path, params, memory) : ReadFile(path, params, memory);
}

absl::StatusOr<std::vector<ParamRecord>> ParseParamRecords(absl::string_view file) {
  std::vector<ParamRecord> records;
  for (ParamRecordReader reader(file); !reader.at_end();) {
    absl::StatusOr<ParamRecord> record = reader.Next();
    if (!record.ok()) {
      return Annotate(record.status(), absl::StrCat("record #", records.size()));
    }
    records.push_back(*std::move(record));
  }
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
