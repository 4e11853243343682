// Numbers in comma-separated text.
//
//   x[0],x[1],label
//   0.5,-1,3
//
// gives x float64[1,2] and label int64[1,1]: the first line names the arrays, NAME[i] being element
// i of one with several; each further line is a sample.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/io/npy.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Arrays of shape [samples, columns] in the order of their first columns: int64 where all numbers
// are integers, else float64. Integers are those that are written with digits alone, of any size
// that int64 holds, and other numbers below 2^53 without a fraction, as 1e3. Errors name the line
// and the column: InvalidArgument for a cell that is no finite number, or no integer in an array
// that `integers` names, a line with another number of cells, a header whose columns do not count
// from 0; ResourceExhausted for arrays of more than `max_bytes` together, before memory is taken
// for them.
absl::StatusOr<std::vector<NamedTensor>> ParseCsv(
    absl::string_view text, size_t max_bytes = kMaxArrayBytes,
    const absl::flat_hash_set<std::string>& integers = {});

}  // namespace interp
