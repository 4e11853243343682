// Histories of pushes and pulls on one key, and whether one order of calls explains them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace interp::testing {

// A call of one thread. Times are draws of one counter, before the call and after it.
struct StoreCall {
  bool pull = false;
  // A push: its bit. A pull: the bits of all pushes that it saw.
  uint64_t bits = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// "" when the calls are linearizable: some order of them, in which a call that ended before another
// began comes before it, has each pull see the pushes before it and no others. Else what is wrong.
// Pushes add bits that differ, so it is enough that
//   - what pulls saw is a chain of sets, ascending in time,
//   - each saw all pushes that had ended before it began, and none that began after its end, and
//   - a push that ended before another began is seen wherever that one is.
inline std::string WhyNotLinearizable(const std::vector<StoreCall>& calls) {
  for (const StoreCall& a : calls) {
    if (!a.pull) continue;
    for (const StoreCall& b : calls) {
      const bool sees = (a.bits & b.bits) == b.bits;
      if (!b.pull && b.end < a.begin && !sees) {
        return absl::StrCat("a pull at ", a.begin, " misses the push ", b.bits, " of ", b.end);
      }
      if (!b.pull && b.begin > a.end && sees) {
        return absl::StrCat("a pull at ", a.end, " sees the push ", b.bits, " of ", b.begin);
      }
      if (b.pull && !sees && (a.bits & b.bits) != a.bits) {
        return absl::StrCat("pulls saw ", a.bits, " and ", b.bits, ": two orders");
      }
      if (b.pull && b.end < a.begin && !sees) {
        return absl::StrCat("a pull at ", a.begin, " saw less than one at ", b.end);
      }
    }
    for (const StoreCall& first : calls) {
      for (const StoreCall& second : calls) {
        if (first.pull || second.pull || first.end >= second.begin) continue;
        if ((a.bits & second.bits) != 0 && (a.bits & first.bits) == 0) {
          return absl::StrCat("a pull saw the push ", second.bits, " without ", first.bits,
                              ", which came before it");
        }
      }
    }
  }
  return "";
}

}  // namespace interp::testing
