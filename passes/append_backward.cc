// Long because the ops of a block and the bookkeeping of their gradients change together.
#include "passes/append_backward.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "core/gradient.h"
#include "core/near_names.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "passes/declarations.h"
#include "passes/gradient_flow.h"
#include "passes/op_effects.h"
#include "passes/variable_attributes.h"

namespace interp {
namespace {

bool IsSparse(const Op& op) {
  const Attr* attr = op.FindAttr("is_sparse");
  const bool* sparse = attr == nullptr ? nullptr : std::get_if<bool>(&attr->value);
  return sparse != nullptr && *sparse;
}

// What all blocks share.
struct Context {
  Program& program;
  const OpRegistry& ops;
  const GradientFlow& flow;
  Declarations declarations;
  VarId empty;
  // Gradients that are selected rows.
  absl::flat_hash_set<VarId> sparse = {};
  // How many names the gradients of a variable have got beside the plain one.
  absl::flat_hash_map<VarId, int> renamed = {};
  // Variables around a block that its gradient brings back to what they were: counters.
  absl::flat_hash_map<int32_t, std::vector<VarId>> undone = {};
  // Of variables that a block writes, those whose gradient goes on to what they were before.
  absl::flat_hash_map<int32_t, absl::flat_hash_set<VarId>> passed = {};
};

// The gradient part of one block.
class BlockBackward {
 public:
  // `parent` runs the block by the op at `position`; null for block 0.
  BlockBackward(Context& context, int32_t block, int32_t gradient_block, bool in_loop,
                const BlockBackward* parent, size_t position)
      : context_(context),
        block_(block),
        gradient_block_(gradient_block),
        in_loop_(in_loop),
        parent_(parent),
        position_(position) {}

  // The gradient of a variable comes from outside the block, under its plain name.
  void SetIncoming(VarId var) {
    // Attributes may name what became a variable here.
    if (var >= std::ssize(context_.flow.reached) || !context_.flow.reached[var]) return;
    gradients_[var] = {Part{}};
    incoming_.insert(var);
  }
  // An op of the caller's gives the gradient of `var`.
  void Seed(Op op, VarId var) {
    ops_.push_back(std::move(op));
    gradients_[var] = {Part{.op = 0, .slot = 0, .arg = 0}};
  }

  absl::Status Run() {
    const size_t num_ops = context_.program.blocks[block_].ops.size();
    for (size_t i = 0; i < num_ops; ++i) NoteWrites(i);
    if (in_loop_) updated_ = UpdatedInPlace(context_.program.blocks[block_]);
    for (size_t i = num_ops; i-- > 0;) {
      const absl::Status added = Differentiate(i);
      if (!added.ok()) return Annotate(added, DescribeOp(context_.program, block_, i));
    }
    return absl::OkStatus();
  }

  // Whether the gradient of a variable has been made, as it is where the block starts.
  bool Has(VarId var) const { return gradients_.contains(var); }
  // Adds the sums that are still due, declares all gradients and moves the ops into the gradient
  // block. `sources` get op_role_var.
  void Finish(const std::vector<VarId>& sources) {
    AddNoted();
    AddLastSums();
    for (const VarId source : sources) NoteSource(source);
    for (const Op& op : ops_) Declare(op);
    std::vector<Op>& to = context_.program.blocks[gradient_block_].ops;
    for (Op& op : ops_) to.push_back(std::move(op));
  }

 private:
  // One op's share of a gradient: argument `arg` of output slot `slot` of ops_[op]; -1: it comes
  // from outside.
  struct Part {
    int op = -1;
    int slot = 0;
    int arg = 0;
  };

  void NoteWrites(size_t index) {
    const Op& op = context_.program.blocks[block_].ops[index];
    std::vector<VarId> written = ArgumentsOf(op.outputs);
    const int32_t inner = SubBlockOf(context_.ops.Find(op.type), op);
    if (inner >= 0) AddWrites(inner, written);
    const bool on_path =
        std::any_of(written.begin(), written.end(), [this](VarId id) { return IsOnPath(id); });
    if (on_path) {
      for (const VarId id : ArgumentsOf(op.inputs)) first_reads_.try_emplace(id, index);
    }
    for (const VarId id : written) {
      if (LeavesUntouched(op, id)) continue;
      std::vector<size_t>& writers = writers_[id];
      if (writers.empty() || writers.back() != index) writers.push_back(index);
    }
  }

  VarId GradientOf(VarId var) {
    return context_.program.Intern(GradientName(context_.program.NameOf(var)));
  }

