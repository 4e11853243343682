#include "passes/branch_dtypes.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/edit_op.h"
#include "passes/op_effects.h"
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
  }

  void Run() {
    do {
      changed_ = false;
      casts_.clear();
      visited_.assign(program_.blocks.size(), false);
      for (Value& value : values_) value.now = value.settled();
      Follow(0);
    } while (changed_);
    Declare();
    InsertCasts();
  }

 private:
  struct Value {
    DType declared = DType::kUndefined;
    DType now = DType::kUndefined;       // of what it holds behind the ops seen so far
    DType elements = DType::kUndefined;  // of an array: of all that is written to it
    VarKind kind = VarKind::kLodTensor;
    bool persistable = false;
    bool shared = false;  // a block writes it that does not declare it
    bool widened = false;

    bool array() const { return kind == VarKind::kLodTensorArray; }
    // Has one type throughout, which may become wider.
    bool keeps_type() const { return shared && kind == VarKind::kLodTensor && !persistable; }
    DType settled() const { return array() && elements != DType::kUndefined ? elements : declared; }
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
    value.declared = var.dtype;
    value.kind = var.kind;
    value.persistable = value.persistable || var.persistable;
  }

  void NoteWrites(const Block& block) {
    if (&block == &program_.blocks.front()) return;
    absl::flat_hash_set<VarId> own;
    for (const Var& var : block.vars) own.insert(var.id);
    for (const Op& op : block.ops) {
      for (const Slot& slot : op.outputs) {
        for (const VarId id : slot.args) {
          if (!own.contains(id)) values_[id].shared = true;
        }
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

  // All that slot X lists, which comes first, is of the widest type among them.
  template <typename Side>
  void JoinChoices(int32_t block, size_t index, Side& in) {
    const absl::Span<DType> dtypes = absl::MakeSpan(in.dtypes).first(in.counts.front());
    DType widest = DType::kUndefined;
    for (const DType dtype : dtypes) widest = Wider(widest, dtype);
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
    if (WidthOf(value.now) == kUnordered || WidthOf(dtype) == kUnordered) return;
    casts_.push_back({block, index, id, value.now, dtype});
  }

  void Write(VarId id, DType dtype) {
    if (id == empty_ || dtype == DType::kUndefined) return;
    Value& value = values_[id];
    if (!value.array() && !value.keeps_type()) {
      value.now = dtype;
      return;
    }
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
        if (values_[var.id].widened) var.dtype = values_[var.id].settled();
      }
    }
  }

  void InsertCasts() {
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
    Var to = DeclarationOf(cast.var);
    to.id = FreshVar(absl::StrCat(program_.NameOf(cast.var), "@", Name(cast.to)));
    to.dtype = cast.to;
    for (Slot& slot : reader.inputs) {
      if (slot.name == "X") std::replace(slot.args.begin(), slot.args.end(), cast.var, to.id);
    }
    Op op;
    op.type = "cast";
    AddInput(op, "X", {cast.var});
    AddOutput(op, "Out", {to.id});
    SetAttr(op, "in_dtype", static_cast<int32_t>(cast.from));
    SetAttr(op, "out_dtype", static_cast<int32_t>(cast.to));
    block.vars.push_back(std::move(to));
    return op;
  }

  // Dims and levels as the first block has them that declares it.
  Var DeclarationOf(VarId id) const {
    Var found;
    for (const Block& block : program_.blocks) {
      const auto it = std::find_if(block.vars.begin(), block.vars.end(),
                                   [id](const Var& var) { return var.id == id; });
      if (it == block.vars.end()) continue;
      found.dims = it->dims;
      found.lod_level = it->lod_level;
      break;
    }
    return found;
  }

  VarId FreshVar(const std::string& stem) {
    std::string name = stem;
    for (int i = 1; program_.Find(name) >= 0; ++i) name = absl::StrCat(stem, "_", i);
    return program_.Intern(name);
  }

  Program& program_;
  const OpRegistry& ops_;
  const VarId empty_;
  std::vector<Value> values_;  // by VarId
  std::vector<bool> visited_;  // by block
  std::vector<Cast> casts_;    // those the ops seen so far ask for
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
