#include "core/terminal_text.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace interp {
namespace {

bool IsControl(unsigned char c) { return c < 0x20 || c == 0x7f; }

// U+0080 to U+009F: U+009B begins the same sequences as escape and '['.
bool IsControlInUtf8(unsigned char c, unsigned char next) {
  return c == 0xc2 && next >= 0x80 && next <= 0x9f;
}

}  // namespace

std::string TerminalText(absl::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (IsControlInUtf8(c, next)) {
      absl::StrAppendFormat(&plain, "\\x%02x\\x%02x", c, next);
      ++i;
    } else if (IsControl(c) && c != '\n' && c != '\t') {
      absl::StrAppendFormat(&plain, "\\x%02x", c);
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::string TerminalLine(absl::string_view text) {
  return absl::StrReplaceAll(TerminalText(text), {{"\n", "\\n"}});
}

}  // namespace interp
