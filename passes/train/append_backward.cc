// Long because it checks what is asked for, and what stands in the way of it, before it begins.
#include "passes/train/append_backward.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/near_names.h"
#include "core/each_argument.h"
#include "core/gradient.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "passes/import/expand_ops.h"
#include "passes/import/variable_attributes.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"
#include "passes/train/backward_context.h"
#include "passes/train/carried_states.h"
#include "passes/train/earlier_gradients.h"
#include "passes/train/forward_versions.h"
#include "passes/train/gradient_flow.h"
#include "passes/train/gradient_sums.h"
#include "passes/train/recurrent_states.h"
#include "passes/train/skipped_branches.h"
#include "passes/verify.h"

namespace interp {
namespace {

bool IsSparse(const Op& op) {
  const Attr* attr = op.FindAttr("is_sparse");
  const bool* sparse = attr == nullptr ? nullptr : std::get_if<bool>(&attr->value);
  return sparse != nullptr && *sparse;
}

// What differentiating the blocks that ops run has come to, by block.
struct Outcomes {
  // Variables around the block that its gradient brings back to what they were: counters.
  absl::flat_hash_map<int32_t, std::vector<VarId>> undone = {};
  // Of variables that the block writes, those whose gradient goes on to what they were before.
  absl::flat_hash_map<int32_t, absl::flat_hash_set<VarId>> passed = {};
  // Of a gradient block: the gradients that it makes selected rows.
  absl::flat_hash_map<int32_t, absl::flat_hash_set<VarId>> rows = {};
};

// The gradient part of one block.
class BlockBackward {
 public:
  BlockBackward(BackwardContext& context, Outcomes& outcomes, int32_t block, int32_t gradient_block,
                bool in_loop, const ForwardVersions::Caller& caller)
      : context_(context),
        outcomes_(outcomes),
        block_(block),
        gradient_block_(gradient_block),
        sums_(context, block, gradient_block),
        versions_(context, block, in_loop, caller, noted_),
        branches_(context, block, sums_, versions_, noted_) {}

  // Where gradients that come from outside, and that of the loss, are set before Run.
  GradientSums& sums() { return sums_; }
  const ForwardVersions& versions() const { return versions_; }

  absl::Status Run() {
    for (size_t i = context_.program.blocks[block_].ops.size(); i-- > 0;) {
      const absl::Status added = Differentiate(i);
      if (!added.ok()) return Annotate(added, DescribeOp(context_.program, block_, i));
    }
    return absl::OkStatus();
  }

  // What the block overwrites passes nothing on to what it was before, where no op has read that on
  // the way to the loss.
  void EndActivation(const std::vector<VarId>& read) {
    for (const VarId var : read) {
      if (!sums_.IsIncoming(var) || sums_.Has(var)) continue;
      if (context_.IsTensor(block_, var)) sums_.SetZeros(var, versions_.ShapeAt(var, 0));
    }
  }

  // Puts what was made where it belongs.
  void Finish() {
    noted_.PutInto(context_.program.blocks[block_]);
    sums_.Finish();
  }

 private:
  absl::Status Differentiate(size_t index) {
    // Blocks may be added, and this one's ops move.
    Op op = context_.program.blocks[block_].ops[index];
    const OpDef* def = context_.ops.Find(op.type);
    const bool none = def != nullptr && def->gradient.none;
    const int32_t inner = none ? -1 : SubBlockOf(def, op);
    const std::vector<VarId> outputs =
        inner < 0 ? ArgumentsOf(op.outputs) : WrittenBy(context_, op, inner);
    const auto has = [this](VarId id) { return sums_.Has(id); };
    if (!none && std::none_of(outputs.begin(), outputs.end(), has)) {
      return versions_.UndoesUpdate(op, index) ? AddUndo(*def, op, index) : absl::OkStatus();
    }
    if (none || (inner < 0 && !AnyInputDepends(op))) {
      Forget(outputs, /*replaced=*/{});
      return absl::OkStatus();
    }
    if (def == nullptr || !def->gradient.exists()) {
      return Unimplemented("has no gradient, and the loss depends on parameters through it; ",
                           "name its outputs among those without gradient, or its parameters");
    }
    if (versions_.PassesCounting(op)) return AddUndo(*def, op, index);
    if (inner < 0) return AddOps(*def, op, index, -1, outputs);
    return DifferentiateBlock(*def, std::move(op), index, inner, outputs);
  }

