// Attributes of sequence_pool and its gradient.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"

namespace interp {

enum class Pooling : int8_t { kAverage, kSum, kSqrt, kMax, kLast, kFirst };

struct SequencePoolAttrs {
  Pooling pooling = Pooling::kAverage;
  float pad_value = 0;
  bool with_index = false;
};

inline SequencePoolAttrs ReadSequencePoolAttrs(AttrReader& reader) {
  constexpr std::pair<absl::string_view, Pooling> kNames[] = {
      {"AVERAGE", Pooling::kAverage}, {"SUM", Pooling::kSum},   {"SQRT", Pooling::kSqrt},
      {"MAX", Pooling::kMax},         {"LAST", Pooling::kLast}, {"FIRST", Pooling::kFirst}};
  SequencePoolAttrs attrs;
  const std::string name = reader.String("pooltype", "AVERAGE");
  bool found = false;
  for (const auto& [known, pooling] : kNames) {
    if (name != known) continue;
    attrs.pooling = pooling;
    found = true;
  }
  if (!found) {
    reader.Fail(absl::StrCat("'pooltype' is '", name,
                             "', expected AVERAGE, SUM, SQRT, MAX, LAST or FIRST"));
  }
  attrs.pad_value = reader.Float("pad_value", 0);
  attrs.with_index = attrs.pooling == Pooling::kMax && !reader.Bool("is_test", false);
  return attrs;
}

}  // namespace interp
