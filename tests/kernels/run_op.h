// RunOp: one op through a plan, on tensors with a LoD.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"

namespace interp::testing {

struct OpRun {
  std::string type;
  // By slot; arguments of one slot are neighbours.
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::vector<std::string> outputs;  // slots, one variable each, all fetched
  std::string attrs = "";            // as in the text form of programs
};

// A program of that op; argument i of its inputs is the feed "in<i>", and outputs are named after
// their slots.
inline std::string ProgramText(const OpRun& run) {
  std::string text = "block 0\n";
  std::vector<std::string> slots;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    const auto& [slot, tensor] = run.inputs[i];
    const std::string name = absl::StrCat("in", i);
    absl::StrAppend(&text, "  var ", name, " ", Name(tensor.dtype), ToString(tensor.shape), "\n");
    if (i > 0 && run.inputs[i - 1].first == slot) {
      slots.back().pop_back();
      absl::StrAppend(&slots.back(), ", ", name, "]");
    } else {
      slots.push_back(absl::StrCat(slot, "=[", name, "]"));
    }
  }
  std::vector<std::string> outputs;
  for (const std::string& slot : run.outputs) {
    absl::StrAppend(&text, "  var ", slot, " float32[-1]\n");
    outputs.push_back(absl::StrCat(slot, "=", slot));
  }
  return absl::StrCat(text, "  ", run.type, "(", absl::StrJoin(slots, ", "), ") -> (",
                      absl::StrJoin(outputs, ", "), ") {", run.attrs, "}\n");
}

// The outputs in the order of run.outputs.
inline absl::StatusOr<std::vector<Tensor>> RunOp(const OpRun& run,
                                                 const CoreOptions& options = {}) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(ProgramText(run)));
  std::vector<std::string> feeds;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    feeds.push_back(absl::StrCat("in", i));
    tensors.push_back(run.inputs[i].second);
  }
  INTERP_ASSIGN_OR_RETURN(
      auto core, InterpreterCore::Create(std::move(program), feeds, run.outputs, nullptr, options));
  return core->Run(tensors);
}

}  // namespace interp::testing