  // An op that counts in place, and whose gradient brings the counter back. Gradients of the
  // counter pass it as they are.
  absl::Status AddUndo(const OpDef& def, const Op& op, size_t index) {
    INTERP_ASSIGN_OR_RETURN(std::vector<Op> made, MakeOps(def, op, -1));
    const std::vector<VarId> counter = ArgumentsOf(op.outputs);
    for (Op& undo : made) {
      if (ArgumentsOf(undo.outputs) == counter) versions_.Undo(counter, index);
      sums_.Append(std::move(undo), {}, [](VarId) { return false; });
    }
    return absl::OkStatus();
  }

  // An op that runs block `inner`.
  absl::Status DifferentiateBlock(const OpDef& def, Op op, size_t index, int32_t inner,
                                  const std::vector<VarId>& outputs) {
    INTERP_ASSIGN_OR_RETURN(const int32_t gradient_block, AddBlock(def, op, index, inner));
    INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> kept, branches_.Kept(op, index, outputs));
    // The gradient of the block gives those that it reads, too.
    std::vector<VarId> reads = ArgumentsOf(op.inputs);
    const auto is_read = [&](VarId id) {
      return gradient_block >= 0 && std::find(reads.begin(), reads.end(), id) != reads.end();
    };
    std::vector<VarId> passed;
    for (const VarId id : kept) {
      if (gradient_block >= 0 && !is_read(id) && outcomes_.passed[inner].contains(id)) {
        passed.push_back(id);
      }
    }
    if (!passed.empty()) AddToInput(passed, index, op);
    reads.insert(reads.end(), passed.begin(), passed.end());
    std::vector<std::pair<VarId, GradientSums::Part>> around;
    for (const VarId id : kept) {
      if (!is_read(id)) continue;
      around.emplace_back(id, branches_.PassAround(op, index, id));
      sums_.Rename(around.back().second, id);
    }
    if (gradient_block < 0) {
      Forget(outputs, /*replaced=*/outputs);
    } else {
      INTERP_RETURN_IF_ERROR(AddOps(def, op, index, gradient_block, outputs));
      versions_.Undo(outcomes_.undone[inner], index);
    }
    for (const VarId id : kept) {
      if (is_read(id)) continue;
      if (sums_.IsSource(id)) sums_.AddLater(id, branches_.PassTaken(op, index, id));
      around.emplace_back(id, branches_.PassAround(op, index, id));
    }
    for (const auto& [id, part] : around) sums_.Share(id, part);
    return absl::OkStatus();
  }

  // Lets the op hand on gradients of `vars` from the start of its block: its Input names them.
  void AddToInput(const std::vector<VarId>& vars, size_t index, Op& op) {
    const absl::string_view name = op.FindInput("Params") != nullptr ? "Params" : "Input";
    for (Op* const to : {&op, &context_.program.blocks[block_].ops[index]}) {
      const auto is_input = [&](const Slot& slot) { return slot.name == name; };
      auto slot = std::find_if(to->inputs.begin(), to->inputs.end(), is_input);
      if (slot == to->inputs.end()) {
        slot = to->inputs.insert(slot, Slot{.name = std::string(name), .args = {}});
      }
      for (const VarId id : vars) slot->args.push_back(id);
    }
  }

