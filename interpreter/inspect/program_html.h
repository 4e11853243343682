// Program -> one HTML page that shows it: the graph of each block's ops, what each op and variable
// is, and statistics of the parameters. docs/seeing_a_program.md says how to use it.
//
// The page is complete in itself and fetches nothing. It is interpreter/inspect/program_view
// (embedded at build time) with the program as JSON; the same program gives the same characters.
// Names reach it as text only, whatever is in them. The JSON:
//
//   {"title": "digits.pdmodel", "facts": [["Paddle", "2.6.2"]],
//    "inputs": [S], "outputs": [S],        S: an index into "strings"
//    "strings": ["x", "conv2d", ...],
//    "attrs": [[[S, "text form"], ...]],   distinct lists of attributes
//    "blocks": [{"parent": -1, "forward": -1,
//                "vars": [[S name, S type, flags, lod level]],
//                "ops": [{"type": S, "attrs": index, "part": "backward",
//                         "in": [[S slot, S arg, ...]], "out": ..., "blocks": [1],
//                         "inplace": [[S input, S output]]}]}],
//    "statistics": {"w": {...}}}
//
// Members of an op that would be empty, and the part "forward", are left out. Attributes are in the
// text form, which keeps infinities, NaN and 64 bit integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"

namespace interp {

// Of the elements of a tensor. What says "finite" leaves infinities and NaN out.
struct TensorStatistics {
  std::string type;  // "float32[8,3]"
  int64_t count = 0;
  int64_t num_zero = 0;
  int64_t num_nan = 0;
  int64_t num_infinite = 0;
  // Of the finite elements; nullopt when there are none.
  std::optional<double> min = std::nullopt;
  std::optional<double> max = std::nullopt;
  std::optional<double> mean = std::nullopt;
  std::optional<double> deviation = std::nullopt;
  // How many finite elements lie in each of equal steps from min to max.
  std::vector<int64_t> histogram = {};
};

// What a page shows beside the program itself.
struct ProgramPage {
  std::string title = "program";
  std::vector<std::pair<std::string, std::string>> facts;            // name, text
  std::vector<std::pair<std::string, TensorStatistics>> statistics;  // by variable of block 0
};

// Also for programs that cannot run: what an op names and no block declares is shown as such.
// Linear in the program's size.
std::string ToHtml(const Program& program, const ProgramPage& page);

}  // namespace interp
