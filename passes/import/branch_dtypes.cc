#include "passes/import/branch_dtypes.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/each_argument.h"
#include "core/sub_blocks.h"
#include "passes/make_op.h"
#include "passes/op_side.h"
#include "passes/value_dtypes.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

// From narrow to wide: each holds the values of those before it, or comes near enough.
constexpr DType kByWidth[] = {DType::kBool,    DType::kUInt8,  DType::kInt8,    DType::kInt16,
                              DType::kInt32,   DType::kInt64,  DType::kFloat16, DType::kBFloat16,
                              DType::kFloat32, DType::kFloat64};
constexpr std::ptrdiff_t kUnordered = std::size(kByWidth);

std::ptrdiff_t WidthOf(DType dtype) {
  return std::find(std::begin(kByWidth), std::end(kByWidth), dtype) - std::begin(kByWidth);
}

class Widener {
 public:
  Widener(Program& program, const OpRegistry& ops)
      : program_(program),
        ops_(ops),
        empty_(program.Find(kEmptyVarName)),
        values_(program.names.size()) {
    for (const Block& block : program.blocks) {
      for (const Var& var : block.vars) NoteDeclaration(var);
    }
    for (const Block& block : program.blocks) NoteWrites(block);
    const std::vector<VarUse> uses = FindVarUses(program, ops);
    for (size_t id = 0; id < values_.size(); ++id) values_[id].fed = uses[id].fed;
  }

  // Leaves the program as it is where types take too long to settle.
  void Run() {
    for (int round = 0; round < kMostRounds; ++round) {
      changed_ = false;
      casts_.clear();
      visited_.assign(program_.blocks.size(), false);
      for (Value& value : values_) {
        value.now = value.settled();
        value.made = DType::kUndefined;
        value.made_alike = true;
      }
      Follow(0);
      if (changed_) continue;
      Declare();
      InsertCasts();
      return;
    }
  }

 private:
  // Each follows all ops. A loop passes a wider type on to the next trip, as rounds do.
  static constexpr int kMostRounds = 16;

  struct Value {
    int num_declarations = 0;
    const Var* declaration = nullptr;  // the first; blocks are not changed before all is known
    DType declared = DType::kUndefined;
    DType now = DType::kUndefined;       // of what it holds behind the ops seen so far
    DType elements = DType::kUndefined;  // of an array: of all that is written to it
    DType made = DType::kUndefined;      // by the last op that wrote it
    bool made_alike = true;              // all ops seen so far have made this type
    VarKind kind = VarKind::kLodTensor;
    bool persistable = false;
    bool fed = false;
    bool shared = false;   // a block writes it that does not declare it
    bool written = false;  // by an op that runs no block
    bool widened = false;

    bool array() const { return kind == VarKind::kLodTensorArray; }
    // Several variables of one name are not told apart.
    bool known() const { return num_declarations < 2; }
    // Has one type throughout, which may become wider.
    bool keeps_type() const {
      return shared && known() && kind == VarKind::kLodTensor && !persistable && !fed;
    }
    // Is of a type that its ops agree on, where its declaration takes floats for whole numbers or
    // the other way round: Paddle declares Reserve of rnn as uint8, and Indices of kthvalue and
    // mode as their X. A gradient block would read it as it is declared.
    bool misdeclared() const {
      if (shared || !known() || kind != VarKind::kLodTensor || persistable || fed) return false;
      return written && made_alike && made != DType::kUndefined && declared != DType::kUndefined &&
             IsFloating(made) != IsFloating(declared);
    }
    // Of an array that is written: what the elements are, whatever is declared.
    DType settled() const {
      if (!known()) return DType::kUndefined;
      return array() && written ? elements : declared;
    }
  };

  // Op `op` of block `block` reads `var` as `to`.
  struct Cast {
    int32_t block = 0;
    size_t op = 0;
    VarId var = -1;
    DType from = DType::kUndefined;
    DType to = DType::kUndefined;
  };

  void NoteDeclaration(const Var& var) {
    Value& value = values_[var.id];
    if (value.num_declarations++ == 0) value.declaration = &var;
    value.declared = var.dtype;
    value.kind = var.kind;
    value.persistable = value.persistable || var.persistable;
  }

