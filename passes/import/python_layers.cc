#include "passes/import/python_layers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/any_op.h"
#include "core/each_argument.h"
#include "core/sub_blocks.h"
#include "passes/make_op.h"

namespace interp {
namespace {

using Renames = absl::flat_hash_map<VarId, VarId>;

// Of a pylayer: its block, and where it has one, that of its gradient.
std::vector<int32_t> BlocksOfLayer(const Op& op) {
  const Attr* const blocks = op.FindAttr("blocks");
  const auto* const indices =
      blocks == nullptr ? nullptr : std::get_if<BlockIndices>(&blocks->value);
  return indices == nullptr ? std::vector<int32_t>() : indices->indices;
}

// The block whose ops compute what the op gives; none where the op is no Python layer.
std::optional<int32_t> BlockOfLayer(const Op& op) {
  if (op.type == "pylayer") {
    const std::vector<int32_t> blocks = BlocksOfLayer(op);
    return blocks.empty() ? std::nullopt : std::optional(blocks[0]);
  }
  if (op.type == "pylayer_grad") {
    const int32_t block = SubBlockOf(op, "backward_block");
    if (block >= 0) return block;
  }
  return std::nullopt;
}

bool IsLayer(const Op& op) { return BlockOfLayer(op).has_value(); }

void Rename(std::vector<Op>& ops, const Renames& renames) {
  const auto rename = [&renames](std::vector<Slot>& slots) {
    for (VarId& arg : EachArgument(slots)) {
      const auto found = renames.find(arg);
      if (found != renames.end()) arg = found->second;
    }
  };
  for (Op& op : ops) {
    rename(op.inputs);
    rename(op.outputs);
  }
}

class Inliner {
 public:
  explicit Inliner(Program program)
      : program_(std::move(program)),
        renames_(program_.blocks.size()),
        children_(program_.blocks.size()) {
    for (const Block& block : program_.blocks) {
      if (block.parent_idx >= 0) children_[block.parent_idx].push_back(block.idx);
      for (const Var& var : block.vars) ++declarations_[var.id];
    }
  }

  // Inner layers first: the ops of a block then go out as they will stay.
  absl::StatusOr<Program> Run() && {
    for (const int32_t b : UnusedBackwardBlocks()) Empty(b);
    for (int32_t b = static_cast<int32_t>(program_.blocks.size()) - 1; b >= 0; --b) {
      INTERP_RETURN_IF_ERROR(InlineIn(b));
    }
    return std::move(program_);
  }

 private:
  // Those of layers that nothing has differentiated.
  std::vector<int32_t> UnusedBackwardBlocks() const {
    absl::flat_hash_set<int32_t> used;
    std::vector<int32_t> found;
    for (const Block& block : program_.blocks) {
      for (const Op& op : block.ops) {
        if (op.type != "pylayer") {
          ForEachSubBlock(op, [&](int32_t b) { used.insert(b); });
          continue;
        }
        const std::vector<int32_t> blocks = BlocksOfLayer(op);
        if (blocks.size() > 1 && blocks[1] > 0) found.push_back(blocks[1]);
      }
    }
    std::erase_if(found, [&](int32_t b) { return used.contains(b); });
    return found;
  }

  void Empty(int32_t b) {
    program_.blocks[b].ops.clear();
    program_.blocks[b].vars.clear();
    for (const int32_t child : children_[b]) Empty(child);
  }

  absl::Status InlineIn(int32_t b) {
    std::vector<Op> ops;
    std::vector<Op> before = std::move(program_.blocks[b].ops);
    for (size_t i = 0; i < before.size(); ++i) {
      const std::optional<int32_t> layer = BlockOfLayer(before[i]);
      if (!layer.has_value()) {
        ops.push_back(std::move(before[i]));
        continue;
      }
      const absl::Status status = Inline(before[i], b, *layer, ops);
      if (!status.ok()) {
        return Annotate(status, absl::StrCat("block ", b, ", op #", i, " ", before[i].type));
      }
    }
    program_.blocks[b].ops = std::move(ops);
    return absl::OkStatus();
  }

