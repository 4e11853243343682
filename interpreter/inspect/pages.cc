#include "interpreter/inspect/pages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace interp::pages {
namespace {

// JSON that cannot end the element it stands in: these characters occur in strings only, where an
// escape means the same.
std::string InsideScript(const std::string& json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"},
                                    {">", "\\u003e"},
                                    {"&", "\\u0026"},
                                    {"\xE2\x80\xA8", "\\u2028"},
                                    {"\xE2\x80\xA9", "\\u2029"}});
}

}  // namespace

std::string FillPage(absl::string_view page, const std::string& json) {
  constexpr absl::string_view kMark = "{{data}}";
  const size_t at = page.find(kMark);
  return absl::StrCat(page.substr(0, at), InsideScript(json), page.substr(at + kMark.size()));
}

}  // namespace interp::pages