  bool AnyInputDepends(const Op& op) const {
    const std::vector<VarId> inputs = ArgumentsOf(op.inputs);
    return std::any_of(inputs.begin(), inputs.end(), [&](VarId id) { return context_.Wants(id); });
  }

  // `replaced`: those whose gradients become gradients of earlier versions.
  void Forget(const std::vector<VarId>& outputs, const std::vector<VarId>& replaced) {
    for (const VarId id : outputs) {
      sums_.Forget(id, std::find(replaced.begin(), replaced.end(), id) == replaced.end());
    }
  }

  // Makes the gradient of the block that `op` runs; -1: no gradient flows through it.
  absl::StatusOr<int32_t> AddBlock(const OpDef& def, const Op& op, size_t index, int32_t inner) {
    SubBlock common;
    INTERP_RETURN_IF_ERROR(def.sub_block(context_.program, op, common));
    const auto added = static_cast<int32_t>(context_.program.blocks.size());
    Block& made = context_.program.blocks.emplace_back();
    made.idx = added;
    made.parent_idx = gradient_block_;
    made.forward_block_idx = inner;
    made.has_forward_block_idx = true;
    BlockBackward backward(context_, outcomes_, inner, added, common.saves_captures,
                           {.parent = &versions_, .position = index});
    const std::vector<VarId> outputs = WrittenBy(context_, op, inner);
    const auto bring_in = [&](VarId var) {
      backward.sums().SetIncoming(var);
      const VarId gradient = context_.program.Find(GradientName(context_.program.NameOf(var)));
      backward.sums().MarkRows(gradient, sums_.rows().contains(gradient));
    };
    // What a branch does not say that it writes gets a gradient only where something reads it
    // behind the branch.
    const std::vector<VarId> listed = ArgumentsOf(op.outputs);
    for (const VarId var : outputs) {
      const bool is_listed = std::find(listed.begin(), listed.end(), var) != listed.end();
      if (common.saves_captures || is_listed || sums_.Has(var)) bring_in(var);
    }
    for (const std::string& name : common.results) {
      if (const VarId var = context_.program.Find(name); var >= 0) bring_in(var);
    }
    INTERP_RETURN_IF_ERROR(backward.Run());
    outcomes_.undone[inner] = backward.versions().Undone(outputs);
    for (const VarId var : outputs) {
      if (backward.sums().Has(var)) outcomes_.passed[inner].insert(var);
    }
    if (backward.sums().empty()) {
      context_.declarations.ForgetFrom(added);
      context_.program.blocks.resize(added);
      return -1;
    }
    backward.EndActivation(ArgumentsOf(op.inputs));
    backward.Finish();
    outcomes_.rows[added] = backward.sums().rows();
    return added;
  }

  absl::StatusOr<std::vector<Op>> MakeOps(const OpDef& def, const Op& op, int32_t gradient_block) {
    GradientMaker maker({.program = &context_.program,
                         .block = block_,
                         .op = &op,
                         .gradient_block = gradient_block,
                         .wants = [&](VarId id) { return context_.Wants(id); }});
    if (def.gradient.make != nullptr) {
      INTERP_RETURN_IF_ERROR(def.gradient.make(maker));
    } else {
      maker.AddByTable(def.gradient);
    }
    return maker.Take();
  }

