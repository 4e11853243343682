#include "core/array/array_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "core/array/array_runtime.h"
#include "core/io/array_list.h"
#include "core/io/file.h"
#include "core/io/npz.h"

namespace interp {
namespace {

absl::StatusOr<ListedArray> ToList(const std::string& name, const Array& array) {
  ListedArray listed;
  listed.name = name;
  if (!array) return listed;
  if (array.is_rows()) {
    INTERP_ASSIGN_OR_RETURN(Array::Rows rows, array.ReadRows());
    listed.tensor = std::move(rows.values);
    listed.rows = std::move(rows.index);
  } else {
    INTERP_ASSIGN_OR_RETURN(listed.tensor, array.Read());
  }
  return listed;
}

absl::Status SaveNpz(const std::string& path, const ArrayList& list) {
  std::vector<NamedTensor> tensors;
  for (const ListedArray& array : list.arrays) {
    if (array.rows.has_value()) {
      return Unimplemented(path, ": array '", array.name, "' has rows, which .npz has not");
    }
    tensors.emplace_back(array.name, array.tensor);
  }
  return WriteNpz(path, tensors);
}

absl::StatusOr<Array> FromList(ArrayRuntime& runtime, const ListedArray& listed, Place place) {
  if (listed.rows.has_value()) return runtime.FromRows(listed.tensor, *listed.rows);
  if (listed.tensor.dtype == DType::kUndefined) return Array();
  return runtime.FromTensor(listed.tensor, place);
}

}  // namespace

absl::Status SaveArrays(const std::string& path, absl::Span<const NamedArray> arrays) {
  ArrayList list;
  for (const auto& [name, array] : arrays) {
    list.named = list.named || !name.empty();
    absl::StatusOr<ListedArray> listed = ToList(name, array);
    if (!listed.ok()) return Annotate(listed.status(), absl::StrCat("array '", name, "'"));
    list.arrays.push_back(*std::move(listed));
  }
  return absl::EndsWith(path, ".npz") ? SaveNpz(path, list) : WriteArrayList(path, list);
}

absl::StatusOr<std::vector<NamedArray>> LoadArrays(ArrayRuntime& runtime, const std::string& path,
                                                   Place place) {
  ArrayList list;
  bool is_archive = false;
  {
    INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    is_archive = absl::StartsWith(file->bytes(), "PK");
  }
  if (is_archive) {
    INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors, ReadNpz(path));
    for (auto& [name, tensor] : tensors) {
      list.arrays.push_back({.name = std::move(name), .tensor = std::move(tensor), .rows = {}});
    }
  } else {
    INTERP_ASSIGN_OR_RETURN(list, ReadArrayList(path));
  }
  std::vector<NamedArray> arrays;
  for (const ListedArray& listed : list.arrays) {
    absl::StatusOr<Array> array = FromList(runtime, listed, place);
    if (!array.ok()) return Annotate(array.status(), absl::StrCat(path, ": ", listed.name));
    arrays.emplace_back(listed.name, *std::move(array));
  }
  return arrays;
}

}  // namespace interp
