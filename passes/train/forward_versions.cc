#include "passes/train/forward_versions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "passes/fresh_var.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"
#include "passes/train/gradient_sums.h"

namespace interp {
namespace {

void AddWrites(BackwardContext& context, int32_t block, std::vector<VarId>& written) {
  for (const Op& op : context.program.blocks[block].ops) {
    std::vector<VarId> outputs = ArgumentsOf(op.outputs);
    const int32_t inner = SubBlockOf(context.ops.Find(op.type), op);
    if (inner >= 0) AddWrites(context, inner, outputs);
    for (const VarId id : outputs) {
      if (id == context.empty || context.declarations.FindLocal(block, id) != nullptr) continue;
      written.push_back(id);
    }
  }
}

// A loop's trip assigns what it passes on unchanged to itself.
bool IsIdentity(const Op& op) {
  return op.type == "assign" && ArgumentsOf(op.inputs) == ArgumentsOf(op.outputs);
}

// Whether the op's gradient brings the only variable that it has back to what it was.
bool IsCounting(const Op& op) {
  const std::vector<VarId> inputs = ArgumentsOf(op.inputs);
  return op.type == "increment" && inputs.size() == 1 && inputs == ArgumentsOf(op.outputs);
}

// Paddle lists the averages of a batch norm for its gradient, which reads them only where the op
// has used them.
bool IsListedOnly(const Op& gradient, absl::string_view slot) {
  const bool norm = gradient.type == "batch_norm_grad" || gradient.type == "sync_batch_norm_grad";
  if (!norm || (slot != "MeanOut" && slot != "VarianceOut")) return false;
  AttrReader attrs(gradient);
  return !attrs.Bool("use_global_stats", false) && !attrs.Bool("is_test", false);
}

// The op before which a gradient of op `index` is to find what it reads as `slot`.
size_t PositionOf(const Op& forward, const std::string& slot, VarId id, size_t index) {
  if (forward.FindOutput(slot) != nullptr) return index + 1;
  if (forward.FindInput(slot) != nullptr) return index;
  const std::vector<VarId> outputs = ArgumentsOf(forward.outputs);
  return std::find(outputs.begin(), outputs.end(), id) != outputs.end() ? index + 1 : index;
}

}  // namespace

std::vector<VarId> WrittenBy(BackwardContext& context, const Op& op, int32_t inner) {
  std::vector<VarId> written = ArgumentsOf(op.outputs);
  if (inner >= 0) AddWrites(context, inner, written);
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  return written;
}

ForwardVersions::ForwardVersions(BackwardContext& context, int32_t block, bool in_loop,
                                 const Caller& caller, InsertedOps& noted)
    : context_(context),
      block_(block),
      in_loop_(in_loop),
      parent_(caller.parent),
      position_(caller.position),
      noted_(noted) {
  const size_t num_ops = context.program.blocks[block].ops.size();
  for (size_t i = 0; i < num_ops; ++i) NoteWrites(i);
  if (in_loop) updated_ = UpdatedInPlace(context.program.blocks[block]);
}

void ForwardVersions::NoteWrites(size_t index) {
  const Op& op = context_.program.blocks[block_].ops[index];
  const int32_t inner = SubBlockOf(context_.ops.Find(op.type), op);
  const std::vector<VarId> written = WrittenBy(context_, op, inner);
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

// Whether the loss depends on it and it on what gradients are asked for.
bool ForwardVersions::IsOnPath(VarId id) const {
  return id < std::ssize(context_.flow.reached) && context_.Wants(id) && context_.flow.reached[id];
}

void ForwardVersions::Undo(const std::vector<VarId>& vars, size_t index) {
  for (const VarId id : vars) {
    const auto writers = writers_.find(id);
    if (writers == writers_.end() || writers->second.empty()) continue;
    if (writers->second.back() == index) writers->second.pop_back();
  }
}

std::vector<VarId> ForwardVersions::Undone(std::vector<VarId> written) const {
  std::erase_if(written, [this](VarId id) {
    const auto writers = writers_.find(id);
    return writers == writers_.end() || !writers->second.empty();
  });
  return written;
}

bool ForwardVersions::UndoesUpdate(const Op& op, size_t index) {
  if (!IsCounting(op)) return false;
  if (in_loop_) return true;
  const VarId id = ArgumentsOf(op.inputs)[0];
  const Var* counter = context_.declarations.FindLocal(block_, id);
  const auto read = first_reads_.find(id);
  return counter != nullptr && !counter->persistable && read != first_reads_.end() &&
         read->second < index;
}

bool ForwardVersions::HasValueBefore(VarId id, size_t index) {
  const auto writers = writers_.find(id);
  if (writers != writers_.end() && !writers->second.empty() && writers->second[0] < index) {
    return true;
  }
  const Var* const local = context_.declarations.FindLocal(block_, id);
  if (local == nullptr) return block_ != 0;
  return local->persistable || local->need_check_feed;
}

bool ForwardVersions::PassesCounting(const Op& op) const { return IsCounting(op); }

absl::Status ForwardVersions::ReadVersions(Op& gradient, const Op& forward, size_t index) {
  const OpDef* def = context_.ops.Find(gradient.type);
  for (Slot& slot : gradient.inputs) {
    const int number = def == nullptr ? -1 : def->InputIndex(slot.name);
    const bool shape_alone = number >= 0 && (def->inputs[number].flags & kNoNeedBuffer) != 0;
    // What runs a block names what the block sees.
    if (shape_alone && def->sub_block != nullptr) continue;
    if (IsListedOnly(gradient, slot.name)) continue;
    for (VarId& id : slot.args) {
      const size_t position = PositionOf(forward, slot.name, id, index);
      const absl::Status same = Check(id, position);
      if (same.ok() || (shape_alone && !IsTensor(id))) continue;
      if (!IsTensor(id)) return same;
      id = CopyAt(id, position);
    }
  }
  return absl::OkStatus();
}

VarId ForwardVersions::ShapeAt(VarId id, size_t position) {
  if (!IsTensor(id) || Check(id, position).ok()) return id;
  const auto [zeros, added] = shapes_.try_emplace({id, position}, -1);
  if (!added) return zeros->second;
  Op op = GradientSums::MakeZerosOp(id, -1);
  return zeros->second = AddBefore(id, position, "@SHAPE@", std::move(op));
}

bool ForwardVersions::IsTensor(VarId id) const {
  const Var* const var = context_.declarations.Find(block_, id);
  return var != nullptr && var->kind == VarKind::kLodTensor;
}

// A copy of what the variable is before op `position`.
VarId ForwardVersions::CopyAt(VarId id, size_t position) {
  const auto [copy, added] = copies_.try_emplace({id, position}, -1);
  if (!added) return copy->second;
  return copy->second = AddBefore(id, position, "@BEFORE@", MakeUnaryOp("assign", id, -1));
}

// Adds an op on `id` before op `position`, and the variable that it makes, which is like `id`.
VarId ForwardVersions::AddBefore(VarId id, size_t position, absl::string_view suffix, Op op) {
  Program& program = context_.program;
  const Var* const like = context_.declarations.Find(block_, id);
  Var var = {.dtype = like->dtype, .dims = like->dims, .lod_level = like->lod_level};
  const VarId made = FreshVar(program, absl::StrCat(program.NameOf(id), suffix, position));
  var.id = made;
  var.stop_gradient = true;
  context_.declarations.Add(block_, std::move(var));
  op.outputs[0].args[0] = made;
  SetRole(op, kForwardRole);
  noted_.AddBefore(position, std::move(op));
  return made;
}

// Whether gradients find the variable as it was before op `position`.
absl::Status ForwardVersions::Check(VarId id, size_t position) const {
  return block_ != 0 && !Declares(id) ? CheckOutside(id, position) : CheckLater(id, position);
}

absl::Status ForwardVersions::CheckLater(VarId id, size_t position) const {
  const std::vector<size_t>& writers = WritersOf(id);
  if (writers.empty() || writers.back() < position) return absl::OkStatus();
  return WritesAgain(id, writers.back());
}

absl::Status ForwardVersions::WritesAgain(VarId id, size_t writer) const {
  return InvalidArgument("the gradient reads '", context_.program.NameOf(id),
                         "' as it was here, but ", DescribeOp(context_.program, block_, writer),
                         " writes it again: expected another variable there");
}

// The same for a variable of a block around this one. A loop keeps what it was when a
// trip started, unless an op of the trip has it as input and output. Then it is what the last
// trip has left, and outside of loops what it is at the end; counters are brought back.
absl::Status ForwardVersions::CheckOutside(VarId id, size_t position) const {
  const Var* const declared = context_.declarations.Find(block_, id);
  const bool kept = declared != nullptr && (declared->kind == VarKind::kLodTensor ||
                                            declared->kind == VarKind::kStepScopes);
  if (!kept) return absl::OkStatus();
  const ForwardVersions* const keeper = declared->persistable ? nullptr : KeeperOf(id);
  for (const ForwardVersions* at = this; at != nullptr;
       position = at->position_, at = at->parent_) {
    const bool around = !at->Declares(id);
    for (const size_t writer : at->WritersOf(id)) {
      const Op& op = context_.program.blocks[at->block_].ops[writer];
      if (IsIdentity(op)) continue;
      const bool early = writer < position;
      const bool late = at == this ? writer >= position : writer > position;
      const bool other_trip = at->in_loop_ && around && !IsCounting(op);
      if (keeper != nullptr ? early : late || other_trip) return at->WritesAgain(id, writer);
    }
    if (at == keeper || !around) break;
  }
  return absl::OkStatus();
}

// The loop that keeps the variable for its gradient, of the blocks from this one outwards to that
// which declares it. Null: none does.
const ForwardVersions* ForwardVersions::KeeperOf(VarId id) const {
  for (const ForwardVersions* at = this; at != nullptr && !at->Declares(id); at = at->parent_) {
    if (at->in_loop_ && !at->updated_.contains(id)) return at;
  }
  return nullptr;
}

const std::vector<size_t>& ForwardVersions::WritersOf(VarId id) const {
  static const std::vector<size_t> kNone;
  const auto found = writers_.find(id);
  return found == writers_.end() ? kNone : found->second;
}
}  // namespace interp
