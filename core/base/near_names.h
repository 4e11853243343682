// Near names: the "did you mean" part of errors about a name that does not exist.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace interp {

// Up to three of `candidates` that look like `name`, nearest first, ties in alphabetical order. A
// candidate looks alike when few edits lead from one to the other, or when one of the two
// is a part of the other. For errors only: costs candidates x length^2.
std::vector<std::string> NearNames(absl::string_view name,
                                   absl::Span<const absl::string_view> candidates);

// "; nearest: 'a', 'b'" for the end of a message, empty when nothing looks alike.
std::string NearNamesHint(absl::string_view name, absl::Span<const absl::string_view> candidates);

}  // namespace interp
