#include "interpreter/analysis/blocks.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "core/program_print.h"
#include "core/sub_blocks.h"
#include "passes/op_effects.h"

namespace interp {
namespace {

constexpr absl::string_view kSubBlockAttr = "sub_block";

// Analyses and runs recurse into blocks. Programs of people nest less than ten deep.
constexpr int kMaxDepth = 100;

bool IsOfSubBlock(const std::vector<SlotDef>& defs, const Slot& slot) {
  return std::any_of(defs.begin(), defs.end(), [&](const SlotDef& def) {
    return def.name == slot.name && (def.flags & kOfSubBlock) != 0;
  });
}

// Collects how one block uses variables, each once.
class Uses {
 public:
  explicit Uses(size_t num_names) : position_(num_names, -1) {}

  void Add(VarId var, bool read, bool written) {
    int32_t& at = position_[var];
    if (at < 0) {
      at = static_cast<int32_t>(uses_.size());
      uses_.push_back({.var = var});
    }
    uses_[at].read |= read;
    uses_[at].written |= written;
  }

  // What was added, sorted; ready for the next block.
  std::vector<BlockCapture> Take() {
    for (const BlockCapture& use : uses_) position_[use.var] = -1;
    const auto by_var = [](const BlockCapture& a, const BlockCapture& b) { return a.var < b.var; };
    std::sort(uses_.begin(), uses_.end(), by_var);
    return std::exchange(uses_, {});
  }

 private:
  std::vector<int32_t> position_;  // by VarId, in uses_
  std::vector<BlockCapture> uses_;
};

// A variable that the kernel which runs a block shares with it, and one outside that it is like.
struct Shared {
  VarId var = -1;
  VarId like = -1;
};

class BlockFinder {
 public:
  BlockFinder(const Program& program, const OpRegistry& registry)
      : program_(program), registry_(registry), uses_(program.names.size()) {
    const size_t num_blocks = program.blocks.size();
    tree_.nodes.resize(num_blocks);
    tree_.declared.resize(num_blocks);
    tree_.declared_in_0.resize(program.names.size(), nullptr);
    tree_.written.resize(program.names.size(), false);
    tree_.persistable.resize(program.names.size(), false);
    mentioned_.resize(num_blocks);
    depth_.resize(num_blocks, 0);
    number_.resize(num_blocks, -1);
    end_.resize(num_blocks, -1);
    saves_captures_.resize(num_blocks, false);
    interface_.resize(num_blocks);
    empty_ = program.Find(kEmptyVarName);
  }

  absl::StatusOr<BlockTree> Find() {
    INTERP_RETURN_IF_ERROR(FollowOps());
    for (const int32_t block : tree_.order) NoteDeclarations(block);
    for (const int32_t block : tree_.order) NoteInterface(block);
    if (tree_.order.size() > 1) {
      for (const int32_t block : tree_.order) NoteMentions(block);
    }
    INTERP_RETURN_IF_ERROR(FindGradients());
    for (const int32_t block : postorder_) CollectUses(block);
    return std::move(tree_);
  }

 private:
  absl::Status FollowOps() {
    std::set<std::string> missing;
    tree_.order.push_back(0);
    for (size_t at = 0; at < tree_.order.size(); ++at) {
      const int32_t block = tree_.order[at];
      const std::vector<Op>& ops = program_.blocks[block].ops;
      for (size_t i = 0; i < ops.size(); ++i) {
        const OpDef* def = registry_.Find(ops[i].type);
        if (def == nullptr) {
          missing.insert(ops[i].type);
          continue;
        }
        const absl::Status status = FollowOp(block, static_cast<int32_t>(i), *def);
        if (!status.ok()) return Annotate(status, DescribeOp(program_, block, i));
      }
    }
    if (missing.empty()) return absl::OkStatus();
    return Unimplemented("the program uses ops that interp does not have: ",
                         absl::StrJoin(missing, " "), " (run `interp ops` to list all it has)");
  }

  absl::Status FollowOp(int32_t block, int32_t index, const OpDef& def) {
    INTERP_ASSIGN_OR_RETURN(const int32_t sub_block,
                            SubBlockOf(program_, program_.blocks[block].ops[index], def));
    if (sub_block < 0) return absl::OkStatus();
    BlockNode& node = tree_.nodes[sub_block];
    if (sub_block == 0 || node.parent >= 0) {
      return Unimplemented("runs block ", sub_block, ", which ",
                           sub_block == 0 ? "is the main block"
                                          : absl::StrCat("op #", node.op, " of block ", node.parent,
                                                         " runs already"));
    }
    node.parent = block;
    node.op = index;
    depth_[sub_block] = depth_[block] + 1;
    if (depth_[sub_block] > kMaxDepth) {
      return Unimplemented("nests blocks more than ", kMaxDepth, " deep");
    }
    tree_.nodes[block].children.push_back(sub_block);
    tree_.order.push_back(sub_block);
    SubBlock common;
    INTERP_RETURN_IF_ERROR(def.sub_block(program_, program_.blocks[block].ops[index], common));
    saves_captures_[sub_block] = common.saves_captures;
    CollectInterface(def, program_.blocks[block].ops[index], common, interface_[sub_block]);
    return absl::OkStatus();
  }

