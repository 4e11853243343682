// Where the parts of interp lie that are loaded only by those who want them.
#pragma once

#include <string>

namespace interp {

// The path of file `name` in the folder of the library that this code is in; builds of that for
// newer processors lie two folders below, in glibc-hwcaps/x86-64-v3. Just `name` where that is not
// known.
std::string BesideLibrary(const std::string& name);

}  // namespace interp
