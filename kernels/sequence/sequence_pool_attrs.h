// Attributes of sequence_pool and its gradient.
#pragma once

#include <cstdint>

#include "core/attr_reader.h"
#include "kernels/util/read_choice.h"

namespace interp {

enum class Pooling : int8_t { kAverage, kSum, kSqrt, kMax, kLast, kFirst };

struct SequencePoolAttrs {
  Pooling pooling = Pooling::kAverage;
  float pad_value = 0;
  bool with_index = false;
};

inline SequencePoolAttrs ReadSequencePoolAttrs(AttrReader& reader) {
  SequencePoolAttrs attrs;
  attrs.pooling = ReadChoice<Pooling>(reader, "pooltype",
                                      {{"AVERAGE", Pooling::kAverage},
                                       {"SUM", Pooling::kSum},
                                       {"SQRT", Pooling::kSqrt},
                                       {"MAX", Pooling::kMax},
                                       {"LAST", Pooling::kLast},
                                       {"FIRST", Pooling::kFirst}});
  attrs.pad_value = reader.Float("pad_value", 0);
  attrs.with_index = attrs.pooling == Pooling::kMax && !reader.Bool("is_test", false);
  return attrs;
}

}  // namespace interp