  absl::Status Differentiate(size_t index) {
    // Blocks may be added, and this one's ops move.
    Op op = context_.program.blocks[block_].ops[index];
    const OpDef* def = context_.ops.Find(op.type);
    if (def != nullptr && def->gradient.none) return Forget(ArgumentsOf(op.outputs));
    const int32_t inner = SubBlockOf(def, op);
    const std::vector<VarId> outputs = inner < 0 ? ArgumentsOf(op.outputs) : OutputsOf(op, inner);
    if (std::none_of(outputs.begin(), outputs.end(), [&](VarId id) { return Has(id); })) {
      if (!UndoesUpdate(op, index)) return absl::OkStatus();
      INTERP_ASSIGN_OR_RETURN(std::vector<Op> made, MakeOps(*def, op, -1));
      const std::vector<VarId> counter = ArgumentsOf(op.outputs);
      for (Op& undo : made) {
        if (ArgumentsOf(undo.outputs) == counter) Undo(counter, index);
        Append(std::move(undo), {}, /*sparse=*/false);
      }
      return absl::OkStatus();
    }
    if (inner < 0 && !AnyInputDepends(op)) return Forget(outputs);
    if (def == nullptr || !def->gradient.exists()) {
      return Unimplemented("has no gradient, and the loss depends on parameters through it; ",
                           "name its outputs among those without gradient, or its parameters");
    }
    if (inner < 0) return AddOps(*def, op, index, -1, outputs);
    return DifferentiateBlock(*def, std::move(op), index, inner, outputs);
  }

  // An op that runs block `inner`.
  absl::Status DifferentiateBlock(const OpDef& def, Op op, size_t index, int32_t inner,
                                  const std::vector<VarId>& outputs) {
    INTERP_ASSIGN_OR_RETURN(const int32_t gradient_block, AddBlock(def, op, index, inner));
    const std::vector<VarId> kept = KeptWhereSkipped(op, index, outputs);
    // The gradient of the block gives those that it reads, too.
    std::vector<VarId> reads = ArgumentsOf(op.inputs);
    const auto is_read = [&](VarId id) {
      return gradient_block >= 0 && std::find(reads.begin(), reads.end(), id) != reads.end();
    };
    std::vector<VarId> passed;
    for (const VarId id : kept) {
      if (gradient_block >= 0 && !is_read(id) && context_.passed[inner].contains(id)) {
        passed.push_back(id);
      }
    }
    if (!passed.empty()) AddToInput(passed, index, op);
    reads.insert(reads.end(), passed.begin(), passed.end());
    std::vector<std::pair<VarId, Part>> around;
    for (const VarId id : kept) {
      if (!is_read(id)) continue;
      around.emplace_back(id, PassAround(op, index, id));
      Rename(around.back().second, id);
    }
    if (gradient_block < 0) {
      INTERP_RETURN_IF_ERROR(Forget(outputs));
    } else {
      INTERP_RETURN_IF_ERROR(AddOps(def, op, index, gradient_block, outputs));
      Undo(context_.undone[inner], index);
    }
    for (const VarId id : kept) {
      if (!is_read(id)) around.emplace_back(id, PassAround(op, index, id));
    }
    for (const auto& [id, part] : around) gradients_[id].push_back(part);
    return absl::OkStatus();
  }

  // What says whether an op runs its block: a tensor of one element. Nothing for other ops.
  static std::optional<VarId> ConditionOf(const Op& op) {
    const Attr* const scalar = op.FindAttr("is_scalar_condition");
    if (op.type != "conditional_block" || scalar == nullptr) return std::nullopt;
    const bool* const said = std::get_if<bool>(&scalar->value);
    const int32_t* const number = std::get_if<int32_t>(&scalar->value);  // of old programs
    if (!(said != nullptr && *said) && !(number != nullptr && *number != 0)) return std::nullopt;
    for (const absl::string_view slot : {"Cond", "X"}) {
      const Slot* const condition = op.FindInput(slot);
      if (condition != nullptr && condition->args.size() == 1) return condition->args[0];
    }
    return std::nullopt;
  }

