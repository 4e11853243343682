#include "passes/train/carried_states.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/differentiable.h"
#include "core/each_argument.h"
#include "passes/copy_beside.h"
#include "passes/declarations.h"
#include "passes/fresh_var.h"
#include "passes/train/gradient_flow.h"

namespace interp {
namespace {

bool ListsName(const Attr& attr, const std::string& name) {
  if (attr.name == "op_callstack" || attr.name == "skip_eager_deletion_vars") return false;
  if (const auto* one = std::get_if<std::string>(&attr.value)) return *one == name;
  if (const auto* many = std::get_if<std::vector<std::string>>(&attr.value)) {
    return absl::c_linear_search(*many, name);
  }
  if (const auto* var = std::get_if<VarName>(&attr.value)) return var->name == name;
  const auto* vars = std::get_if<VarNames>(&attr.value);
  return vars != nullptr && absl::c_linear_search(vars->names, name);
}

bool IsDifferentiableTensor(const Var& var) {
  return var.kind == VarKind::kLodTensor &&
         (var.dtype == DType::kUndefined || IsDifferentiable(var.dtype));
}

class Carrier {
 public:
  Carrier(Program& program, const OpRegistry& ops, const std::vector<VarId>& blocked,
          const GradientFlow& flow)
      : program_(program),
        ops_(ops),
        blocked_(blocked),
        flow_(flow),
        declarations_(program),
        written_(program.names.size()) {}

  // Enclosing blocks first: within them nothing is marked any more.
  void Run(int32_t block) {
    std::vector<Op> done;
    for (Op& op : std::exchange(program_.blocks[block].ops, {})) {
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      std::vector<Op> behind;
      const bool carries = op.type == "while" || op.type == "conditional_block";
      if (carries && inner >= 0 && GetsGradients(inner)) {
        for (const VarId state : StatesOf(op, block, inner)) {
          Carry(state, op, block, inner, done, behind);
        }
      }
      NoteWritten(op);
      done.push_back(std::move(op));
      std::move(behind.begin(), behind.end(), std::back_inserter(done));
      if (inner >= 0) Run(inner);
    }
    program_.blocks[block].ops = std::move(done);
  }

 private:
  void Carry(VarId state, Op& op, int32_t block, int32_t inner, std::vector<Op>& before,
             std::vector<Op>& behind) {
    const std::vector<VarId> detached = DetachedFrom(state, op);
    const VarId carried = Replace(op, block, inner, state, /*stop_gradient=*/false);
    before.push_back(CopyBeside(op, "assign", state, carried));
    behind.push_back(CopyBeside(op, "assign", carried, state));
    for (const VarId id : detached) {
      const VarId follows = Replace(op, block, inner, id, /*stop_gradient=*/true);
      before.push_back(CopyBeside(op, "share_data", carried, follows));
    }
  }

  void NoteWritten(const Op& op) {
    for (const VarId id : EachArgument(op.outputs)) {
      if (id >= std::ssize(written_)) written_.resize(id + 1);
      written_[id] = true;
    }
    const Slot* const x = op.FindInput("X");
    if (op.type != "share_data" || x == nullptr || x->args.empty()) return;
    for (const VarId id : EachArgument(op.outputs)) shares_.emplace_back(x->args[0], id);
  }

  // Whether a variable that ops of the block read depends on what gradients are asked for.
  bool GetsGradients(int32_t block) const {
    for (const Op& op : program_.blocks[block].ops) {
      for (const VarId id : EachArgument(op.inputs)) {
        if (id < std::ssize(flow_.depends) && flow_.depends[id]) return true;
      }
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      if (inner >= 0 && GetsGradients(inner)) return true;
    }
    return false;
  }

