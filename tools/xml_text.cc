#include "tools/xml_text.h"

#include "absl/strings/str_replace.h"

namespace interp {

std::string XmlText(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace interp
