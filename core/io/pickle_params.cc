#include "core/io/pickle_params.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/base/annotate.h"
#include "core/base/near_names.h"
#include "core/base/quoted.h"
#include "core/io/file.h"
#include "core/io/npz.h"
#include "core/io/pickle.h"

namespace interp {
namespace {

// Paddle's keys for what is no parameter (python/paddle/framework/io_utils.py).
constexpr absl::string_view kNamesKey = "StructuredToParameterName@@";
constexpr absl::string_view kSplitKey = "UnpackBigParamInfor@@";

class ParamCollector {
 public:
  ParamCollector(const Pickle& pickle, const BufferRef& file) : pickle_(pickle), file_(file) {}

  absl::StatusOr<std::vector<NamedTensor>> Collect() {
    const int32_t root = pickle_.root;
    if (pickle_.at(root).kind != PickleKind::kDict) {
      const std::optional<Named> one = NamedArray(root);
      if (!one.has_value()) return Fail(root, "no dict of parameters");
      INTERP_RETURN_IF_ERROR(Add(std::string(one->name), *one->array));
      return std::move(tensors_);
    }
    const std::vector<int32_t>& items = pickle_.ItemsOf(root);
    for (size_t i = 0; i < items.size(); i += 2) {
      INTERP_RETURN_IF_ERROR(AddEntry(items[i], items[i + 1]));
    }
    INTERP_RETURN_IF_ERROR(JoinSplit());
    return Rename();
  }

 private:
  struct Named {
    absl::string_view name;
    const PickleArray* array;
  };

  absl::Status Fail(int32_t value, absl::string_view what) const {
    return InvalidArgument("byte ", pickle_.at(value).offset, ": ", what);
  }

  // (name, array)
  std::optional<Named> NamedArray(int32_t value) const {
    const std::vector<int32_t>& items = pickle_.ItemsOf(value);
    if (pickle_.at(value).kind != PickleKind::kTuple || items.size() != 2) return std::nullopt;
    const Named named{.name = pickle_.TextOf(items[0]), .array = pickle_.ArrayOf(items[1])};
    return named.name.empty() || named.array == nullptr ? std::nullopt : std::optional(named);
  }

  absl::Status AddEntry(int32_t key, int32_t value) {
    const absl::string_view name = pickle_.TextOf(key);
    if (name == kNamesKey || name == kSplitKey) {
      if (pickle_.at(value).kind != PickleKind::kDict) return Fail(value, "no dict of names");
      (name == kNamesKey ? names_ : split_) = value;
      return absl::OkStatus();
    }
    const PickleArray* array = pickle_.ArrayOf(value);
    const std::optional<Named> named = NamedArray(value);
    if (array == nullptr && !named.has_value()) return absl::OkStatus();
    if (name.empty()) return Fail(key, "a parameter without a name");
    return Add(std::string(named.has_value() ? named->name : name),
               named.has_value() ? *named->array : *array);
  }

  absl::Status Add(std::string name, const PickleArray& array) {
    const auto [it, added] = positions_.try_emplace(name, tensors_.size());
    if (!added) return InvalidArgument("there are two parameters named ", Quoted(name));
    INTERP_ASSIGN_OR_RETURN(Tensor tensor, TensorOf(array));
    tensors_.emplace_back(std::move(name), std::move(tensor));
    return absl::OkStatus();
  }

  // One for each array, however many names it has.
  absl::StatusOr<Tensor> TensorOf(const PickleArray& array) {
    const auto known = made_.find(&array);
    if (known != made_.end()) return known->second;
    INTERP_RETURN_IF_ERROR(Charge(array.elements.size()));
    // Elements decoded from text lie outside of the file.
    char* const begin = static_cast<char*>(file_->data);
    const char* const data = array.elements.data();
    const bool in_file = data >= begin && data < begin + file_->size_bytes;
    INTERP_ASSIGN_OR_RETURN(Tensor tensor,
                            in_file ? ShareElements(array.layout, file_, begin + (data - begin))
                                    : CopyElements(array.layout, data));
    made_.emplace(&array, tensor);
    return tensor;
  }

  // Elements are taken out of the file once, and once more where they are put together.
  absl::Status Charge(size_t size_bytes) {
    if (size_bytes > 2 * file_->size_bytes - charged_bytes_) {
      return InvalidArgument("the same elements are in many arrays");
    }
    charged_bytes_ += size_bytes;
    return absl::OkStatus();
  }

