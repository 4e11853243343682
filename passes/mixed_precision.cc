#include "passes/mixed_precision.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/base/near_names.h"
#include "core/each_argument.h"
#include "core/op_role.h"
#include "core/sub_blocks.h"
#include "passes/fresh_var.h"
#include "passes/make_op.h"
#include "passes/op_side.h"
#include "passes/value_dtypes.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

using Side = OpSide<VarId>;

class Reducer {
 public:
  Reducer(Program program, const PassContext& context, DType reduced)
      : program_(std::move(program)),
        context_(context),
        reduced_(reduced),
        empty_(program_.Find(kEmptyVarName)),
        uses_(FindVarUses(program_, context.ops)),
        states_(program_.names.size()) {
    for (size_t id = 0; id < uses_.size(); ++id) {
      if (uses_[id].var != nullptr) states_[id].dtype = uses_[id].var->dtype;
    }
  }

  Program Run() && {
    std::vector<Op> ops = std::exchange(program_.blocks[0].ops, {});
    program_.blocks[0].ops.reserve(ops.size());
    for (Op& op : ops) {
      if (!Reduce(op)) Keep(op);
      Emit(std::move(op));
      for (Op& cast : behind_) Emit(std::move(cast));
      behind_.clear();
    }
    std::vector<Var>& vars = program_.blocks[0].vars;
    vars.insert(vars.end(), std::make_move_iterator(added_.begin()),
                std::make_move_iterator(added_.end()));
    return std::move(program_);
  }

 private:
  // What there is of a variable's present value.
  struct State {
    DType dtype = DType::kUndefined;  // of the value under the variable's own name
    bool full = true;                 // that value is there
    bool reduced = false;             // the one in 16 bits is there
    bool made_reduced = false;        // an op computed it in 16 bits
    bool made_full = false;           // an op computed it otherwise
    VarId name = -1;                  // of the value in 16 bits; -1: not made yet
  };

  void Emit(Op op) { program_.blocks[0].ops.push_back(std::move(op)); }

  // Of a kind and dtype that can be had in 16 bits.
  bool IsReducible(VarId id) const {
    const VarUse& use = uses_[id];
    return id != empty_ && states_[id].dtype == DType::kFloat32 && use.var != nullptr &&
           use.var->kind == VarKind::kLodTensor;
  }

  bool MayReduce(const Op& op, const OpDef* def) const {
    if (def == nullptr || def->precision == PrecisionRule::kFull) return false;
    if (def->side_effect || HasSubBlock(op)) return false;
    if ((RoleOf(op) & (kOptimizeRole | kLearningRateRole)) != 0) return false;
    const std::vector<std::string>& kept = context_.float32_ops;
    return std::find(kept.begin(), kept.end(), op.type) == kept.end();
  }

  // Whether the op reads argument `arg` in the dtype of its kernel, which where the definition does
  // not say otherwise is that of the first argument.
  static bool Counts(const OpDef& def, const Side& in, size_t arg) {
    return (in.flags[arg] & kAnyDType) == 0 || (arg == 0 && def.kernel_dtype == nullptr);
  }

  // Whether what the op reads asks for 16 bits.
  bool Asks(const OpDef& def, const Side& in) const {
    bool any = def.precision == PrecisionRule::kReduced;
    for (size_t arg = 0; arg < in.args.size(); ++arg) {
      const VarId id = *in.args[arg];
      if (id == empty_ || !Counts(def, in, arg)) continue;
      if (!IsReducible(id)) return false;
      if (def.precision == PrecisionRule::kReduced || (in.flags[arg] & kNoNeedBuffer) != 0)
        continue;
      if (states_[id].made_full) return false;
      any = any || states_[id].made_reduced;
    }
    return any && !in.args.empty();
  }

  // Makes the op one in 16 bits and returns true, if that is what it is to be.
  bool Reduce(Op& op) {
    const OpDef* def = context_.ops.Find(op.type);
    if (!MayReduce(op, def)) return false;
    Side in = BindSide(op.inputs, def->inputs);
    if (!Asks(*def, in)) return false;
    for (size_t arg = 0; arg < in.args.size(); ++arg) {
      const VarId id = *in.args[arg];
      if (id != empty_) in.dtypes[arg] = Counts(*def, in, arg) ? reduced_ : states_[id].dtype;
    }
    Side out = BindSide(op.outputs, def->outputs);
    if (!InferOutputs(op, *def, in, out, reduced_)) return false;
    for (size_t arg = 0; arg < out.args.size(); ++arg) {
      if (*out.args[arg] == empty_ || out.dtypes[arg] != reduced_) continue;
      if (!IsReducible(*out.args[arg]) || uses_[*out.args[arg]].persistable) return false;
    }
    for (size_t arg = 0; arg < in.args.size(); ++arg) {
      VarId& id = *in.args[arg];
      if (id == empty_) continue;
      if (Counts(*def, in, arg)) {
        id = Reduced(id, op);
      } else {
        NeedFull(id, op);
      }
    }
    for (size_t arg = 0; arg < out.args.size(); ++arg) {
      VarId& id = *out.args[arg];
      if (id == empty_) continue;
      if (out.dtypes[arg] == reduced_) {
        id = WriteReduced(id, op);
      } else {
        WriteFull(id, out.dtypes[arg]);
      }
    }
    return true;
  }

