#include "tools/option_list.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/near_names.h"

namespace interp {

absl::StatusOr<OptionList> SplitOptions(absl::string_view text, absl::string_view example) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  OptionList list{.head = parts[0]};
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == absl::string_view::npos) {
      return InvalidArgument("expected OPTION=VALUE, as in ", example, ", got '", parts[i], "'");
    }
    const absl::string_view name = parts[i].substr(0, equals);
    const bool given = std::any_of(list.options.begin(), list.options.end(),
                                   [&](const auto& option) { return option.first == name; });
    if (given) {
      return InvalidArgument("option '", name, "' is given twice");
    }
    list.options.emplace_back(name, parts[i].substr(equals + 1));
  }
  return list;
}

absl::Status NoOption(absl::string_view name, std::initializer_list<absl::string_view> names) {
  return InvalidArgument("no option is named '", name, "'", NearNamesHint(name, names));
}

absl::StatusOr<size_t> ParseChoice(absl::string_view text,
                                   std::initializer_list<absl::string_view> names) {
  const auto it = std::find(names.begin(), names.end(), text);
  if (it != names.end()) return it - names.begin();
  return InvalidArgument("expected one of ", absl::StrJoin(names, ", "), ", got '", text, "'");
}

}  // namespace interp