  absl::Status AddOps(const OpDef& def, const Op& op, size_t index, int32_t gradient_block,
                      const std::vector<VarId>& outputs) {
    INTERP_ASSIGN_OR_RETURN(std::vector<Op> made, MakeOps(def, op, gradient_block));
    for (Op& gradient : made) INTERP_RETURN_IF_ERROR(versions_.ReadVersions(gradient, op, index));
    absl::flat_hash_set<VarId> read;
    for (const Op& gradient : made) {
      for (const VarId id : ArgumentsOf(gradient.inputs)) read.insert(id);
    }
    for (const VarId var : outputs) {
      if (!read.contains(context_.GradientOf(var))) continue;
      if (sums_.Has(var)) {
        sums_.AddUp(var);
      } else if (context_.IsTensor(block_, var)) {
        sums_.SetZeros(var, versions_.ShapeAt(var, index + 1));
      }
    }
    Forget(outputs, /*replaced=*/gradient_block < 0 ? ArgumentsOf(op.inputs) : outputs);
    absl::flat_hash_map<VarId, VarId> wanted;  // inputs by their gradients
    for (const VarId id : ArgumentsOf(op.inputs)) {
      if (!made.empty() && context_.Wants(id)) wanted.emplace(context_.GradientOf(id), id);
    }
    for (Op& gradient : made) {
      bool sparse = IsSparse(op);
      if (gradient_block < 0) {
        INTERP_ASSIGN_OR_RETURN(const bool takes_rows, TakesRows(gradient));
        sparse = sparse || takes_rows;
      }
      const auto makes_rows = [&](VarId id) {
        return gradient_block < 0 ? sparse : outcomes_.rows[gradient_block].contains(id);
      };
      sums_.Append(std::move(gradient), wanted, makes_rows);
    }
    return absl::OkStatus();
  }

  // Whether a sparse gradient goes into the op, which then gives selected rows, too. Unimplemented
  // where it needs a tensor.
  absl::StatusOr<bool> TakesRows(const Op& gradient) const {
    const OpDef* const def = context_.ops.Find(gradient.type);
    bool takes = false;
    for (const Slot& slot : gradient.inputs) {
      const int position = def == nullptr ? -1 : def->InputIndex(slot.name);
      for (const VarId id : slot.args) {
        if (position < 0 || !sums_.rows().contains(id)) continue;
        takes = (def->inputs[position].flags & kMayBeRows) != 0;
        if (takes) continue;
        return Unimplemented("op ", gradient.type, " reads '", context_.program.NameOf(id),
                             "', which is sparse: set is_sparse to false where '",
                             absl::StripSuffix(context_.program.NameOf(id), kGradientSuffix),
                             "' is read");
      }
    }
    return takes;
  }

  BackwardContext& context_;
  Outcomes& outcomes_;
  const int32_t block_;
  const int32_t gradient_block_;
  InsertedOps noted_;  // what gradients are to read of the forward part
  GradientSums sums_;
  ForwardVersions versions_;
  SkippedBranches branches_;
};

absl::StatusOr<VarId> FindNamed(const Program& program, const std::string& name,
                                absl::string_view what) {
  const VarId id = program.Find(name);
  if (id >= 0) return id;
  const std::vector<absl::string_view> names(program.names.begin(), program.names.end());
  return NotFound("the program has no variable '", name, "' for ", what,
                  NearNamesHint(name, names));
}

absl::StatusOr<std::vector<VarId>> FindAll(const Program& program,
                                           const std::vector<std::string>& names,
                                           absl::string_view what) {
  std::vector<VarId> ids;
  for (const std::string& name : names) {
    INTERP_ASSIGN_OR_RETURN(const VarId id, FindNamed(program, name, what));
    ids.push_back(id);
  }
  return ids;
}

absl::Status CheckLoss(BackwardContext& context, VarId id) {
  const std::string& name = context.program.NameOf(id);
  const Var* loss = context.declarations.FindLocal(0, id);
  if (loss == nullptr) return NotFound("block 0 declares no variable '", name, "' for the loss");
  const bool one =
      std::all_of(loss->dims.begin(), loss->dims.end(), [](int64_t dim) { return dim == 1; });
  if (loss->kind != VarKind::kLodTensor || !IsFloating(loss->dtype) || !one) {
    return InvalidArgument("the loss '", name, "' is ", Name(loss->dtype), "[",
                           absl::StrJoin(loss->dims, ","), "], expected one float: take its mean");
  }
  return absl::OkStatus();
}

// A program that has the gradient of its loss is one that trains already.
absl::Status CheckLossGradient(const Program& program, VarId loss) {
  const VarId gradient = program.Find(GradientName(program.NameOf(loss)));
  if (gradient < 0) return absl::OkStatus();
  const Block& block = program.blocks[0];
  const bool declared = std::any_of(block.vars.begin(), block.vars.end(),
                                    [gradient](const Var& var) { return var.id == gradient; });
  const bool used = std::any_of(block.ops.begin(), block.ops.end(), [&](const Op& op) {
    return HasArgument(op.inputs, gradient) || HasArgument(op.outputs, gradient);
  });
  if (!declared && !used) return absl::OkStatus();
  return InvalidArgument("the program has a variable '", program.NameOf(gradient),
                         "' already: expected a program without gradients of its loss");
}

Op FillLossGradient(Program& program, const Var& loss) {
  const VarId gradient = program.Intern(GradientName(program.NameOf(loss.id)));
  Op op = MakeOp("fill_constant", {}, {{"Out", {gradient}}});
  SetAttr(op, "shape", std::vector<int64_t>(loss.dims));
  SetAttr(op, "value", 1.0F);
  SetAttr(op, "dtype", static_cast<int32_t>(loss.dtype));
  SetRole(op, kBackwardRole | kLossRole);
  return op;
}

void MarkLoss(Program& program, VarId loss) {
  std::vector<Op>& ops = program.blocks[0].ops;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (HasArgument(op->outputs, loss)) return SetRole(*op, kForwardRole | kLossRole);
  }
}