  // {name: {"OriginShape": (...), "slices": [name@@.0, ...]}}: the slices are flat.
  absl::Status JoinSplit() {
    if (split_ == -1) return absl::OkStatus();
    const std::vector<int32_t>& entries = pickle_.ItemsOf(split_);
    for (size_t i = 0; i < entries.size(); i += 2) {
      const absl::Status status = JoinOne(entries[i], entries[i + 1]);
      if (!status.ok()) return Annotate(status, Quoted(pickle_.TextOf(entries[i])));
    }
    std::erase_if(tensors_, [](const NamedTensor& tensor) { return tensor.first.empty(); });
    return absl::OkStatus();
  }

  absl::Status JoinOne(int32_t name, int32_t how) {
    std::optional<Shape> shape;
    const std::vector<int32_t>* slices = nullptr;
    const std::vector<int32_t>& fields = pickle_.ItemsOf(how);
    for (size_t i = 0; i + 1 < fields.size(); i += 2) {
      const absl::string_view field = pickle_.TextOf(fields[i]);
      if (field == "OriginShape") shape = ShapeOf(fields[i + 1]);
      if (field == "slices") slices = &pickle_.ItemsOf(fields[i + 1]);
    }
    if (!shape.has_value() || slices == nullptr || slices->empty()) {
      return Fail(how, "a split parameter without shape and slices");
    }
    std::vector<Tensor> parts;
    for (const int32_t slice : *slices) {
      const auto it = positions_.find(pickle_.TextOf(slice));
      // A name is taken away from a slice when it was used.
      if (it == positions_.end() || tensors_[it->second].first.empty()) {
        return Fail(slice, absl::StrCat("no slice ", Quoted(pickle_.TextOf(slice))));
      }
      tensors_[it->second].first.clear();
      parts.push_back(std::move(tensors_[it->second].second));
    }
    INTERP_ASSIGN_OR_RETURN(Tensor joined, Join(parts, *shape));
    tensors_.emplace_back(std::string(pickle_.TextOf(name)), std::move(joined));
    return absl::OkStatus();
  }

  std::optional<Shape> ShapeOf(int32_t value) const {
    const std::vector<int32_t>& dims = pickle_.ItemsOf(value);
    if (dims.size() > kMaxRank) return std::nullopt;
    Shape shape;
    for (const int32_t dim : dims) {
      if (pickle_.at(dim).kind != PickleKind::kInt) return std::nullopt;
      shape.push_back(pickle_.at(dim).number);
    }
    return shape.CheckedNumel().has_value() ? std::optional(shape) : std::nullopt;
  }

  absl::StatusOr<Tensor> Join(const std::vector<Tensor>& parts, const Shape& shape) {
    int64_t numel = 0;
    for (const Tensor& part : parts) {
      if (part.dtype != parts[0].dtype) return InvalidArgument("its slices differ in type");
      numel += part.numel();
    }
    if (numel != shape.numel()) {
      return InvalidArgument("its slices have ", numel, " elements, expected ", ToString(shape));
    }
    Tensor joined;
    joined.dtype = parts[0].dtype;
    joined.shape = shape;
    INTERP_RETURN_IF_ERROR(Charge(joined.size_bytes()));
    INTERP_RETURN_IF_ERROR(joined.Allocate(SystemAllocator()));
    char* out = static_cast<char*>(joined.mutable_raw_data());
    for (const Tensor& part : parts) {
      out = std::copy_n(static_cast<const char*>(part.raw_data()), part.size_bytes(), out);
    }
    return joined;
  }

  // From the names of layers to those of variables.
  absl::StatusOr<std::vector<NamedTensor>> Rename() {
    absl::flat_hash_map<absl::string_view, absl::string_view> variables;
    if (names_ != -1) {
      const std::vector<int32_t>& items = pickle_.ItemsOf(names_);
      for (size_t i = 0; i < items.size(); i += 2) {
        variables[pickle_.TextOf(items[i])] = pickle_.TextOf(items[i + 1]);
      }
    }
    absl::flat_hash_set<std::string> taken;
    for (auto& [name, tensor] : tensors_) {
      const auto it = variables.find(name);
      if (it != variables.end() && !it->second.empty()) name = std::string(it->second);
      // Two layers may share a parameter, which then is there twice.
      if (!taken.insert(name).second) name.clear();
    }
    std::erase_if(tensors_, [](const NamedTensor& tensor) { return tensor.first.empty(); });
    return std::move(tensors_);
  }