  // Leaves the op as it is.
  void Keep(Op& op) {
    for (const VarId id : EachArgument(op.inputs)) NeedFull(id, op);
    // What blocks use is always there under its own name.
    const OpDef* def = context_.ops.Find(op.type);
    if (def == nullptr) return NoteWritten(op);
    Side in = BindSide(op.inputs, def->inputs);
    for (size_t arg = 0; arg < in.args.size(); ++arg) in.dtypes[arg] = states_[*in.args[arg]].dtype;
    Side out = BindSide(op.outputs, def->outputs);
    for (size_t arg = 0; arg < out.args.size(); ++arg) {
      out.dtypes[arg] = states_[*out.args[arg]].dtype;
    }
    if (HasSubBlock(op) || !InferOutputs(op, *def, in, out, DType::kUndefined)) {
      return NoteWritten(op);
    }
    for (size_t arg = 0; arg < out.args.size(); ++arg) WriteFull(*out.args[arg], out.dtypes[arg]);
  }

  void NoteWritten(const Op& op) {
    for (const VarId id : EachArgument(op.outputs)) WriteFull(id, states_[id].dtype);
  }

  // As InferOutputDTypes.
  static bool InferOutputs(const Op& op, const OpDef& def, const Side& in, Side& out,
                           DType wanted) {
    return InferOutputDTypes(op, def, {in.dtypes, in.counts},
                             {absl::MakeSpan(out.dtypes), out.counts}, wanted);
  }

  // False for what an op may write by a block of its own: its value in 16 bits serves one op.
  bool StaysTrue(VarId id) const { return uses_[id].block != VarUse::kSeveralBlocks; }

  // The name of the variable's value in 16 bits, which is there from here on.
  VarId Reduced(VarId id, const Op& reader) {
    const VarId name = ReducedName(id);
    if (!states_[id].reduced) {
      Emit(Cast(id, name, DType::kFloat32, reduced_, reader));
      states_[id].reduced = StaysTrue(id);
    }
    return name;
  }

  void NeedFull(VarId id, const Op& reader) {
    State& state = states_[id];
    if (state.full) return;
    Emit(Cast(state.name, id, reduced_, DType::kFloat32, reader));
    state.full = true;
  }

  VarId WriteReduced(VarId id, const Op& writer) {
    const VarId name = ReducedName(id);
    State& state = states_[id];
    state.full = false;
    state.reduced = StaysTrue(id);
    state.made_reduced = true;
    state.made_full = false;
    if (uses_[id].pinned()) {
      behind_.push_back(Cast(name, id, reduced_, DType::kFloat32, writer));
      state.full = true;
    }
    return name;
  }

  void WriteFull(VarId id, DType dtype) {
    State& state = states_[id];
    state.dtype = dtype;
    state.full = true;
    state.reduced = state.made_reduced = false;
    state.made_full = !uses_[id].persistable && !uses_[id].fed;
  }

  VarId ReducedName(VarId id) {
    if (states_[id].name >= 0) return states_[id].name;
    const absl::string_view ending = reduced_ == DType::kBFloat16 ? ".cast_bf16" : ".cast_fp16";
    const Var& like = *uses_[id].var;
    Var var{.id = FreshVar(program_, absl::StrCat(program_.NameOf(id), ending)),
            .dtype = reduced_,
            .dims = like.dims,
            .lod_level = like.lod_level,
            .stop_gradient = like.stop_gradient};
    states_[id].name = var.id;
    added_.push_back(std::move(var));
    return states_[id].name;
  }

  static Op Cast(VarId from, VarId to, DType from_dtype, DType to_dtype, const Op& beside) {
    Op op = MakeCastOp(from, to, from_dtype, to_dtype);
    SetRole(op, RoleOf(beside) & ~kLossRole);
    return op;
  }

  Program program_;
  const PassContext& context_;
  const DType reduced_;
  const VarId empty_;
  const std::vector<VarUse> uses_;
  std::vector<State> states_;  // by VarId of the program as it came
  std::vector<Op> behind_;     // casts that follow the op
  std::vector<Var> added_;     // not declared before the end: uses_ points to declarations
};

absl::StatusOr<Program> ComputeIn(DType dtype, Program program, const PassContext& context) {
  for (const std::string& type : context.float32_ops) {
    if (context.ops.Find(type) != nullptr) continue;
    const std::vector<absl::string_view> types = context.ops.Types();
    return NotFound("no op is named '", type, "', which is to stay in float32",
                    NearNamesHint(type, types));
  }
  return Reducer(std::move(program), context, dtype).Run();
}

}  // namespace

absl::StatusOr<Program> ComputeInBFloat16(Program program, const PassContext& context) {
  return ComputeIn(DType::kBFloat16, std::move(program), context);
}

absl::StatusOr<Program> ComputeInFloat16(Program program, const PassContext& context) {
  return ComputeIn(DType::kFloat16, std::move(program), context);
}

}  // namespace interp