  void CollectInterface(const OpDef& def, const Op& op, const SubBlock& common,
                        std::vector<Shared>& interface) const {
    for (const SubBlock::Entry& entry : common.entries) {
      const bool known = entry.slot >= 0 && entry.slot < static_cast<int>(def.inputs.size());
      const Slot* slot = known ? op.FindInput(def.inputs[entry.slot].name) : nullptr;
      const bool given = slot != nullptr && entry.arg >= 0 && entry.arg < std::ssize(slot->args);
      interface.push_back({program_.Find(entry.name), given ? slot->args[entry.arg] : -1});
    }
    for (const std::string& name : common.results) {
      const VarId var = program_.Find(name);
      interface.push_back({var, var});
    }
  }

  // A block follows those that it runs in postorder, and those that ran before it.
  void Number(int32_t block) {
    number_[block] = next_number_++;
    for (const int32_t child : tree_.nodes[block].children) Number(child);
    end_[block] = next_number_;
    postorder_.push_back(block);
  }

  // What a block says of its forward block counts where that one has run when it starts. Paddle
  // itself writes blocks that are their own forward block.
  absl::Status FindGradients() {
    Number(0);
    for (const int32_t block : tree_.order) {
      const int32_t forward = program_.blocks[block].forward_block_idx;
      const bool runs = forward > 0 && forward < static_cast<int32_t>(tree_.nodes.size()) &&
                        tree_.nodes[forward].parent >= 0;
      if (!runs || end_[forward] > number_[block]) continue;
      BlockNode& node = tree_.nodes[forward];
      if (node.gradient >= 0) {
        return Unimplemented("blocks ", node.gradient, " and ", block,
                             " are both the gradient of block ", forward);
      }
      node.gradient = block;
      tree_.nodes[block].forward = forward;
      updated_[forward] = UpdatedInPlace(program_.blocks[forward]);
    }
    return absl::OkStatus();
  }

  void NoteDeclarations(int32_t block) {
    for (const Var& var : program_.blocks[block].vars) {
      (block == 0 ? tree_.declared_in_0[var.id] : tree_.declared[block][var.id]) = &var;
      if (var.persistable) tree_.persistable[var.id] = true;
    }
  }

  // Makes the declarations that are missing. Kinds are those of the variables outside, dtypes what
  // the instruction's arguments have.
  void NoteInterface(int32_t block) {
    for (const Shared& shared : interface_[block]) {
      const bool outside = shared.var < 0 || tree_.persistable[shared.var];
      if (outside || tree_.OwnDeclaration(block, shared.var) != nullptr) continue;
      const int32_t parent = tree_.nodes[block].parent;
      const Var* like = shared.like < 0 ? nullptr : tree_.Declaration(parent, shared.like);
      Var& made = tree_.made.emplace_back();
      made.id = shared.var;
      if (like != nullptr) made.kind = like->kind;
      tree_.declared[block][shared.var] = &made;
    }
  }

  // Visits each argument; `written` is false for inputs and for outputs that keep their value.
  template <typename Visit>
  void ForEachArgument(int32_t block, const Visit& visit) const {
    for (const Op& op : program_.blocks[block].ops) {
      const OpDef& def = *registry_.Find(op.type);
      for (const Slot& slot : op.inputs) {
        if (def.sub_block != nullptr && IsOfSubBlock(def.inputs, slot)) continue;
        for (const VarId var : slot.args) visit(var, /*written=*/false);
      }
      for (const Slot& slot : op.outputs) {
        if (def.sub_block != nullptr && IsOfSubBlock(def.outputs, slot)) continue;
        for (const VarId var : slot.args) visit(var, !IsKept(op, var));
      }
    }
  }

  bool IsKept(const Op& op, VarId var) const {
    return tree_.persistable[var] && LeavesUntouched(op, var);
  }

  void NoteMentions(int32_t block) {
    ForEachArgument(block, [&](VarId var, bool) { mentioned_[block].insert(var); });
  }

  // Uses of a block and of what it runs, whose captures are known.
  void CollectUses(int32_t block) {
    BlockNode& node = tree_.nodes[block];
    ForEachArgument(block, [&](VarId var, bool written) {
      if (var == empty_) return;
      uses_.Add(var, !written, written);
      if (written) tree_.written[var] = true;
    });
    for (const int32_t child : node.children) {
      for (const BlockCapture& c : tree_.nodes[child].captures) uses_.Add(c.var, c.read, c.written);
    }
    for (const Var& var : program_.blocks[block].vars) {
      if (var.id != empty_) uses_.Add(var.id, false, false);
    }
    for (const Shared& shared : interface_[block]) {
      if (shared.var >= 0) uses_.Add(shared.var, false, false);
    }
    for (const BlockCapture& use : uses_.Take()) {
      const bool used = use.read || use.written;
      const bool inherited = used && Inherits(block, use.var);
      if (inherited) Save(node.forward, use.var);
      const bool own = inherited || IsOwn(block, use.var);
      if (own || used) node.vars.push_back(use.var);
      if (!own && used) node.captures.push_back(use);
    }
  }

