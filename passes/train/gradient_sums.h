// GradientSums: the gradient ops of one block while they are made, from the last op of the forward
// block to the first, and what the gradient of each variable is the sum of.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "core/program.h"
#include "passes/train/backward_context.h"

namespace interp {

// Thread-safety: none.
class GradientSums {
 public:
  // One op's share of a gradient: argument `arg` of output slot `slot` of the op at that position;
  // -1: it comes from outside.
  struct Part {
    int op = -1;
    int slot = 0;
    int arg = 0;
  };

  // Gradients of the variables of `block`, in `gradient_block`; for block 0 that is itself.
  GradientSums(BackwardContext& context, int32_t block, int32_t gradient_block)
      : context_(context), block_(block), gradient_block_(gradient_block) {}

  // Whether there are no ops.
  bool empty() const { return ops_.empty(); }
  // Whether the gradient of a variable has been made, as it is where the block starts.
  bool Has(VarId var) const { return gradients_.contains(var); }

  // The gradient of a variable comes from outside the block, under its plain name.
  void SetIncoming(VarId var);
  bool IsIncoming(VarId var) const { return incoming_.contains(var); }

  // Gradients of this block that are selected rows, by the names that they have. Those of blocks
  // inside and around it may have the same names and be tensors.
  const absl::flat_hash_set<VarId>& rows() const { return rows_; }
  void MarkRows(VarId gradient, bool is_rows);

  // Puts an op behind the others; returns its first output.
  Part Push(Op op);
  // The whole gradient of `var` is what the op gives.
  void Set(Op op, VarId var) { gradients_[var] = {Push(std::move(op))}; }
  // It is zeros of the shape of `like`.
  void SetZeros(VarId var, VarId like) { Set(MakeZerosOp(like, context_.GradientOf(var)), var); }
  // A part is added to the gradient of `var`, under the name that it has.
  void Share(VarId var, Part part) { gradients_[var].push_back(part); }
  // Puts a gradient op behind the others and notes which gradients it gives, of those `wanted`:
  // variables by their gradients. `makes_rows` says which of the gradients are selected rows.
  void Append(Op made, const absl::flat_hash_map<VarId, VarId>& wanted,
              absl::FunctionRef<bool(VarId)> makes_rows);
  // Ends a version of `var`: ops before here have an earlier one. Not of an array, of which an op
  // changes one element. Of a source, Finish adds this gradient to those of earlier versions where
  // `adds`; otherwise an op hands it on to the version before.
  void Forget(VarId var, bool adds);
  void SetSources(const std::vector<VarId>& sources);
  bool IsSource(VarId var) const { return is_source_.contains(var); }
  // Adds a part of its own name to the gradient of a source, which earlier versions do not get.
  void AddLater(VarId source, Part part);

  // Makes the gradient of a variable one value under its plain name.
  void AddUp(VarId var);
  // Gives a part of the gradient of `var` a name of its own.
  void Rename(const Part& part, VarId var);
  bool MayBeRows(const Op& op, int slot) const;
  // An op that fills `out` with zeros of the shape of `like`.
  static Op MakeZerosOp(VarId like, VarId out);

  // Adds the sums that are still due, declares all gradients and moves the ops into the gradient
  // block. Sources get op_role_var.
  void Finish();
  // The sources that have a gradient. REQUIRES: Finish has run.
  const std::vector<VarId>& given() const { return given_; }

 private:
  Op Sum(VarId var, const std::vector<Part>& parts);
  VarId NameOf(const Part& part, VarId var);
  void AddPart(VarId var, Part part);
  void AddLaterVersions();
  void RenameVersion(const Part& part, VarId var, bool is_rows);
  bool KeepsPlainName(const Part& part, VarId var);
  void AddLastSums();
  int LastWriter(VarId gradient) const;
  void NoteSource(VarId source);
  void Declare(const Op& op);
  void DeclareGradient(VarId id, VarId var);

  BackwardContext& context_;
  const int32_t block_;
  const int32_t gradient_block_;
  std::vector<Op> ops_;
  // By variable: the shares of its gradient so far, of the version that the ops still to be
  // differentiated see.
  absl::flat_hash_map<VarId, std::vector<Part>> gradients_;
  absl::flat_hash_set<VarId> incoming_;
  std::vector<VarId> sources_;
  absl::flat_hash_set<VarId> is_source_;
  absl::flat_hash_set<VarId> overwritten_;  // sources of which a later version has a gradient
  // The whole gradient of a source's version that an op has overwritten.
  struct Version {
    Part part;
    bool is_plain = false;  // under the plain name
    bool is_rows = false;
  };
  absl::flat_hash_map<VarId, std::vector<Version>> later_;  // the last first
  std::vector<VarId> given_;
  absl::flat_hash_set<VarId> rows_;
  std::vector<int> moved_;                  // positions of ops after AddLastSums
  absl::flat_hash_map<VarId, int> sum_of_;  // and of the sums it added
};

}  // namespace interp