// What the options name.
struct Named {
  VarId loss = -1;
  std::vector<VarId> blocked;
  std::vector<VarId> sources;
};

// Sets aside the gradients that the program has.
absl::StatusOr<Named> FindNamedVariables(const BackwardOptions& options, Program& program,
                                         EarlierGradients& earlier) {
  Named named;
  INTERP_ASSIGN_OR_RETURN(named.loss, FindNamed(program, options.loss, "the loss"));
  INTERP_ASSIGN_OR_RETURN(named.blocked,
                          FindAll(program, options.no_grad, "those without gradient"));
  INTERP_ASSIGN_OR_RETURN(named.sources, FindAll(program, options.sources, "the sources"));
  INTERP_RETURN_IF_ERROR(CheckLossGradient(program, named.loss));
  INTERP_RETURN_IF_ERROR(earlier.SetAside(program));
  named.loss = earlier.Now(named.loss);
  for (VarId& id : named.blocked) id = earlier.Now(id);
  for (VarId& id : named.sources) id = earlier.Now(id);
  std::sort(named.sources.begin(), named.sources.end());
  named.sources.erase(std::unique(named.sources.begin(), named.sources.end()), named.sources.end());
  return named;
}

// Declares the variables from `first` on that one block alone names. Paddle runs no op whose output
// has no declaration.
void DeclareFrom(Program& program, VarId first) {
  constexpr int32_t kNone = -1;
  constexpr int32_t kSeveral = -2;
  std::vector<int32_t> user(program.names.size() - first, kNone);
  for (const Block& block : program.blocks) {
    const auto note = [&](VarId id) {
      if (id < first) return;
      int32_t& by = user[id - first];
      by = by == kNone || by == block.idx ? block.idx : kSeveral;
    };
    for (const Op& op : block.ops) {
      for (const VarId id : EachArgument(op.inputs)) note(id);
      for (const VarId id : EachArgument(op.outputs)) note(id);
    }
  }
  for (size_t i = 0; i < user.size(); ++i) {
    if (user[i] < 0) continue;
    Var& var = program.blocks[user[i]].vars.emplace_back();
    var.id = first + static_cast<VarId>(i);
  }
}