  // Whether `var` in `block`, which does not declare it, stands for what the forward block left.
  bool Inherits(int32_t block, VarId var) const {
    const int32_t forward = tree_.nodes[block].forward;
    if (forward < 0 || tree_.persistable[var]) return false;
    if (tree_.OwnDeclaration(block, var) != nullptr) return false;
    return tree_.Owns(forward, var) || SavesCapture(forward, var);
  }

  bool SavesCapture(int32_t block, VarId var) const {
    const BlockCapture* capture = tree_.FindCapture(block, var);
    const Var* declared = capture == nullptr ? nullptr : tree_.Declaration(block, var);
    const bool tensor = declared != nullptr && declared->kind == VarKind::kLodTensor;
    return tensor && saves_captures_[block] && !updated_.at(block).contains(var);
  }

  // Called once per variable, in their order.
  void Save(int32_t forward, VarId var) {
    tree_.nodes[forward].saved.push_back({.var = var, .at_start = !tree_.Owns(forward, var)});
  }

  bool IsOwn(int32_t block, VarId var) const {
    if (block == 0) return true;
    if (tree_.persistable[var]) return false;
    if (tree_.OwnDeclaration(block, var) != nullptr) return true;
    bool mentioned = false;
    for (int32_t b = tree_.nodes[block].parent; b >= 0; b = tree_.nodes[b].parent) {
      if (tree_.OwnDeclaration(b, var) != nullptr || Inherits(b, var)) return false;
      mentioned = mentioned || mentioned_[b].contains(var);
    }
    return !mentioned;
  }

  const Program& program_;
  const OpRegistry& registry_;
  BlockTree tree_;
  Uses uses_;
  VarId empty_ = -1;
  std::vector<int> depth_;  // by block
  // In the order in which blocks start for the first time: a block's number, and the first one
  // behind it and what it runs.
  std::vector<int32_t> number_;
  std::vector<int32_t> end_;
  int32_t next_number_ = 0;
  std::vector<int32_t> postorder_;
  std::vector<std::vector<Shared>> interface_;  // by block
  std::vector<bool> saves_captures_;            // by block, as the op that runs it says
  // By block that has a gradient.
  absl::flat_hash_map<int32_t, absl::flat_hash_set<VarId>> updated_;
  // By block: variables that its ops name; empty for programs of one block.
  std::vector<absl::flat_hash_set<VarId>> mentioned_;
};

}  // namespace

const Var* BlockTree::OwnDeclaration(int32_t block, VarId var) const {
  if (block == 0) return declared_in_0[var];
  const auto it = declared[block].find(var);
  return it == declared[block].end() ? nullptr : it->second;
}

const BlockCapture* BlockTree::FindCapture(int32_t block, VarId var) const {
  const std::vector<BlockCapture>& captures = nodes[block].captures;
  const auto it = std::lower_bound(captures.begin(), captures.end(), var,
                                   [](const BlockCapture& c, VarId id) { return c.var < id; });
  return it != captures.end() && it->var == var ? &*it : nullptr;
}

bool BlockTree::Owns(int32_t block, VarId var) const {
  const std::vector<VarId>& vars = nodes[block].vars;
  return std::binary_search(vars.begin(), vars.end(), var) && FindCapture(block, var) == nullptr;
}

const Var* BlockTree::Declaration(int32_t block, VarId var) const {
  for (int32_t b = block; b >= 0; b = nodes[b].parent) {
    if (const Var* own = OwnDeclaration(b, var)) return own;
    const int32_t forward = nodes[b].forward;
    if (const Var* own = forward < 0 ? nullptr : OwnDeclaration(forward, var)) return own;
  }
  if (!persistable[var]) return nullptr;
  for (const int32_t b : order) {
    const Var* own = OwnDeclaration(b, var);
    if (own != nullptr && own->persistable) return own;
  }
  return nullptr;
}

absl::StatusOr<BlockTree> FindBlocks(const Program& program, const OpRegistry& registry) {
  return BlockFinder(program, registry).Find();
}

std::vector<std::string> UnsupportedOps(const Program& program, const OpRegistry& registry) {
  std::set<std::string> missing;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (registry.Find(op.type) == nullptr) missing.insert(op.type);
    }
  }
  return {missing.begin(), missing.end()};
}

absl::StatusOr<int32_t> SubBlockOf(const Program& program, const Op& op, const OpDef& def) {
  if (def.sub_block == nullptr) {
    if (!HasSubBlock(op)) return -1;
    return Unimplemented("has a sub-block, but interp's definition of the op runs none");
  }
  const Attr* attr = op.FindAttr(kSubBlockAttr);
  const BlockIndex* block = attr == nullptr ? nullptr : std::get_if<BlockIndex>(&attr->value);
  if (block == nullptr) return InvalidArgument("attribute 'sub_block' is missing or no BLOCK");
  if (block->index < 0 || block->index >= static_cast<int32_t>(program.blocks.size())) {
    return InvalidArgument("attribute 'sub_block' names block ", block->index, ", the program has ",
                           program.blocks.size());
  }
  return block->index;
}

}  // namespace interp
