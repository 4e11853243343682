// ReadChoice: attributes that are one of a few names.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/attr_reader.h"

namespace interp {

template <typename T>
struct Choice {
  absl::string_view name;
  T value;
};

// Which of `names` attribute `attr` is: 0 without it, and, as an error of the reader that lists
// them all, where it is none.
size_t ReadChoiceIndex(AttrReader& reader, absl::string_view attr,
                       absl::Span<const absl::string_view> names);

// The value of that name; the first one is the default.
template <typename T>
T ReadChoice(AttrReader& reader, absl::string_view attr, std::initializer_list<Choice<T>> choices) {
  absl::InlinedVector<absl::string_view, 8> names;
  for (const Choice<T>& choice : choices) names.push_back(choice.name);
  return (choices.begin() + ReadChoiceIndex(reader, attr, names))->value;
}

}  // namespace interp
