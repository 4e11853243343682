#include "passes/carried_states.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/differentiable.h"
#include "core/edit_op.h"
#include "passes/declarations.h"
#include "passes/gradient_flow.h"

namespace interp {
namespace {

bool Holds(const ArgIds& args, VarId id) {
  return std::find(args.begin(), args.end(), id) != args.end();
}

bool Writes(const Op& op, VarId id) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [id](const Slot& slot) { return Holds(slot.args, id); });
}

// In any attribute that lists strings or variables.
bool Names(const Attr& attr, const std::string& name) {
  const auto lists = [&name](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (const auto* one = std::get_if<std::string>(&attr.value)) return *one == name;
  if (const auto* many = std::get_if<std::vector<std::string>>(&attr.value)) return lists(*many);
  if (const auto* var = std::get_if<VarName>(&attr.value)) return var->name == name;
  const auto* vars = std::get_if<VarNames>(&attr.value);
  return vars != nullptr && lists(vars->names);
}

class Carrier {
 public:
  Carrier(Program& program, const OpRegistry& ops, const std::vector<VarId>& blocked)
      : program_(program), ops_(ops), blocked_(blocked), declarations_(program) {}

  // Enclosing loops first: within them nothing is marked any more.
  void Run(int32_t block) {
    std::vector<Op> done;
    for (Op& op : std::exchange(program_.blocks[block].ops, {})) {
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      std::vector<Op> behind;
      if (op.type == "while" && inner >= 0) {
        for (const VarId state : StatesOf(op, block, inner)) {
          const VarId carried = Replace(op, block, inner, state);
          done.push_back(Copy(state, carried));
          behind.push_back(Copy(carried, state));
        }
      }
      done.push_back(std::move(op));
      std::move(behind.begin(), behind.end(), std::back_inserter(done));
      if (inner >= 0) Run(inner);
    }
    program_.blocks[block].ops = std::move(done);
  }

 private:
  std::vector<VarId> StatesOf(const Op& loop, int32_t block, int32_t inner) {
    const Slot* const inputs = loop.FindInput("X");
    const Slot* const outputs = loop.FindOutput("Out");
    if (inputs == nullptr || outputs == nullptr) return {};
    std::vector<VarId> states;
    for (const VarId id : outputs->args) {
      const Var* const var = declarations_.Find(block, id);
      const bool marked = var != nullptr && var->stop_gradient && !var->persistable &&
                          var->kind == VarKind::kLodTensor && IsDifferentiable(var->dtype);
      if (!marked || !Holds(inputs->args, id) || Holds({states.begin(), states.end()}, id))
        continue;
      const bool is_blocked = std::find(blocked_.begin(), blocked_.end(), id) != blocked_.end();
      if (is_blocked || IsNamed(inner, program_.NameOf(id))) continue;
      if (GetsGradients(inner, id)) states.push_back(id);
    }
    return states;
  }

  // Whether an op of the block, or of those within it, writes it from what is not marked.
  bool GetsGradients(int32_t block, VarId state) {
    for (const Op& op : program_.blocks[block].ops) {
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      if (inner >= 0 && GetsGradients(inner, state)) return true;
      if (inner >= 0 || !Writes(op, state)) continue;
      for (const Slot& slot : op.inputs) {
        for (const VarId id : slot.args) {
          const Var* const var = declarations_.Find(block, id);
          if (id == state || var == nullptr || var->stop_gradient) continue;
          if (IsDifferentiable(var->dtype)) return true;
        }
      }
    }
    return false;
  }

  bool IsNamed(int32_t block, const std::string& name) const {
    for (const Op& op : program_.blocks[block].ops) {
      for (const Attr& attr : op.attrs) {
        if (Names(attr, name)) return true;
      }
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      if (inner >= 0 && IsNamed(inner, name)) return true;
    }
    return false;
  }

  // Lets the loop carry a new variable, which is returned.
  VarId Replace(Op& loop, int32_t block, int32_t inner, VarId state) {
    std::string name = absl::StrCat(program_.NameOf(state), "@CARRIED");
    while (program_.Find(name) >= 0) name += "_";
    Var var = *declarations_.Find(block, state);
    var.id = program_.Intern(name);
    var.stop_gradient = false;
    var.wire = {};
    const VarId carried = var.id;
    declarations_.Add(block, std::move(var));
    Rename(loop, state, carried);
    RenameWithin(inner, state, carried);
    return carried;
  }

  static void Rename(Op& op, VarId from, VarId to) {
    for (std::vector<Slot>* const slots : {&op.inputs, &op.outputs}) {
      for (Slot& slot : *slots) std::replace(slot.args.begin(), slot.args.end(), from, to);
    }
  }

  void RenameWithin(int32_t block, VarId from, VarId to) {
    if (declarations_.FindLocal(block, from) != nullptr) return;  // another one of that name
    for (Op& op : program_.blocks[block].ops) {
      Rename(op, from, to);
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      if (inner >= 0) RenameWithin(inner, from, to);
    }
  }

  static Op Copy(VarId from, VarId to) {
    Op op;
    op.type = "assign";
    AddInput(op, "X", {from});
    AddOutput(op, "Out", {to});
    return op;
  }

  Program& program_;
  const OpRegistry& ops_;
  const std::vector<VarId>& blocked_;
  Declarations declarations_;
};

}  // namespace

bool CarryStatesThroughLoops(const OpRegistry& ops, const std::vector<VarId>& blocked,
                             Program& program) {
  const size_t names = program.names.size();
  Carrier(program, ops, blocked).Run(/*block=*/0);
  return program.names.size() > names;
}

}  // namespace interp
