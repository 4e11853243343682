#include "core/base/terminal_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace interp {
namespace {

// Of a character in UTF-8 at the start of `text`; 0 for bytes that are none.
size_t LengthOfCharacter(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                                       : 4;
  if (first > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// U+0080 to U+009F, too: U+009B begins the same sequences as escape and '['.
bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) <= 0x9f;
}

}  // namespace

std::string TerminalText(absl::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const size_t length = LengthOfCharacter(text);
    const absl::string_view character = text.substr(0, std::max<size_t>(1, length));
    text.remove_prefix(character.size());
    const bool moves_on = character == "\n" || character == "\t";
    if (length > 0 && (moves_on || !IsControl(character))) {
      absl::StrAppend(&plain, character);
      continue;
    }
    for (const char c : character) {
      absl::StrAppendFormat(&plain, "\\x%02x", static_cast<unsigned char>(c));
    }
  }
  return plain;
}

std::string TerminalLine(absl::string_view text) {
  return absl::StrReplaceAll(TerminalText(text), {{"\n", "\\n"}});
}

}  // namespace interp
