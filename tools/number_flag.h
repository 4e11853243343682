// Which numbers a flag takes.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace interp {

// Numbers above 0; finite ones from 0 on; whole ones from 0 on, from 1 on, and from `least` to
// `most`. Whole ones are for `transform`, and decimal: by itself CLI11 takes 010 for 8.
inline CLI::Validator AboveZero() {
  return {[](std::string& text) {
            double value = 0;
            const bool fits = absl::SimpleAtod(text, &value) && value > 0 && std::isfinite(value);
            return fits ? std::string() : absl::StrCat("'", text, "' is no number above 0");
          },
          "NUMBER"};
}
inline CLI::Validator FromZero() {
  return {[](std::string& text) {
            double value = 0;
            const bool fits = absl::SimpleAtod(text, &value) && value >= 0 && std::isfinite(value);
            return fits ? std::string() : absl::StrCat("'", text, "' is no number from 0 on");
          },
          "NUMBER"};
}
inline CLI::Validator WholeFromZero() {
  return {[](std::string& text) {
            uint64_t value = 0;
            const bool fits = absl::SimpleAtoi(text, &value);
            if (fits) text = absl::StrCat(value);
            return fits ? std::string() : absl::StrCat("'", text, "' is no whole number from 0 on");
          },
          "NUMBER"};
}
inline CLI::Validator WholeFromOne() {
  return {[](std::string& text) {
            int64_t value = 0;
            const bool fits = absl::SimpleAtoi(text, &value) && value > 0;
            if (fits) text = absl::StrCat(value);
            return fits ? std::string() : absl::StrCat("'", text, "' is no whole number from 1 on");
          },
          "NUMBER"};
}
inline CLI::Validator WholeBetween(int64_t least, int64_t most) {
  return {[least, most](std::string& text) {
            int64_t value = 0;
            const bool fits = absl::SimpleAtoi(text, &value) && value >= least && value <= most;
            if (fits) text = absl::StrCat(value);
            return fits ? std::string()
                        : absl::StrCat("Value ", text, " not in range ", least, " to ", most);
          },
          absl::StrCat("INT in [", least, " - ", most, "]")};
}

}  // namespace interp
