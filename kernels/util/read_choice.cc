#include "kernels/util/read_choice.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace interp {
namespace {

// 'a', 'b' or 'c'
std::string Listed(absl::Span<const absl::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::string_view before = i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    absl::StrAppend(&text, before, "'", names[i], "'");
  }
  return text;
}

}  // namespace

size_t ReadChoiceIndex(AttrReader& reader, absl::string_view attr,
                       absl::Span<const absl::string_view> names) {
  const std::string given = reader.String(attr, names[0]);
  for (size_t i = 0; i < names.size(); ++i) {
    if (given == names[i]) return i;
  }
  reader.Fail(absl::StrCat("attribute '", attr, "' is '", given, "', expected ", Listed(names)));
  return 0;
}

}  // namespace interp
