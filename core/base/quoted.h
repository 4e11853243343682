// Names and words of a file in messages.
#pragma once

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace interp {

// 'text', with escapes for what does not print.
inline std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::Utf8SafeCEscape(text), "'");
}

}  // namespace interp
