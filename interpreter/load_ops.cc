#include "interpreter/load_ops.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <utility>

#include "core/op_def.h"

namespace interp {
namespace {

// What loading a library gave, by its handle. A library registers its ops once: asked for again, it
// would seem to be fine whatever came of it.
std::map<const void*, absl::Status>& Outcomes() {
  static auto& outcomes = *new std::map<const void*, absl::Status>();
  return outcomes;
}

// How many ops and kernels of them there are.
std::pair<size_t, size_t> CountOps(const OpRegistry& ops) {
  std::pair<size_t, size_t> counts;
  for (const absl::string_view type : ops.Types()) {
    ++counts.first;
    counts.second += ops.Find(type)->kernels.size();
  }
  return counts;
}

// The handle, and whether the library was in the process before; null with a message of dlerror().
std::pair<const void*, bool> Open(const std::string& file) {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const bool there = dlopen(file.c_str(), kFlags | RTLD_NOLOAD) != nullptr;
  return {dlopen(file.c_str(), kFlags), there};
}

}  // namespace

absl::Status LoadOps(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) return NotFound("there is no file '", path, "'");
  if (!std::filesystem::is_regular_file(status)) {  // dlopen would wait for a pipe
    return InvalidArgument("'", path, "' is not a regular file");
  }
  const bool bare = path.find('/') == std::string::npos;  // dlopen would look elsewhere
  OpRegistry& ops = OpRegistry::Global();
  const std::pair<size_t, size_t> before = CountOps(ops);
  ops.BeginLoad();
  const auto [library, there] = Open(bare ? "./" + path : path);
  const std::string error = library == nullptr ? dlerror() : "";
  absl::Status added = ops.EndLoad();
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot load '", path, "': ", error));
  }
  // One that others have brought into the process has registered what it has.
  if (added.ok() && !there && CountOps(ops) == before) {
    added = InvalidArgument("the library registers no ops, expected INTERP_REGISTER_OP");
  }
  const absl::Status& outcome = Outcomes().try_emplace(library, std::move(added)).first->second;
  return outcome.ok() ? outcome : Annotate(outcome, path);
}

}  // namespace interp
