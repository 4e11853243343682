// What the fusing passes have in common: following a value from op to op and replacing what was
// matched. All of it is about block 0.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/edit_op.h"
#include "core/program.h"
#include "passes/fuse/symbolic_shapes.h"
#include "passes/pass.h"
#include "passes/var_uses.h"

namespace interp {

// Whether a pass may put ops of that type into the program: there are some, and they run where it
// is to run.
bool CanMake(absl::string_view type, const PassContext& context);

// Whether the op has a kernel for exactly that dtype.
bool HasKernelOf(const OpDef& def, DType dtype);

// Whether two ops run at the same place and for the same part of a run.
bool IsOfSamePart(const Op& a, const Op& b);

// Matches chains of ops in a program and replaces each by one op, which stands where the last op of
// the chain stood. Indices are positions in block 0 as it was at construction; nothing moves before
// TakeProgram.
// Making one looks at all of the program: see HasOpOf in var_uses.h.
class Fuser {
 public:
  Fuser(Program program, const OpRegistry& ops);
  Fuser(const Fuser&) = delete;  // uses() points into program()
  Fuser& operator=(const Fuser&) = delete;

  const std::vector<Op>& ops() const { return program_.blocks[0].ops; }
  const std::vector<VarUse>& uses() const { return uses_; }
  const Program& program() const { return program_; }

  // The only reader of the first argument of `op`'s output `slot`, when fusing the two loses
  // nothing: nobody else sees the variable, one op writes it and one op that is still there reads
  // it, later.
  std::optional<int> OnlyReader(int op, absl::string_view slot) const;

  // The same, but ops behind that one may read shape and dtype: the gradient of a sum does. They
  // need CanReplace to hold.
  std::optional<int> OnlyReaderOfValues(int op, absl::string_view slot) const;

  // The argument of a slot, nullopt when it has none or several.
  static std::optional<VarId> Argument(const std::vector<Slot>& slots, absl::string_view name);

  // The declaration of a parameter that no op changes; null for anything else.
  const Var* Parameter(std::optional<VarId> id) const;

  // The declaration of a parameter that an op changes at most once, as an optimizer does, and
  // behind position `until`; null for anything else.
  const Var* ParameterUntil(int until, std::optional<VarId> id) const;

  // The declaration of a parameter that no op changes, or of what ops make of such alone, which is
  // the same in every run, where its dims follow from theirs (symbolic_shapes.h); null for anything
  // else.
  const Var* Constant(std::optional<VarId> id) const;
  // The same, or ParameterUntil.
  const Var* ConstantUntil(int until, std::optional<VarId> id) const;

  // The op that alone writes the variable, which stands before the op at position `reader`, for the
  // same part of a run and with nothing fused into it. Nullopt where others than ops see the
  // variable.
  std::optional<int> MakerFor(int reader, VarId id) const;

  // True when the variable keeps its value from before position `from` to the end.
  bool IsStable(VarId id, int from) const;

  // True when no op, no fetch and no parameter file sees this output of an op.
  bool IsUnused(VarId id) const;

  // True when that holds for all outputs of the op but `slot`.
  bool OthersAreUnused(int op, absl::string_view slot) const;

  // The same for Out, and nothing was fused into the op (core/fused_forms.h).
  bool GivesOutAlone(int op) const;

  // True when ops of `chain`, ascending, alone mention what those before the last one give.
  bool AreSeenWithin(const std::vector<int>& chain) const;

  bool IsGone(int op) const { return gone_[op]; }

  // The op at that position, which is to be replaced, without slots: most of it is attributes that
  // say where it was made, so it is not copied.
  Op TakeForFusion(int op);
  // The same of another type, with no more attributes than those that say where the op was made,
  // where it runs and for whom.
  Op TakeAs(absl::string_view type, int op);

