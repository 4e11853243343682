#include "passes/train/recurrent_states.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "passes/copy_beside.h"
#include "passes/declarations.h"
#include "passes/fresh_var.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

class Keeper {
 public:
  Keeper(Program& program, const OpRegistry& ops, const GradientFlow& flow)
      : program_(program), ops_(ops), flow_(flow), declarations_(program) {}

  void Run() {
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      for (Op& op : program_.blocks[b].ops) {
        if (op.type != "recurrent" || !GetsGradients(op)) continue;
        const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
        if (inner >= 0) KeepStates(op, static_cast<int32_t>(b), inner);
      }
    }
  }

 private:
  bool GetsGradients(const Op& op) const {
    const std::vector<VarId> inputs = ArgumentsOf(op.inputs);
    return std::any_of(inputs.begin(), inputs.end(), [&](VarId id) {
      return id < std::ssize(flow_.depends) && flow_.depends[id];
    });
  }

  void KeepStates(Op& op, int32_t block, int32_t inner) {
    std::vector<std::string> states = AttrReader(op).Strings("states");
    const std::vector<std::string> before = AttrReader(op).Strings("ex_states");
    if (before.size() != states.size()) return;
    for (size_t i = 0; i < states.size(); ++i) {
      const VarId state = program_.Find(states[i]);
      if (state < 0 || !NeedsCopy(op, inner, state)) continue;
      states[i] = program_.NameOf(Copy(op, block, inner, state, program_.Find(before[i])));
    }
    SetAttr(op, "states", std::move(states));
  }

  bool NeedsCopy(const Op& op, int32_t inner, VarId state) const {
    const auto writes = [state](const Op& step) { return HasArgument(step.outputs, state); };
    const std::vector<Op>& steps = program_.blocks[inner].ops;
    const auto writer = std::find_if(steps.rbegin(), steps.rend(), writes);
    if (writer == steps.rend()) return false;
    return writer->type != "rnn_memory_helper" || writes(op);
  }

  VarId Copy(Op& op, int32_t block, int32_t inner, VarId state, VarId before) {
    const VarId copy = FreshVar(program_, absl::StrCat(program_.NameOf(state), "@STATE"));
    const Var* const like = declarations_.FindLocal(inner, before >= 0 ? before : state);
    Var var;
    if (like != nullptr) {
      var.dtype = like->dtype;
      var.dims = like->dims;
    }
    var.id = copy;
    declarations_.Add(inner, var);
    var.dims.insert(var.dims.begin(), -1);
    declarations_.Add(block, std::move(var));
    std::vector<Op>& steps = program_.blocks[inner].ops;
    steps.push_back(CopyBeside(steps.back(), "assign", state, copy));
    for (Slot& slot : op.outputs) {
      if (slot.name == "outputs") slot.args.push_back(copy);
    }
    return copy;
  }

  Program& program_;
  const OpRegistry& ops_;
  const GradientFlow& flow_;  // of the program before any change
  Declarations declarations_;
};

}  // namespace

bool KeepRecurrentStates(const OpRegistry& ops, const GradientFlow& flow, Program& program) {
  const size_t names = program.names.size();
  Keeper(program, ops, flow).Run();
  return program.names.size() > names;
}

}  // namespace interp