  absl::Status Inline(const Op& layer, int32_t b, int32_t inner, std::vector<Op>& ops) {
    Block& block = program_.blocks[inner];
    if (block.parent_idx != b || !taken_.insert(inner).second) {
      return InvalidArgument("has block ", inner, ", which is not its own");
    }
    Renames& renames = renames_[inner];
    // The backward block sees the values of the forward block.
    if (block.forward_block_idx > 0 && block.forward_block_idx < std::ssize(renames_)) {
      renames = renames_[block.forward_block_idx];
    }
    std::vector<Op> zeros;
    if (layer.type == "pylayer_grad") {
      INTERP_RETURN_IF_ERROR(NameGradients(layer, block, renames, zeros));
    }
    for (Var& var : block.vars) {
      if (renames.contains(var.id)) continue;
      if (declarations_[var.id] > 1) {
        const VarId fresh = FreshName(var.id);
        renames[var.id] = fresh;
        var.id = fresh;
        var.wire = {};
      }
      program_.blocks[b].vars.push_back(std::move(var));
    }
    block.vars.clear();
    if (!renames.empty()) RenameWithin(inner, renames);
    for (const int32_t child : children_[inner]) program_.blocks[child].parent_idx = b;
    children_[b].insert(children_[b].end(), children_[inner].begin(), children_[inner].end());
    std::move(block.ops.begin(), block.ops.end(), std::back_inserter(ops));
    std::move(zeros.begin(), zeros.end(), std::back_inserter(ops));
    block.ops.clear();
    return absl::OkStatus();
  }

  // In a block and in those inside it.
  void RenameWithin(int32_t b, const Renames& renames) {
    std::vector<int32_t> todo = {b};
    while (!todo.empty()) {
      const int32_t next = todo.back();
      todo.pop_back();
      Rename(program_.blocks[next].ops, renames);
      todo.insert(todo.end(), children_[next].begin(), children_[next].end());
    }
  }

  // The gradient of each input goes where the layer puts it; what the block does not write is zero.
  absl::Status NameGradients(const Op& layer, const Block& block, Renames& renames,
                             std::vector<Op>& zeros) {
    const Slot* const inputs = layer.FindInput("Input");
    const Slot* const gradients = layer.FindOutput("Input@GRAD");
    if (gradients == nullptr) return absl::OkStatus();
    if (inputs == nullptr || inputs->args.size() != gradients->args.size()) {
      return InvalidArgument("'Input@GRAD' has ", gradients->args.size(),
                             " arguments, 'Input' has ",
                             inputs == nullptr ? 0 : inputs->args.size());
    }
    absl::flat_hash_set<VarId> written;
    for (const Op& op : block.ops) {
      for (const Slot& slot : op.outputs) written.insert(slot.args.begin(), slot.args.end());
    }
    const VarId empty = program_.Intern(kEmptyVarName);
    for (size_t i = 0; i < gradients->args.size(); ++i) {
      const VarId to = gradients->args[i];
      if (to == empty) continue;
      const VarId inside = program_.Intern(absl::StrCat(program_.NameOf(inputs->args[i]), "@GRAD"));
      if (written.contains(inside)) {
        renames[inside] = to;
        continue;
      }
      zeros.push_back(MakeUnaryOp("fill_zeros_like", inputs->args[i], to));
    }
    return absl::OkStatus();
  }

  VarId FreshName(VarId id) {
    for (;; ++renamed_) {
      const std::string name = absl::StrCat(program_.NameOf(id), "@LAYER", renamed_);
      if (program_.Find(name) < 0) return program_.Intern(name);
    }
  }

  Program program_;
  std::vector<Renames> renames_;  // by block that has been put in a layer's place
  std::vector<std::vector<int32_t>> children_;
  absl::flat_hash_set<int32_t> taken_;
  absl::flat_hash_map<VarId, int> declarations_;
  int64_t renamed_ = 1;
};

}  // namespace

absl::StatusOr<Program> InlinePythonLayers(Program program, const PassContext& /*context*/) {
  if (!AnyOp(program, IsLayer)) return program;
  return Inliner(std::move(program)).Run();
}

}  // namespace interp