// The program as it is differentiated.
absl::StatusOr<Program> Verified(Program program, const OpRegistry& ops) {
  INTERP_RETURN_IF_ERROR(VerifyProgram(program, ops));
  // Gradients read what the ops read, which is to be seen of both.
  INTERP_ASSIGN_OR_RETURN(program, BindVariableAttributes(std::move(program), {.ops = ops}));
  // What ops are made of has gradients.
  const VarId first_part = static_cast<VarId>(program.names.size());
  INTERP_ASSIGN_OR_RETURN(program, ExpandOps(std::move(program), {.ops = ops}));
  DeclareFrom(program, first_part);
  return program;
}

}  // namespace

std::vector<VarId> Parameters(const Program& program) {
  std::vector<VarId> marked;
  std::vector<bool> read(program.names.size(), false);
  std::vector<bool> written(program.names.size(), false);
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      for (const Slot& slot : op.inputs) {
        for (const VarId id : slot.args) read[id] = true;
      }
      for (const Slot& slot : op.outputs) {
        for (const VarId id : slot.args) written[id] = true;
      }
    }
  }
  std::vector<VarId> found;
  bool any_marked = false;
  for (const Var& var : program.blocks[0].vars) {
    any_marked = any_marked || var.is_parameter;
    if (!var.persistable || var.kind != VarKind::kLodTensor) continue;
    if (var.stop_gradient || !IsFloating(var.dtype)) continue;
    if (var.is_parameter) marked.push_back(var.id);
    if (read[var.id] && !written[var.id]) found.push_back(var.id);
  }
  return any_marked ? marked : found;
}

absl::StatusOr<BackwardProgram> AppendBackward(Program program, const BackwardOptions& options,
                                               const OpRegistry& ops) {
  INTERP_ASSIGN_OR_RETURN(program, Verified(std::move(program), ops));
  EarlierGradients earlier;
  INTERP_ASSIGN_OR_RETURN(Named named, FindNamedVariables(options, program, earlier));
  const VarId loss = named.loss;
  std::vector<VarId>& sources = named.sources;
  if (sources.empty()) sources = Parameters(program);
  if (sources.empty()) {
    return InvalidArgument("the program has no parameter to train: expected one without the mark ",
                           "stop_gradient");
  }
  INTERP_ASSIGN_OR_RETURN(GradientFlow flow,
                          FindGradientFlow(program, ops, loss, sources, named.blocked));
  // Not before it is known that each block is run by one op.
  const bool carries = CarryStatesThroughBlocks(ops, named.blocked, flow, program);
  if (KeepRecurrentStates(ops, flow, program) || carries) {
    INTERP_ASSIGN_OR_RETURN(flow, FindGradientFlow(program, ops, loss, sources, named.blocked));
  }
  BackwardContext context{.program = program,
                          .ops = ops,
                          .flow = flow,
                          .declarations = Declarations(program),
                          .empty = program.Intern(kEmptyVarName)};
  INTERP_RETURN_IF_ERROR(CheckLoss(context, loss));
  if (!flow.depends[loss]) {
    return InvalidArgument("the loss '", options.loss, "' depends on none of the ", sources.size(),
                           " parameters through ops that have gradients");
  }
  MarkLoss(program, loss);
  Outcomes outcomes;
  BlockBackward backward(context, outcomes, /*block=*/0, /*gradient_block=*/0, /*in_loop=*/false,
                         /*caller=*/{});
  backward.sums().SetSources(sources);
  backward.sums().Set(FillLossGradient(program, *context.declarations.FindLocal(0, loss)), loss);
  INTERP_RETURN_IF_ERROR(backward.Run());
  backward.Finish();
  BackwardProgram result;
  for (const VarId source : backward.sums().given()) {
    result.gradients.push_back({.source = source, .gradient = context.GradientOf(source)});
  }
  INTERP_RETURN_IF_ERROR(earlier.Restore(program));
  for (SourceGradient& given : result.gradients) {
    given = {.source = earlier.After(given.source), .gradient = earlier.After(given.gradient)};
  }
  result.program = std::move(program);
  return result;
}

}  // namespace interp