  // The variables that a block overwrites where it runs, and that are what they were before, with
  // their gradients, where it does not.
  std::vector<VarId> KeptWhereSkipped(const Op& op, size_t index,
                                      const std::vector<VarId>& outputs) {
    std::vector<VarId> kept;
    if (!ConditionOf(op).has_value()) return kept;
    for (const VarId id : outputs) {
      if (!Has(id) || !Wants(id) || !IsTensor(id)) continue;
      if (!HasValueBefore(id, index)) continue;
      AddUp(id);
      if (!context_.sparse.contains(GradientOf(id))) kept.push_back(id);
    }
    return kept;
  }
  bool HasValueBefore(VarId id, size_t index) {
    const auto writers = writers_.find(id);
    if (writers != writers_.end() && !writers->second.empty() && writers->second[0] < index) {
      return true;
    }
    const Var* const local = context_.declarations.FindLocal(block_, id);
    if (local == nullptr) return block_ != 0;
    return local->persistable || local->need_check_feed;
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

  // Adds ops that give the gradient of `var` before `op`, whose block overwrites it: what it is
  // behind the op where the block does not run, else 0. What says so is noted before the op, as it
  // may change later.
  Part PassAround(const Op& op, size_t index, VarId var) {
    const VarId condition = *ConditionOf(op);
    const VarId gradient = GradientOf(var);
    const std::string name = context_.program.NameOf(gradient);
    const VarId zeros = context_.program.Intern(absl::StrCat(name, "@ZERO"));
    const VarId taken = NoteTaken(condition, index);
    Op zero = ZerosLike(var);
    zero.inputs[0].args[0] = gradient;
    zero.outputs[0].args[0] = zeros;
    Op select;
    select.type = "select_input";
    AddInput(select, "X", {gradient, zeros});
    AddInput(select, "Mask", {taken});
    AddOutput(select, "Out", {gradient});
    for (Op* const made : {&zero, &select}) {
      SetRole(*made, kBackwardRole);
      ops_.push_back(std::move(*made));
    }
    return Part{.op = static_cast<int>(ops_.size()) - 1, .slot = 0, .arg = 0};
  }

  // The condition of op `index` as a number, computed before it.
  VarId NoteTaken(VarId condition, size_t index) {
    const VarId taken =
        context_.program.Intern(absl::StrCat(context_.program.NameOf(condition), "@TAKEN@", index));
    if (context_.declarations.FindLocal(block_, taken) != nullptr) return taken;
    Var declared = {.id = taken, .dtype = DType::kInt32, .dims = {1}, .stop_gradient = true};
    const Var* const like = context_.declarations.Find(block_, condition);
    if (like != nullptr) declared.dims = like->dims;
    context_.declarations.Add(block_, std::move(declared));
    Op cast;
    cast.type = "cast";
    AddInput(cast, "X", {condition});
    AddOutput(cast, "Out", {taken});
    SetAttr(cast, "in_dtype", static_cast<int32_t>(DType::kBool));
    SetAttr(cast, "out_dtype", static_cast<int32_t>(DType::kInt32));
    SetRole(cast, kForwardRole);
    noted_.emplace_back(index, std::move(cast));
    return taken;
  }
  // Puts what was noted into the forward part.
  void AddNoted() {
    if (noted_.empty()) return;
    std::vector<Op>& ops = context_.program.blocks[block_].ops;
    std::vector<Op> all;
    all.reserve(ops.size() + noted_.size());
    auto next = noted_.rbegin();
    for (size_t i = 0; i < ops.size(); ++i) {
      for (; next != noted_.rend() && next->first == i; ++next) {
        all.push_back(std::move(next->second));
      }
      all.push_back(std::move(ops[i]));
    }
    ops = std::move(all);
    noted_.clear();
  }

  // From here on the variables are what they were before op `index` wrote them.
  void Undo(const std::vector<VarId>& vars, size_t index) {
    for (const VarId id : vars) {
      const auto writers = writers_.find(id);
      if (writers == writers_.end() || writers->second.empty()) continue;
      if (writers->second.back() == index) writers->second.pop_back();
    }
  }
  // Of variables that the block writes, those that its gradient has brought back to what they were.
  std::vector<VarId> Undone(std::vector<VarId> written) const {
    std::erase_if(written, [this](VarId id) {
      const auto writers = writers_.find(id);
      return writers == writers_.end() || !writers->second.empty();
    });
    return written;
  }

  bool AnyInputDepends(const Op& op) const {
    const std::vector<VarId> inputs = ArgumentsOf(op.inputs);
    return std::any_of(inputs.begin(), inputs.end(), [&](VarId id) { return Wants(id); });
  }

  // Counting in place: what reads the counter on the way back finds it as it was, because the
  // gradient of `increment` counts down. Outside of loops only a counter whose earlier values
  // gradients may ask for does so.
  bool UndoesUpdate(const Op& op, size_t index) {
    if (!IsCounting(op)) return false;
    if (in_loop_) return true;
    const VarId id = ArgumentsOf(op.inputs)[0];
    const Var* counter = context_.declarations.FindLocal(block_, id);
    const auto read = first_reads_.find(id);
    return counter != nullptr && !counter->persistable && read != first_reads_.end() &&
           read->second < index;
  }

  // Earlier versions of the outputs have nothing to do with what comes later.
  absl::Status Forget(const std::vector<VarId>& outputs) {
    for (const VarId id : outputs) {
      // An op that writes an array changes one element and leaves the others.
      if (IsTensor(id)) gradients_.erase(id);
    }
    return absl::OkStatus();
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
    BlockBackward backward(context_, inner, added, common.saves_captures, this, index);
    for (const VarId var : OutputsOf(op, inner)) backward.SetIncoming(var);
    for (const std::string& name : common.results) {
      if (const VarId var = context_.program.Find(name); var >= 0) backward.SetIncoming(var);
    }
    INTERP_RETURN_IF_ERROR(backward.Run());
    context_.undone[inner] = backward.Undone(OutputsOf(op, inner));
    for (const VarId var : OutputsOf(op, inner)) {
      if (backward.Has(var)) context_.passed[inner].insert(var);
    }
    if (backward.ops_.empty()) {
      context_.declarations.ForgetFrom(added);
      context_.program.blocks.resize(added);
      return -1;
    }
    if (common.saves_captures) backward.EndIteration(ArgumentsOf(op.inputs));
    backward.Finish({});
    return added;
  }

  // In a loop, what the block overwrites without having read it passes nothing on to the iteration
  // before.
  void EndIteration(const std::vector<VarId>& carried) {
    for (const VarId var : carried) {
      if (!incoming_.contains(var) || Has(var) || !IsTensor(var)) continue;
      ops_.push_back(ZerosLike(var));
      gradients_[var] = {Part{.op = static_cast<int>(ops_.size()) - 1, .slot = 0, .arg = 0}};
    }
  }

  static std::vector<VarId> ArgumentsOf(const std::vector<Slot>& slots) {
    std::vector<VarId> args;
    for (const Slot& slot : slots) args.insert(args.end(), slot.args.begin(), slot.args.end());
    return args;
  }

  // What an op with a block writes: its outputs, and the variables around the block that the ops of
  // the block write.
  std::vector<VarId> OutputsOf(const Op& op, int32_t inner) {
    std::vector<VarId> written = ArgumentsOf(op.outputs);
    AddWrites(inner, written);
    std::sort(written.begin(), written.end());
    written.erase(std::unique(written.begin(), written.end()), written.end());
    return written;
  }
  void AddWrites(int32_t block, std::vector<VarId>& written) {
    for (const Op& op : context_.program.blocks[block].ops) {
      std::vector<VarId> outputs = ArgumentsOf(op.outputs);
      const int32_t inner = SubBlockOf(context_.ops.Find(op.type), op);
      if (inner >= 0) AddWrites(inner, outputs);
      for (const VarId id : outputs) {
        if (id == context_.empty || context_.declarations.FindLocal(block, id) != nullptr) continue;
        written.push_back(id);
      }
    }
  }

  // What a gradient reads of the forward part is to be as it was at the op.
  absl::Status CheckVersions(const Op& gradient, const Op& forward, size_t index) {
    const OpDef* def = context_.ops.Find(gradient.type);
    for (const Slot& slot : gradient.inputs) {
      const int position = def == nullptr ? -1 : def->InputIndex(slot.name);
      if (position >= 0 && (def->inputs[position].flags & kNoNeedBuffer) != 0) continue;
      for (const VarId id : slot.args) {
        const bool outside = context_.declarations.FindLocal(block_, id) == nullptr;
        INTERP_RETURN_IF_ERROR(block_ != 0 && outside ? CheckOutside(forward, slot.name, id, index)
                                                      : CheckLater(forward, slot.name, id, index));
      }
    }
    return absl::OkStatus();
  }

  // No op writes the variable after op `index` has used it.
  absl::Status CheckLater(const Op& forward, const std::string& slot, VarId id,
                          size_t index) const {
    const auto writers = writers_.find(id);
    if (writers == writers_.end() || writers->second.empty()) return absl::OkStatus();
    const size_t last = writers->second.back();
    const bool own = last == index && IsOverwritten(forward, slot);
    return last > index || own ? WritesAgain(id, last) : absl::OkStatus();
  }

  absl::Status WritesAgain(VarId id, size_t writer) const {
    return InvalidArgument("the gradient reads '", context_.program.NameOf(id),
                           "' as it was here, but ", DescribeOp(context_.program, block_, writer),
                           " writes it again: expected another variable there");
  }

  // The same for a floating variable of a block around this one. A loop keeps what it was when a
  // trip started, unless an op of the trip has it as input and output. Then it is what the last
  // trip has left, and outside of loops what it is at the end; counters are brought back.
  absl::Status CheckOutside(const Op& forward, const std::string& slot, VarId id, size_t index) {
    const Var* const declared = context_.declarations.Find(block_, id);
    if (declared == nullptr || declared->kind != VarKind::kLodTensor ||
        !IsFloating(declared->dtype)) {
      return absl::OkStatus();
    }
    const BlockBackward* const keeper = KeeperOf(id);
    size_t position = index;
    for (const BlockBackward* at = this; at != nullptr;
         position = at->position_, at = at->parent_) {
      const bool around = !at->Declares(id);
      for (const size_t writer : at->WritersOf(id)) {
        const Op& op = context_.program.blocks[at->block_].ops[writer];
        if (IsIdentity(op)) continue;
        const bool own = at == this && writer == index;
        const bool early = writer < position || (own && forward.FindOutput(slot) != nullptr);
        const bool late = writer > position || (own && IsOverwritten(forward, slot));
        const bool other_trip = at->in_loop_ && around && !IsCounting(op);
        if (keeper != nullptr ? early : late || other_trip) return at->WritesAgain(id, writer);
      }
      if (at == keeper || !around) break;
    }
    return absl::OkStatus();
  }

  // The loop that keeps the variable for its gradient, of the blocks from this one outwards to that
  // which declares it. Null: none does.
  const BlockBackward* KeeperOf(VarId id) const {
    for (const BlockBackward* at = this; at != nullptr && !at->Declares(id); at = at->parent_) {
      if (at->in_loop_ && !at->updated_.contains(id)) return at;
    }
    return nullptr;
  }

  bool Declares(VarId id) const { return context_.declarations.FindLocal(block_, id) != nullptr; }
  const std::vector<size_t>& WritersOf(VarId id) const {
    static const std::vector<size_t> kNone;
    const auto found = writers_.find(id);
    return found == writers_.end() ? kNone : found->second;
  }
  // A loop's trip assigns what it passes on unchanged to itself.
  static bool IsIdentity(const Op& op) {
    return op.type == "assign" && ArgumentsOf(op.inputs) == ArgumentsOf(op.outputs);
  }
  // Whether an op's gradient brings the only variable that it has back to what it was.
  bool IsCounting(const Op& op) const {
    const OpDef* const def = context_.ops.Find(op.type);
    const std::vector<VarId> inputs = ArgumentsOf(op.inputs);
    return def != nullptr && def->gradient.make != nullptr && inputs.size() == 1 &&
           inputs == ArgumentsOf(op.outputs);
  }

  // Whether the slot is an input of the op that the op writes itself.
  static bool IsOverwritten(const Op& op, const std::string& slot) {
    const Slot* input = op.FindInput(slot);
    if (input == nullptr || op.FindOutput(slot) != nullptr) return false;
    const std::vector<VarId> outputs = ArgumentsOf(op.outputs);
    return std::any_of(input->args.begin(), input->args.end(), [&](VarId id) {
      return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
    });
  }

  absl::StatusOr<std::vector<Op>> MakeOps(const OpDef& def, const Op& op, int32_t gradient_block) {
    GradientMaker maker({.program = &context_.program,
                         .block = block_,
                         .op = &op,
                         .gradient_block = gradient_block,
                         .wants = [&](VarId id) { return Wants(id); }});
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
    for (const Op& gradient : made) INTERP_RETURN_IF_ERROR(CheckVersions(gradient, op, index));
    absl::flat_hash_set<VarId> read;
    for (const Op& gradient : made) {
      for (const VarId id : ArgumentsOf(gradient.inputs)) read.insert(id);
    }
    for (const VarId var : outputs) {
      if (!read.contains(GradientOf(var))) continue;
      if (Has(var)) {
        AddUp(var);
      } else if (IsTensor(var)) {
        ops_.push_back(ZerosLike(var));
        gradients_[var] = {Part{.op = static_cast<int>(ops_.size()) - 1, .slot = 0, .arg = 0}};
      }
    }
    INTERP_RETURN_IF_ERROR(Forget(outputs));
    absl::flat_hash_map<VarId, VarId> wanted;  // inputs by their gradients
    for (const VarId id : ArgumentsOf(op.inputs)) {
      if (!made.empty() && Wants(id)) wanted.emplace(GradientOf(id), id);
    }
    for (Op& gradient : made) Append(std::move(gradient), wanted, IsSparse(op));
    return absl::OkStatus();
  }

  // Whether the loss depends on it and it on what gradients are asked for.
  bool IsOnPath(VarId id) const {
    return id < std::ssize(context_.flow.reached) && Wants(id) && context_.flow.reached[id];
  }

  bool Wants(VarId id) const { return id != context_.empty && context_.flow.depends[id]; }

  bool IsTensor(VarId var) {
    const Var* declared = context_.declarations.Find(block_, var);
    return declared == nullptr || declared->kind == VarKind::kLodTensor;
  }

  Op ZerosLike(VarId var) {
    Op op;
    op.type = "fill_any_like";
    AddInput(op, "X", {var});
    AddOutput(op, "Out", {GradientOf(var)});
    SetAttr(op, "value", 0.0F);
    SetAttr(op, "dtype", int32_t{-1});
    SetRole(op, kBackwardRole);
    return op;
  }

  // Makes the gradient of a variable one value under its plain name.
  void AddUp(VarId var) {
    std::vector<Part>& parts = gradients_[var];
    if (parts.size() < 2) return;
    ops_.push_back(Sum(var, parts));
    parts = {Part{.op = static_cast<int>(ops_.size()) - 1, .slot = 0, .arg = 0}};
  }

  Op Sum(VarId var, const std::vector<Part>& parts) {
    Op sum;
    sum.type = "sum";
    ArgIds names;
    bool sparse = true;
    for (const Part& part : parts) {
      names.push_back(NameOf(part, var));
      sparse = sparse && context_.sparse.contains(names.back());
    }
    AddInput(sum, "X", std::move(names));
    AddOutput(sum, "Out", {GradientOf(var)});
    if (sparse) {
      context_.sparse.insert(GradientOf(var));
    } else {
      context_.sparse.erase(GradientOf(var));
    }
    SetRole(sum, kBackwardRole);
    return sum;
  }

  VarId NameOf(const Part& part, VarId var) {
    return part.op < 0 ? GradientOf(var) : ops_[part.op].outputs[part.slot].args[part.arg];
  }

  // Puts a gradient op behind the others and notes which gradients it gives, of those `wanted`.
  void Append(Op made, const absl::flat_hash_map<VarId, VarId>& wanted, bool sparse) {
    std::erase_if(made.attrs, [](const Attr& attr) {
      return attr.name == "op_callstack" || attr.name == "op_role_var";
    });
    SetRole(made, kBackwardRole);
    const std::vector<VarId> args = ArgumentsOf(made.inputs);
    const absl::flat_hash_set<VarId> read(args.begin(), args.end());
    ops_.push_back(std::move(made));
    const int position = static_cast<int>(ops_.size()) - 1;
    for (int slot = 0; slot < std::ssize(ops_[position].outputs); ++slot) {
      for (int arg = 0; arg < std::ssize(ops_[position].outputs[slot].args); ++arg) {
        const auto found = wanted.find(ops_[position].outputs[slot].args[arg]);
        if (found == wanted.end()) continue;
        const Part part{.op = position, .slot = slot, .arg = arg};
        if (read.contains(found->first)) {
          gradients_[found->second] = {part};  // it takes the gradient and gives it back
        } else {
          AddPart(found->second, part);
        }
        if (sparse) context_.sparse.insert(ops_[position].outputs[slot].args[arg]);
      }
    }
  }

  void AddPart(VarId var, Part part) {
    std::vector<Part>& parts = gradients_[var];
    if (!parts.empty()) {
      if (parts.size() == 1 && parts[0].op >= 0 && !KeepsPlainName(parts[0], var)) {
        Rename(parts[0], var);
      }
      Rename(part, var);
    }
    parts.push_back(part);
  }

  // Whether the first part of a gradient may not be renamed. Paddle's while_grad finds the
  // gradients it carries by their plain names, and behind the op of the part only gradients of
  // arrays may have been read: each reader takes one element.
  bool KeepsPlainName(const Part& part, VarId var) {
    const VarId plain = GradientOf(var);
    const auto reads_plain = [&](const Op& op) {
      const std::vector<VarId> inputs = ArgumentsOf(op.inputs);
      return std::find(inputs.begin(), inputs.end(), plain) != inputs.end();
    };
    if (reads_plain(ops_[part.op])) return true;
    return !IsTensor(var) && std::any_of(ops_.begin() + part.op + 1, ops_.end(), reads_plain);
  }

  void Rename(const Part& part, VarId var) {
    const VarId plain = GradientOf(var);
    const int number = context_.renamed[plain]++;
    const VarId name = context_.program.Intern(absl::StrCat(
        context_.program.NameOf(plain), "@RENAME@block", gradient_block_, "@", number));
    if (context_.sparse.contains(plain)) context_.sparse.insert(name);
    ops_[part.op].outputs[part.slot].args[part.arg] = name;
  }

  // The sums of gradients that no op of the block has read, each behind the last of its parts.
  void AddLastSums() {
    std::vector<std::pair<int, VarId>> due;
    for (const auto& [var, parts] : gradients_) {
      if (parts.size() < 2) continue;
      const auto by_op = [](const Part& a, const Part& b) { return a.op < b.op; };
      due.emplace_back(std::max_element(parts.begin(), parts.end(), by_op)->op, var);
    }
    std::sort(due.begin(), due.end());
    std::vector<std::pair<int, Op>> sums;
    sums.reserve(due.size());
    for (const auto& [after, var] : due) sums.emplace_back(after, Sum(var, gradients_[var]));
    for (const auto& [after, var] : due) sum_of_.emplace(var, 0);
    std::vector<Op> old = std::move(ops_);
    ops_.clear();
    moved_.clear();
    auto next = sums.begin();
    for (int i = 0; i < std::ssize(old); ++i) {
      moved_.push_back(static_cast<int>(ops_.size()));
      ops_.push_back(std::move(old[i]));
      for (; next != sums.end() && next->first == i; ++next) {
        sum_of_[due[next - sums.begin()].second] = static_cast<int>(ops_.size());
        ops_.push_back(std::move(next->second));
      }
    }
  }

  // The op that gives the whole gradient says whose it is.
  void NoteSource(VarId source) {
    const auto parts = gradients_.find(source);
    if (parts == gradients_.end() || parts->second.empty() || parts->second[0].op < 0) return;
    const auto sum = sum_of_.find(source);
    Op& op = ops_[sum != sum_of_.end() ? sum->second : moved_[parts->second[0].op]];
    std::vector<std::string> names;
    if (const Attr* attr = op.FindAttr("op_role_var"); attr != nullptr) {
      names = std::get<std::vector<std::string>>(attr->value);
    }
    names.push_back(context_.program.NameOf(source));
    names.push_back(context_.program.NameOf(GradientOf(source)));
    SetAttr(op, "op_role_var", std::move(names));
  }

  // Gradients are declared like the variables they belong to.
  void Declare(const Op& op) {
    for (const VarId id : ArgumentsOf(op.outputs)) {
      const std::string& name = context_.program.NameOf(id);
      const size_t suffix = absl::string_view(name).rfind(kGradientSuffix);
      if (id == context_.empty || suffix == absl::string_view::npos) continue;
      DeclareGradient(id, context_.program.Find(name.substr(0, suffix)));
    }
  }

  // But for what comes from around the block: a declaration would hide it there.
  void DeclareGradient(VarId id, VarId var) {
    if (incoming_.contains(var) && id == GradientOf(var)) return;
    if (context_.declarations.FindLocal(gradient_block_, id) != nullptr) return;
    const Var* like = var < 0 ? nullptr : context_.declarations.Find(block_, var);
    Var declared;
    if (like != nullptr) {
      declared.kind = like->kind;
      declared.dtype = like->dtype;
      declared.dims = like->dims;
      declared.lod_level = like->lod_level;
    }
    declared.id = id;
    if (context_.sparse.contains(id)) declared.kind = VarKind::kSelectedRows;
    context_.declarations.Add(gradient_block_, std::move(declared));
  }

  Context& context_;
  const int32_t block_;
  const int32_t gradient_block_;
  const bool in_loop_;
  const BlockBackward* const parent_;
  const size_t position_;
  std::vector<Op> ops_;
  // By variable: the shares of its gradient so far, of the version that the ops still to be
  // differentiated see.
  absl::flat_hash_map<VarId, std::vector<Part>> gradients_;
  absl::flat_hash_set<VarId> incoming_;
  // Positions of the ops that write a variable, but those whose gradients have undone it.
  absl::flat_hash_map<VarId, std::vector<size_t>> writers_;
  // Of a loop's trip: what an op has as input and output.
  absl::flat_hash_set<VarId> updated_;
  // Positions of the first ops on the path to the loss that read a variable.
  absl::flat_hash_map<VarId, size_t> first_reads_;
  // Ops to put before those at these positions of the forward part, which go down.
  std::vector<std::pair<size_t, Op>> noted_;
  std::vector<int> moved_;                       // positions of ops after AddLastSums
  absl::flat_hash_map<VarId, int> sum_of_ = {};  // and of the sums it added
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

absl::Status CheckLoss(Context& context, VarId id) {
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

// Marks the arguments of the ops of a block and of the blocks that those run.
void MarkUsed(const Context& context, int32_t block, std::vector<bool>& used) {
  for (const Op& op : context.program.blocks[block].ops) {
    for (const std::vector<Slot>* slots : {&op.inputs, &op.outputs}) {
      for (const Slot& slot : *slots) {
        for (const VarId id : slot.args) used[id] = true;
      }
    }
    const int32_t inner = SubBlockOf(context.ops.Find(op.type), op);
    if (inner >= 0) MarkUsed(context, inner, used);
  }
}

// Gradients take the names of variables that no op may have for something else. Blocks that are not
// run (those of a backward part that was taken away) do not count.
absl::Status CheckGradientNames(Context& context, VarId loss) {
  std::vector<bool> used(context.program.names.size(), false);
  MarkUsed(context, 0, used);
  for (VarId id = 0; id < std::ssize(context.flow.reached); ++id) {
    if (!context.flow.reached[id]) continue;
    const VarId gradient = context.program.Find(GradientName(context.program.NameOf(id)));
    const bool declared =
        id == loss && gradient >= 0 && context.declarations.FindLocal(0, gradient) != nullptr;
    if (gradient < 0 || (!declared && !used[gradient])) continue;
    return InvalidArgument("the program has a variable '", context.program.NameOf(gradient),
                           "' already: expected a program without gradients");
  }
  return absl::OkStatus();
}

Op FillLossGradient(Program& program, const Var& loss) {
  Op op;
  op.type = "fill_constant";
  AddOutput(op, "Out", {program.Intern(GradientName(program.NameOf(loss.id)))});
  SetAttr(op, "shape", std::vector<int64_t>(loss.dims));
  SetAttr(op, "value", 1.0F);
  SetAttr(op, "dtype", static_cast<int32_t>(loss.dtype));
  SetRole(op, kBackwardRole | kLossRole);
  return op;
}

void MarkLoss(Program& program, VarId loss) {
  std::vector<Op>& ops = program.blocks[0].ops;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    for (const Slot& slot : op->outputs) {
      if (std::find(slot.args.begin(), slot.args.end(), loss) == slot.args.end()) continue;
      SetRole(*op, kForwardRole | kLossRole);
      return;
    }
  }
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
  // Gradients read what the ops read, which is to be seen of both.
  INTERP_ASSIGN_OR_RETURN(program, BindVariableAttributes(std::move(program), {.ops = ops}));
  INTERP_ASSIGN_OR_RETURN(const VarId loss, FindNamed(program, options.loss, "the loss"));
  INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> blocked,
                          FindAll(program, options.no_grad, "those without gradient"));
  INTERP_ASSIGN_OR_RETURN(std::vector<VarId> sources,
                          FindAll(program, options.sources, "the sources"));
  if (sources.empty()) sources = Parameters(program);
  INTERP_ASSIGN_OR_RETURN(const GradientFlow flow,
                          FindGradientFlow(program, ops, loss, sources, blocked));
  Context context{.program = program,
                  .ops = ops,
                  .flow = flow,
                  .declarations = Declarations(program),
                  .empty = program.Intern(kEmptyVarName)};
  INTERP_RETURN_IF_ERROR(CheckLoss(context, loss));
  if (!flow.depends[loss]) {
    return InvalidArgument("the loss '", options.loss, "' depends on none of the ", sources.size(),
                           " parameters through ops that have gradients");
  }
  INTERP_RETURN_IF_ERROR(CheckGradientNames(context, loss));
  MarkLoss(program, loss);
  BlockBackward backward(context, /*block=*/0, /*gradient_block=*/0, /*in_loop=*/false,
                         /*parent=*/nullptr, /*position=*/0);
  backward.Seed(FillLossGradient(program, *context.declarations.FindLocal(0, loss)), loss);
  INTERP_RETURN_IF_ERROR(backward.Run());
  backward.Finish(sources);
  BackwardProgram result;
  for (const VarId source : sources) {
    if (!backward.Has(source)) continue;
    result.gradients.push_back(
        {.source = source, .gradient = program.Find(GradientName(program.NameOf(source)))});
  }
  result.program = std::move(program);
  return result;
}

}  // namespace interp
