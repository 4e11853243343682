// Arguments with options behind them: "HEAD,OPTION=VALUE,OPTION=VALUE".
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

// Views of the text that was split.
struct OptionList {
  absl::string_view head;
  std::vector<std::pair<absl::string_view, absl::string_view>> options = {};  // name, value
};

// The head ends at the first comma. InvalidArgument, with `example`, for an option without '='
// and for one that is given twice.
absl::StatusOr<OptionList> SplitOptions(absl::string_view text, absl::string_view example);

// InvalidArgument for an option that is none of `names`.
absl::Status NoOption(absl::string_view name, std::initializer_list<absl::string_view> names);

// The index of `text` in `names`.
absl::StatusOr<size_t> ParseChoice(absl::string_view text,
                                   std::initializer_list<absl::string_view> names);

}  // namespace interp