  std::vector<VarId> StatesOf(const Op& op, int32_t block, int32_t inner) {
    const Slot* const outputs = op.FindOutput("Out");
    if (outputs == nullptr) return {};
    std::vector<VarId> candidates;
    for (const VarId id : outputs->args) {
      const Var* const var = declarations_.Find(block, id);
      const bool marked =
          var != nullptr && var->stop_gradient && !var->persistable && IsDifferentiableTensor(*var);
      const bool is_loop = op.type == "while";
      if (!marked || (is_loop && !HasArgument(op.inputs, id))) continue;
      if (absl::c_linear_search(candidates, id)) continue;
      if (absl::c_linear_search(blocked_, id) || IsNamed(inner, program_.NameOf(id))) continue;
      if (HasValue(*var) || (is_loop && IsReadFirst(inner, id))) candidates.push_back(id);
    }
    // One state may be written from another one alone.
    std::vector<VarId> states;
    size_t erased = 0;
    do {
      erased = std::erase_if(candidates, [&](VarId id) {
        const bool found = IsWrittenFrom(inner, id, states);
        if (found) states.push_back(id);
        return found;
      });
    } while (erased > 0);
    return states;
  }

  // A loop lists among its inputs what its block makes in each trip, too, which has none before.
  bool HasValue(const Var& var) const {
    return var.need_check_feed || (var.id < std::ssize(written_) && written_[var.id]);
  }

  bool IsReadFirst(int32_t block, VarId id) const {
    for (const Op& op : program_.blocks[block].ops) {
      if (HasArgument(op.inputs, id)) return true;
      if (HasArgument(op.outputs, id)) return false;
    }
    return false;
  }

  // Whether an op of the block, or of those within it, writes it from what is not marked or is one
  // of `states`.
  bool IsWrittenFrom(int32_t block, VarId state, const std::vector<VarId>& states) {
    for (const Op& op : program_.blocks[block].ops) {
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      if (inner >= 0 && IsWrittenFrom(inner, state, states)) return true;
      if (inner >= 0 || !HasArgument(op.outputs, state)) continue;
      for (const VarId id : EachArgument(op.inputs)) {
        if (id == state) continue;
        const Var* const var = declarations_.Find(block, id);
        if (var == nullptr || !IsDifferentiableTensor(*var)) continue;
        if (!var->stop_gradient || absl::c_linear_search(states, id)) return true;
      }
    }
    return false;
  }

  bool IsNamed(int32_t block, const std::string& name) const {
    for (const Op& op : program_.blocks[block].ops) {
      for (const Attr& attr : op.attrs) {
        if (ListsName(attr, name)) return true;
      }
      const int32_t inner = SubBlockOf(ops_.Find(op.type), op);
      if (inner >= 0 && IsNamed(inner, name)) return true;
    }
    return false;
  }

  // What the op reads that shares the memory of the state, and so is what its block writes.
  std::vector<VarId> DetachedFrom(VarId state, const Op& op) const {
    std::vector<VarId> sharing = {state};
    std::vector<VarId> detached;
    for (const auto& [from, to] : shares_) {
      if (!absl::c_linear_search(sharing, from) || absl::c_linear_search(sharing, to)) continue;
      sharing.push_back(to);
      if (HasArgument(op.inputs, to)) detached.push_back(to);
    }
    return detached;
  }

  // Lets the op and its block have a new variable instead, which is returned.
  VarId Replace(Op& op, int32_t block, int32_t inner, VarId state, bool stop_gradient) {
    Var var = *declarations_.Find(block, state);
    var.id = FreshVar(program_, absl::StrCat(program_.NameOf(state), "@CARRIED"));
    var.stop_gradient = stop_gradient;
    var.need_check_feed = false;
    var.wire = {};
    const VarId carried = var.id;
    declarations_.Add(block, std::move(var));
    Rename(op, state, carried);
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

  Program& program_;
  const OpRegistry& ops_;
  const std::vector<VarId>& blocked_;
  const GradientFlow& flow_;  // of the program before any change
  Declarations declarations_;
  std::vector<bool> written_;                    // by VarId: by the ops so far
  std::vector<std::pair<VarId, VarId>> shares_;  // what share_data gives the memory of what, so far
};

}  // namespace

bool CarryStatesThroughBlocks(const OpRegistry& ops, const std::vector<VarId>& blocked,
                              const GradientFlow& flow, Program& program) {
  const size_t names = program.names.size();
  Carrier(program, ops, blocked, flow).Run(/*block=*/0);
  return program.names.size() > names;
}

}  // namespace interp
