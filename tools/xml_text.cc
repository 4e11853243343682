#include "tools/xml_text.h"

#include "absl/strings/str_replace.h"
#include "core/base/terminal_text.h"

namespace interp {

std::string XmlText(absl::string_view text) {
  // XML knows no control characters, escaped or not.
  return absl::StrReplaceAll(TerminalText(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace interp
