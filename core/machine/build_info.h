// How this library was built, for `interp --version` and for reports of errors.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace interp {

struct BuildInfo {
  absl::string_view version;    // "0.1.0"
  absl::string_view level;      // what the code needs of a processor, as of ProcessorLevel
  absl::string_view compiler;   // "GNU 12.2.0"
  absl::string_view build;      // "Release, -march=x86-64-v3"
  absl::string_view libraries;  // "oneDNN 2.6.3, protobuf 3.21.12"
  bool kernels = false;         // whether the kernels are in
};
const BuildInfo& GetBuildInfo();

// The file that the library was loaded from: of several variants the loader takes one. Empty when
// it cannot be known.
std::string LibraryPath();

}  // namespace interp