  const Pickle& pickle_;
  const BufferRef& file_;
  int32_t names_ = -1;
  int32_t split_ = -1;
  std::vector<NamedTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> positions_;  // in tensors_
  absl::flat_hash_map<const PickleArray*, Tensor> made_;
  size_t charged_bytes_ = 0;
};

// Zip archives start so, and no record of a combined file does.
bool IsNpz(absl::string_view file) { return absl::StartsWith(file, "PK"); }

// What a file holds, by name.
class ParamFile {
 public:
  static absl::StatusOr<ParamFile> Read(const std::string& path) {
    INTERP_ASSIGN_OR_RETURN(const BufferRef file_bytes, MapAsBuffer(path));
    const bool npz = IsNpz({static_cast<const char*>(file_bytes->data), file_bytes->size_bytes});
    INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors,
                            npz ? ReadNpz(path) : ListPickledParams(path));
    ParamFile file(path);
    for (auto& [name, tensor] : tensors) file.tensors_.emplace(name, std::move(tensor));
    return file;
  }

  bool Has(const std::string& name) const { return tensors_.contains(name); }

  absl::StatusOr<NamedTensor> Take(const ParamDecl& param) const {
    absl::StatusOr<Tensor> tensor = AsDeclared(tensors_.at(param.name), param);
    if (tensor.ok()) return NamedTensor(param.name, *std::move(tensor));
    return Annotate(tensor.status(), absl::StrCat(path_, ": parameter ", Quoted(param.name)));
  }

  absl::Status Missing(const ParamDecl& param) const {
    std::vector<absl::string_view> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return NotFound(path_, ": there is no parameter ", Quoted(param.name),
                    NearNamesHint(param.name, names));
  }

 private:
  explicit ParamFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  absl::flat_hash_map<std::string, Tensor> tensors_;
};

// a.pdopt beside a.pdparams; empty when there is none.
std::string OptimizerStateBeside(absl::string_view path) {
  if (!absl::ConsumeSuffix(&path, ".pdparams")) return "";
  std::string beside = absl::StrCat(path, ".pdopt");
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside : "";
}

absl::StatusOr<std::vector<NamedTensor>> ReadNamedParams(const std::string& path,
                                                         absl::Span<const ParamDecl> params) {
  std::vector<ParamFile> files;
  INTERP_ASSIGN_OR_RETURN(ParamFile first, ParamFile::Read(path));
  files.push_back(std::move(first));
  const bool whole = std::all_of(params.begin(), params.end(),
                                 [&](const ParamDecl& p) { return files[0].Has(p.name); });
  if (const std::string beside = OptimizerStateBeside(path); !whole && !beside.empty()) {
    INTERP_ASSIGN_OR_RETURN(ParamFile second, ParamFile::Read(beside));
    files.push_back(std::move(second));
  }
  std::vector<NamedTensor> tensors;
  for (const ParamDecl& param : params) {
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const ParamFile& f) { return f.Has(param.name); });
    if (file == files.end()) return files[0].Missing(param);
    INTERP_ASSIGN_OR_RETURN(NamedTensor tensor, file->Take(param));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ParsePickledParams(const BufferRef& file) {
  INTERP_ASSIGN_OR_RETURN(const Pickle pickle,
                          ParsePickle({static_cast<const char*>(file->data), file->size_bytes}));
  return ParamCollector(pickle, file).Collect();
}

absl::StatusOr<std::vector<NamedTensor>> ListPickledParams(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const BufferRef file, MapAsBuffer(path));
  return Annotate(ParsePickledParams(file), path);
}

absl::StatusOr<std::vector<NamedTensor>> ReadAnyParams(const std::string& path,
                                                       absl::Span<const ParamDecl> params,
                                                       ParamMemory memory) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    INTERP_ASSIGN_OR_RETURN(const BufferRef file, MapAsBuffer(path));
    const absl::string_view bytes(static_cast<const char*>(file->data), file->size_bytes);
    if (IsPickle(bytes) || IsNpz(bytes)) return ReadNamedParams(path, params);
  }
  return ReadParams(path, params, memory);
}

}  // namespace interp
