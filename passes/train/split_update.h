// SplitUpdate: a training program as two, so that several computers of gradients can share one
// update of the parameters.
//
//   main:     forward, backward, update          (op_role, see core/op_role.h)
//   compute:  forward, backward                  data, parameters -> gradients, new states
//   update:   learning rate, optimizer           gradients -> parameters
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// How the values that several runs of `compute`, each on some rows of a batch, have for one
// variable become that of the whole batch.
enum class Merge : int8_t {
  kMean,        // floats: weighted by the runs' samples; others: the same in all of them
  kRows,        // the rows of the first, then those of the second, ...
  kScaledRows,  // likewise, each times its weight in the mean: values of selected rows
};

struct PassedValue {
  std::string name;
  std::string variable;  // of `main`, whose value it is
  Merge merge = Merge::kMean;
};

struct SplitProgram {
  // Changes no persistable variable, so that clones can run side by side: those that a step changes
  // are none here, and fed.
  Program compute;
  Program update;
  // Persistable variables of `main` to feed to `compute`: parameters, and states it reads.
  std::vector<std::string> states_read;
  // Those that `compute` gives new values: to be fetched, and kept before `update` runs.
  std::vector<std::string> states_written;
  // Of these, floats that ops of the backward part change and `update` reads: sums of gradients
  // that the program itself takes over several steps. The runs of `compute` have a part of each,
  // and nobody merges the parts.
  std::vector<std::string> gradient_sums;
  // What `compute` gives to `update`: to be fetched, merged and fed. Gradients, mostly.
  std::vector<PassedValue> passed;
  // The variables whose value at the end of a step `update` has: those it writes, and persistable
  // ones.
  absl::flat_hash_set<std::string> fetched_from_update;
};

// Cuts block 0 by the roles of its ops; feed and fetch ops go. Selected rows are passed as two
// tensors, values and row numbers. A persistable variable that `compute` writes before it reads it,
// and `update` reads, is passed, too (under another name), and is no state: a gradient. Linear in
// ops and arguments.
//
// Errors: InvalidArgument for a program without one of the parts, and where an op of `compute` uses
// what an op of `update` before it writes, or writes what that uses; Unimplemented where other
// variables than tensors and selected rows would be passed or are states.
// REQUIRES: VerifyProgram(main).
absl::StatusOr<SplitProgram> SplitUpdate(const Program& main);

// Whether what `update` reads may come from several runs of `compute`, each on some samples, called
// `runs` in errors. Unimplemented for gradient_sums, and as CheckNoRows.
absl::Status CheckSharesUpdate(const SplitProgram& split, absl::string_view runs);
// Unimplemented where `update` reads values whose rows are samples: gradients among them would have
// to be weighted. Selected rows may have any.
absl::Status CheckNoRows(const SplitProgram& split, absl::string_view runs);

// How a variable that `program` declares is merged when it is fetched: kRows where the declared
// first dim is open, as that of samples is.
Merge MergeOf(const Program& program, const std::string& name);

}  // namespace interp