  void NoteWrites(const Block& block) {
    const bool main = &block == &program_.blocks.front();
    absl::flat_hash_set<VarId> own;
    for (const Var& var : block.vars) own.insert(var.id);
    for (const Op& op : block.ops) {
      if (HasSubBlock(op)) continue;  // what its block writes counts there
      for (const VarId id : EachArgument(op.outputs)) {
        values_[id].written = true;
        if (!main && !own.contains(id)) values_[id].shared = true;
      }
    }
  }

  // Blocks run where the op that runs them stands; one that several ops run is seen once.
  void Follow(int32_t block) {
    if (visited_[block]) return;
    visited_[block] = true;
    const std::vector<Op>& ops = program_.blocks[block].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (HasSubBlock(ops[i])) {
        ForEachSubBlock(ops[i], [&](int32_t inner) { Follow(inner); });
      } else {
        Pass(block, i);
      }
    }
  }

  void Pass(int32_t block, size_t index) {
    const Op& op = program_.blocks[block].ops[index];
    const OpDef* const def = ops_.Find(op.type);
    if (def == nullptr) return;
    auto in = BindSide(op.inputs, def->inputs);
    for (size_t arg = 0; arg < in.args.size(); ++arg) in.dtypes[arg] = values_[*in.args[arg]].now;
    if (op.type == "select_input") JoinChoices(block, index, in);
    if (!AllKnown(in.args, in.dtypes)) {
      for (const VarId id : EachArgument(op.outputs)) Write(id, DType::kUndefined);
      return;
    }
    auto out = BindSide(op.outputs, def->outputs);
    for (size_t arg = 0; arg < out.args.size(); ++arg) {
      out.dtypes[arg] = values_[*out.args[arg]].now;
    }
    const bool known = InferOutputDTypes(op, *def, {in.dtypes, in.counts},
                                         {absl::MakeSpan(out.dtypes), out.counts});
    if (!known) return;
    for (size_t arg = 0; arg < out.args.size(); ++arg) Write(*out.args[arg], out.dtypes[arg]);
    if (op.type != "write_to_array" || in.args.empty() || out.args.empty()) return;
    ReadAs(block, index, *in.args.front(), values_[*out.args.front()].elements);
  }

  // Whether all values that the op reads have a type; others are no tensors.
  bool AllKnown(absl::Span<const VarId* const> args, absl::Span<const DType> dtypes) const {
    for (size_t arg = 0; arg < args.size(); ++arg) {
      const Value& value = values_[*args[arg]];
      const bool holds_numbers = value.array() || value.kind == VarKind::kLodTensor ||
                                 value.kind == VarKind::kSelectedRows;
      if (*args[arg] != empty_ && holds_numbers && dtypes[arg] == DType::kUndefined) return false;
    }
    return true;
  }

  // All that slot X lists, which comes first, is of the widest type among them, unless a choice
  // that a block makes stays narrower: no cast finds a value where the block has not run.
  template <typename Side>
  void JoinChoices(int32_t block, size_t index, Side& in) {
    const absl::Span<DType> dtypes = absl::MakeSpan(in.dtypes).first(in.counts.front());
    DType widest = DType::kUndefined;
    for (const DType dtype : dtypes) widest = Wider(widest, dtype);
    for (size_t arg = 0; arg < dtypes.size(); ++arg) {
      const Value& value = values_[*in.args[arg]];
      const bool stays = value.shared && !value.array() && !value.keeps_type();
      const bool fits = dtypes[arg] == widest || (!stays && WidthOf(dtypes[arg]) < WidthOf(widest));
      if (!fits || Wider(dtypes[arg], widest) != widest) return;
    }
    std::fill(dtypes.begin(), dtypes.end(), widest);
    for (size_t arg = 0; arg < dtypes.size(); ++arg) {
      const VarId id = *in.args[arg];
      if (values_[id].array() || values_[id].keeps_type()) Write(id, widest);
      ReadAs(block, index, id, widest);
    }
  }

  void ReadAs(int32_t block, size_t index, VarId id, DType dtype) {
    const Value& value = values_[id];
    if (id == empty_ || value.kind != VarKind::kLodTensor || value.now == dtype) return;
    if (WidthOf(dtype) == kUnordered || WidthOf(value.now) >= WidthOf(dtype)) return;
    casts_.push_back({block, index, id, value.now, dtype});
  }

  void Write(VarId id, DType dtype) {
    Value& value = values_[id];
    if (id == empty_ || !value.known()) return;
    if (!value.array() && !value.keeps_type()) {
      value.made_alike = value.made_alike && dtype != DType::kUndefined &&
                         (value.made == DType::kUndefined || value.made == dtype);
      value.made = dtype;
      // What other blocks write, too, is as it is declared.
      value.now = value.shared ? value.declared : dtype;
      return;
    }
    if (dtype == DType::kUndefined) return;
    DType& kept = value.array() ? value.elements : value.declared;
    const DType wider = Wider(kept, dtype);
    if (wider == kept) return;
    changed_ = true;
    value.widened = value.widened || kept != DType::kUndefined;
    kept = value.now = wider;
  }

  void Declare() {
    for (Block& block : program_.blocks) {
      for (Var& var : block.vars) {
        const Value& value = values_[var.id];
        if (value.widened) var.dtype = value.settled();
        if (value.misdeclared()) var.dtype = value.made;
      }
    }
  }

  void InsertCasts() {
    for (const Cast& cast : casts_) {
      const Var* const declaration = values_[cast.var].declaration;
      if (declaration != nullptr) dims_[cast.var] = declaration->dims;
    }
    std::sort(casts_.begin(), casts_.end(), [](const Cast& a, const Cast& b) {
      return std::tie(a.block, a.op) < std::tie(b.block, b.op);
    });
    for (auto first = casts_.begin(); first != casts_.end();) {
      const auto last = std::find_if(first, casts_.end(),
                                     [&](const Cast& cast) { return cast.block != first->block; });
      InsertCasts(program_.blocks[first->block], {&*first, static_cast<size_t>(last - first)});
      first = last;
    }
  }

  void InsertCasts(Block& block, absl::Span<const Cast> casts) {
    std::vector<Op> ops;
    ops.reserve(block.ops.size() + casts.size());
    for (size_t i = 0; i < block.ops.size(); ++i) {
      Op& op = block.ops[i];
      for (; !casts.empty() && casts.front().op == i; casts.remove_prefix(1)) {
        ops.push_back(MakeCast(block, casts.front(), op));
      }
      ops.push_back(std::move(op));
    }
    block.ops = std::move(ops);
  }

  // The op that casts; `reader` reads its result then, in slot X.
  Op MakeCast(Block& block, const Cast& cast, Op& reader) {
    Var to{.id = FreshVar(absl::StrCat(program_.NameOf(cast.var), "@", Name(cast.to))),
           .dtype = cast.to,
           .dims = dims_[cast.var]};
    for (Slot& slot : reader.inputs) {
      if (slot.name == "X") std::replace(slot.args.begin(), slot.args.end(), cast.var, to.id);
    }
    block.vars.push_back(std::move(to));
    return MakeCastOp(cast.var, block.vars.back().id, cast.from, cast.to);
  }

  VarId FreshVar(const std::string& stem) {
    int& next = next_[stem];
    std::string name = next == 0 ? stem : absl::StrCat(stem, "_", next);
    for (++next; program_.Find(name) >= 0; ++next) name = absl::StrCat(stem, "_", next);
    return program_.Intern(name);
  }

  Program& program_;
  const OpRegistry& ops_;
  const VarId empty_;
  std::vector<Value> values_;                              // by VarId
  std::vector<bool> visited_;                              // by block
  std::vector<Cast> casts_;                                // those the ops seen so far ask for
  absl::flat_hash_map<VarId, std::vector<int64_t>> dims_;  // of what is cast, as it is declared
  absl::flat_hash_map<std::string, int> next_;  // by stem: how often a name was made of it
  bool changed_ = false;
};

}  // namespace

DType Wider(DType a, DType b) {
  if (a == DType::kUndefined) return b;
  const bool stays = a == DType::kFloat16 || a == DType::kBFloat16 || WidthOf(b) == kUnordered;
  return stays || WidthOf(b) < WidthOf(a) ? a : b;
}

absl::StatusOr<Program> WidenBranchDTypes(Program program, const PassContext& context) {
  const bool any =
      program.blocks.size() > 1 || HasOpOf(program, {"select_input", "write_to_array"});
  if (any) Widener(program, context.ops).Run();
  return program;
}

}  // namespace interp
