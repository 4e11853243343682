// What `interp --version` says.
#pragma once

#include <string>

namespace interp {

// "interp 0.1.0", then lines on the library that is loaded, the processor and the build.
std::string VersionText();

}  // namespace interp
