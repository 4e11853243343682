#include "interpreter/load_ops.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/op_def.h"

namespace interp {

absl::Status LoadOps(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return NotFound("there is no file '", path, "'");
  const bool bare = path.find('/') == std::string::npos;  // dlopen would look elsewhere
  OpRegistry& ops = OpRegistry::Global();
  ops.BeginLoad();
  const void* const library =
      dlopen((bare ? "./" + path : path).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const std::string error = library == nullptr ? dlerror() : "";
  const absl::Status added = ops.EndLoad();
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot load '", path, "': ", error));
  }
  if (!added.ok()) return Annotate(added, path);
  return absl::OkStatus();
}

}  // namespace interp
