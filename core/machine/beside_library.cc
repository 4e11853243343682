#include "core/machine/beside_library.h"

#include <dlfcn.h>

#include <filesystem>

namespace interp {

std::string BesideLibrary(const std::string& name) {
  Dl_info info;
  const auto* const here = reinterpret_cast<const void*>(&BesideLibrary);
  if (dladdr(here, &info) == 0 || info.dli_fname == nullptr) return name;
  std::error_code ignored;
  const std::filesystem::path own = std::filesystem::canonical(info.dli_fname, ignored);
  std::filesystem::path folder = own.parent_path();
  const std::filesystem::path above = folder.parent_path();
  if (above.filename() == "glibc-hwcaps") folder = above.parent_path();
  return (folder / name).string();
}

}  // namespace interp
