#include "core/io/npz.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "core/base/annotate.h"
#include "core/io/file.h"
#include "core/io/zip_reader.h"
#include "core/io/zip_writer.h"

namespace interp {
namespace {

constexpr absl::string_view kSuffix = ".npy";

absl::StatusOr<NamedTensor> ReadEntry(const ZipEntry& entry) {
  absl::string_view name = entry.name;
  const std::string place = absl::StrCat("entry '", absl::Utf8SafeCEscape(name), "'");
  if (!absl::ConsumeSuffix(&name, kSuffix)) return InvalidArgument(place, ": no .npy file");
  INTERP_ASSIGN_OR_RETURN(BufferRef content, ExtractZip(entry));
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, Annotate(ParseNpy(std::move(content)), place));
  return NamedTensor(std::string(name), std::move(tensor));
}

// Sums what entries claim; the sum of claims of an archive cannot overflow, see zip_reader.h.
absl::Status CheckClaims(const std::vector<ZipEntry>& entries, size_t max_bytes) {
  uint64_t claimed = 0;
  for (const ZipEntry& entry : entries) claimed += entry.size_bytes;
  if (claimed <= max_bytes) return absl::OkStatus();
  return ResourceExhausted("the arrays would take ", claimed, " bytes, the limit is ", max_bytes);
}

absl::Status Write(absl::Span<const NamedTensor> tensors, bool compress, FileWriter& file) {
  ZipWriter zip(file);
  absl::flat_hash_set<absl::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) return InvalidArgument("'", name, "' appears twice");
    INTERP_ASSIGN_OR_RETURN(const NpyParts parts,
                            Annotate(FormatNpy(tensor), absl::StrCat("'", name, "'")));
    INTERP_RETURN_IF_ERROR(
        zip.Add(absl::StrCat(name, kSuffix), {parts.header, parts.element_bytes()}, compress));
  }
  return zip.Finish();
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ParseNpz(absl::string_view file, size_t max_bytes) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ListZip(file));
  INTERP_RETURN_IF_ERROR(CheckClaims(entries, max_bytes));
  std::vector<NamedTensor> tensors;
  absl::flat_hash_set<std::string> names;
  for (const ZipEntry& entry : entries) {
    INTERP_ASSIGN_OR_RETURN(NamedTensor tensor, ReadEntry(entry));
    if (!names.insert(tensor.first).second) {
      return InvalidArgument("'", absl::Utf8SafeCEscape(tensor.first), "' appears twice");
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<std::vector<NamedTensor>> ReadNpz(const std::string& path, size_t max_bytes) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return Annotate(ParseNpz(file->bytes(), max_bytes), path);
}

absl::Status WriteNpz(const std::string& path, absl::Span<const NamedTensor> tensors,
                      bool compress) {
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  if (const absl::Status status = Write(tensors, compress, file); !status.ok()) {
    return Annotate(status, path);
  }
  return file.Commit();
}

}  // namespace interp
