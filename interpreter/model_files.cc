#include "interpreter/model_files.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_join.h"

namespace interp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelEnding = ".pdmodel";
constexpr const char* kOldModel = "__model__";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_directory(path, error);
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

absl::StatusOr<std::string> ModelIn(const std::string& folder) {
  std::vector<std::string> models;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return NotFound(folder, ": cannot list the folder: ", error.message());
  for (const fs::directory_iterator end; entries != end; entries.increment(error)) {
    if (error) return NotFound(folder, ": cannot list the folder: ", error.message());
    if (entries->path().extension() == kModelEnding) models.push_back(entries->path().string());
  }
  std::sort(models.begin(), models.end());
  if (models.size() == 1) return models[0];
  if (models.size() > 1) {
    return InvalidArgument(folder, ": holds several programs; expected the path of one: ",
                           absl::StrJoin(models, ", "));
  }
  const fs::path old = fs::path(folder) / kOldModel;
  if (IsFile(old)) return old.string();
  return NotFound(folder, ": the folder holds neither a .pdmodel nor __model__");
}

// A folder where something else lies beside the model, as save_inference_model leaves it without
// params_filename.
bool HoldsMore(const fs::path& model) {
  std::error_code error;
  fs::directory_iterator entries(model.parent_path().empty() ? "." : model.parent_path(), error);
  for (const fs::directory_iterator end; !error && entries != end; entries.increment(error)) {
    if (entries->path().filename() != model.filename() && IsFile(entries->path())) return true;
  }
  return false;
}

std::string ParamsBeside(const fs::path& model) {
  if (model.filename() != kOldModel) {
    for (const char* ending : {".pdiparams", ".pdparams"}) {
      const fs::path params = fs::path(model).replace_extension(ending);
      if (IsFile(params)) return params.string();
    }
    return "";
  }
  for (const char* name : {"__params__", "params"}) {
    const fs::path params = fs::path(model).replace_filename(name);
    if (IsFile(params)) return params.string();
  }
  if (!HoldsMore(model)) return "";
  return model.parent_path().empty() ? "." : model.parent_path().string();
}

}  // namespace

absl::StatusOr<ModelFiles> FindModelFiles(const std::string& path) {
  ModelFiles files{.model = path, .params = ""};
  if (IsFolder(path)) {
    INTERP_ASSIGN_OR_RETURN(files.model, ModelIn(path));
  } else if (!IsFile(path)) {
    const std::string with_ending = absl::StrCat(path, kModelEnding);
    if (IsFile(with_ending)) {
      files.model = with_ending;
    } else if (!fs::path(path).has_extension()) {
      return NotFound(path, ": there is no such file or folder, and no ", with_ending);
    }
  }
  files.params = ParamsBeside(files.model);
  return files;
}

}  // namespace interp
