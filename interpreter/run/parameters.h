// Parameters: the persistable tensors that the main block of a core uses, as runs find them in the
// scope.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/status.h"
#include "core/variable.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/constant_cache.h"
#include "interpreter/run/device_set.h"

namespace interp {

// Those that no instruction writes are constants: kernels keep what they computed of them for as
// long as their values stay.
//
// Thread-safety: one call at a time.
class Parameters {
 public:
  // `plan` and `variables`, by its VarIds, are borrowed.
  Parameters(const Plan& plan, absl::Span<Variable* const> variables);

  bool any_written() const { return !written_.empty(); }
  // NotFound for a constant without a value, InvalidArgument for a dtype that kernels were not
  // chosen for. What instructions write may come without a value.
  absl::Status Check() const;
  absl::Status CheckWritten() const;
  // Notes which values the constants have now; returns whether they had others at the last call.
  bool NoteConstants();
  const std::vector<ConstantValue>& constants() const { return constants_; }
  // Whether the constants are these tensors themselves, sorted by name, and nobody has changed
  // them.
  bool AreThose(absl::Span<const NamedTensor> tensors) const;
  // Whether one of them, constant or written, lies in this memory.
  bool LieIn(const Buffer& buffer) const;
  // Brings them to the places where the plan wants them, and into memory of their own what a file
  // has unaligned and kernels read more than once. `devices` is null for plans without. After
  // a failure all constants count as changed.
  absl::Status MoveConstants(DeviceSet* devices);
  bool ConstantsAreHome() const;
  absl::Status MoveWritten(DeviceSet* devices);

 private:
  // Where the plan wants a variable's memory.
  struct Home {
    Variable* variable = nullptr;
    Place place = {};
    bool may_be_unaligned = false;  // in all that read it
  };

  static bool IsHome(const Home& home);

  static absl::Status MoveHome(const std::vector<Home>& homes, DeviceSet* devices);
  absl::Status CheckConstants() const;
  absl::Status CheckConstants(const Instruction& instruction) const;
  absl::Status CheckDType(VarId id) const;

  const Plan& plan_;
  const absl::Span<Variable* const> variables_;
  std::vector<ConstantValue> constants_;
  std::vector<VarId> constant_ids_;  // of them
  std::vector<Home> constant_homes_;
  std::vector<Home> written_homes_;
  std::vector<VarId> written_;
};

}  // namespace interp
