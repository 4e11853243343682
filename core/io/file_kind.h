// What a file is that was given for a program and is none.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace interp {

// "it is an ONNX model; ...", for the end of a message; empty when nothing can be told. `bytes` is
// the content of the file.
std::string ForeignFileHint(absl::string_view path, absl::string_view bytes);

}  // namespace interp
