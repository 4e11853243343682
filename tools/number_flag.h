// Which numbers a flag takes.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace interp {

// The most that a seed may be.
inline constexpr uint64_t kMaxSeed = std::numeric_limits<uint64_t>::max();

// Whole numbers, for `transform`, and decimal: by itself CLI11 takes 010 for 8.
inline CLI::Validator Whole(uint64_t least, uint64_t most = std::numeric_limits<int64_t>::max()) {
  const bool bounded = most < uint64_t{std::numeric_limits<int64_t>::max()};
  const std::string range =
      bounded ? absl::StrCat("from ", least, " to ", most) : absl::StrCat("from ", least, " on");
  return {[=](std::string& text) {
            uint64_t value = 0;
            const bool fits = absl::SimpleAtoi(text, &value) && value >= least && value <= most;
            if (fits) text = absl::StrCat(value);
            return fits ? std::string() : absl::StrCat("'", text, "' is no whole number ", range);
          },
          bounded ? absl::StrCat("INT in [", least, " - ", most, "]") : "NUMBER"};
}

// Finite numbers from `least` on, or above it.
inline CLI::Validator Real(double least, bool least_included) {
  return {[=](std::string& text) {
            double value = 0;
            const bool fits = absl::SimpleAtod(text, &value) && std::isfinite(value) &&
                              (least_included ? value >= least : value > least);
            if (fits) return std::string();
            return absl::StrCat("'", text, "' is no number ", least_included ? "from " : "above ",
                                least, least_included ? " on" : "");
          },
          "NUMBER"};
}

}  // namespace interp
