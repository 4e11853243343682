// Pass: a named function from Program to Program.
//
// A pass takes a program by value and returns the changed one. It reads op definitions from the
// context and nothing else: no globals, no I/O, no tensors. It may rely on what VerifyProgram
// (verify.h) checks and has to keep it true. Ops it does not know it leaves alone. Passes run in
// linear time: programs of 100,000 ops are normal.
//
// docs/add_a_pass.md leads through writing one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

struct PassContext {
  const OpRegistry& ops;
  // What to feed and to fetch, in column order; nullopt: what the program's own feed and fetch ops
  // say.
  std::optional<std::vector<std::string>> feeds = std::nullopt;
  std::optional<std::vector<std::string>> fetches = std::nullopt;
  // Where the program is to run: no op is made that the place has no kernel for.
  PlaceKind place = PlaceKind::kCpu;
  // Types of ops that the passes of mixed precision leave in float32, besides those that say so.
  std::vector<std::string> float32_ops = {};
};

using PassFunction = absl::StatusOr<Program> (*)(Program program, const PassContext& context);

struct Pass {
  absl::string_view name;     // as in --disable-pass=NAME
  absl::string_view summary;  // one line for people, no full stop
  PassFunction function;
  bool on_by_default = true;
  // Nobody sees a NaN or an infinity between the ops that it joins, or what it makes gives a number
  // for one. Left out where NaN and infinity are looked for (CoreOptions::check_nan_inf).
  bool hides_results = false;
};

}  // namespace interp