  // Whether one op with the result `out` can stand for `chain` where the program trains, too:
  // `parameters` change behind the last op at the earliest, and so do others read the shape of
  // results in between, which Replace gives them of `out`.
  bool CanReplace(const std::vector<int>& chain, VarId out,
                  absl::Span<const VarId> parameters) const;

  // Puts `fused` at the position of the last of `chain`, whose ops go. REQUIRES: ascending; the
  // results whose shape others read have that of the first output of `fused`.
  void Replace(const std::vector<int>& chain, Op fused);

  // Takes an op out.
  void Drop(int op) { gone_[op] = true; }
  // Puts `added` behind the op at position `op`, gone or not, and behind what was put there before.
  void PutBehind(int op, Op added);
  // Declares a variable of block 0 like that one, under `name` or, where that is taken, one like
  // it. uses() does not know it.
  VarId Declare(std::string name, const Var& like);

  Program TakeProgram() &&;

 private:
  std::optional<int> SoleReader(int op, absl::string_view slot, bool shapes) const;

  // Calls f(id) for what ops of `chain` but the last give to the next one.
  template <typename F>
  void ForEachLink(const std::vector<int>& chain, const F& f) const;
  // Whether the op makes the same of the same values in every run, and nothing else.
  bool IsPure(const Op& op) const;
  std::vector<bool> FindMadeOfParameters() const;
  // Lets ops read the shape of what stands for variables that are gone.
  void RenameShapes();

  Program program_;
  const OpRegistry& registry_;
  std::vector<VarUse> uses_;
  // By VarId; empty until somebody asks.
  mutable std::vector<bool> made_of_parameters_;
  mutable std::vector<std::optional<SymbolicShape>> shapes_;
  std::vector<bool> gone_;
  std::vector<std::pair<int, Op>> fused_;   // with their positions
  std::vector<std::pair<int, Op>> behind_;  // with the positions of the ops before
  std::vector<Var> declared_;               // not before the end: uses_ points to declarations
  std::vector<VarId> shape_of_;             // by variable that is gone; empty: none is
};

// An activation as attributes of a fused op: fuse_activation, fuse_alpha, fuse_beta.
struct FusedActivation {
  std::string name;
  float alpha = 0;
  float beta = 0;
};

// The activation that `op` computes from its only input X to its only output Out, if there is a
// fused form. Zero alpha means "default" to kernels, so ops that want a zero have none.
std::optional<FusedActivation> MatchActivation(const Op& op);

// X and Y of an op on two operands whose last dims meet; nullopt where `axis` says otherwise.
struct BinaryOperands {
  VarId x = 0;
  VarId y = 0;
};
std::optional<BinaryOperands> OperandsByLastDim(const Op& op);

// The factor of an op that does no more than multiply X by a number of the program.
std::optional<float> FactorOf(const Op& op);

// True for a batch_norm by running statistics of which nobody sees more than Y: its other outputs
// are the statistics, which stay as they are, or are read by nobody. Without a relu fused into it.
bool OnlyNormalizes(const Fuser& fuser, const Op& norm);

// The leading dims of X that make up the rows of `op`, one of mul, matmul and matmul_v2, when it is
// a product without transposition, factor or anything fused into it: Out[.., n] = sum_k X[.., k]
// Y[k, n]. `x` is the use of X, whose declared rank counts where one op writes it: names that a
// program uses for several values have the rank of one of them. Nor does it with
// `rank_is_uncertain` (uncertain_ranks.h); Paddle's fc has no way to say "all dims but the last".
std::optional<int32_t> RowDimsOfProduct(const Op& op, const VarUse& x, bool rank_is_uncertain);

// True when an elementwise op with attribute `axis` that adds a tensor of `dims` to one of `rank`
// dims adds value c to channel c of `channels`, along `channel_axis`. False for a declared number
// that tells nothing (-1).
bool IsPerChannel(const std::vector<int64_t>& dims, int64_t axis, int64_t rank,
                  int64_t channel_axis, int64_t channels);

}  // namespace interp
