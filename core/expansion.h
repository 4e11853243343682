// Expansion: an op that is a few others. It has slots, as all ops have, but neither kernels nor
// shapes of its own: the pass expand_ops puts what it is made of in its place. Gradients of
// gradients are such ops:
//
//   square_grad_grad(X=x, grad_out=d, grad_x@GRAD=a) -> (grad_out@GRAD=b)
//
// becomes
//
//   square_grad(X=x, Out@GRAD=a) -> (X@GRAD=t)
//   assign(X=t) -> (Out=b)
#pragma once

#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/attr_reader.h"
#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// The op being expanded, as ExpansionDef::expand sees it, and what it becomes.
class Expansion {
 public:
  // Stands for an argument, or a value, that is not there.
  static constexpr VarId kAbsent = -1;
  struct Argument {
    absl::string_view slot;
    VarId id;
  };

  // Both outlive this.
  Expansion(Program& program, const Op& op);

  // The argument of an input slot, kAbsent where there is none or it is @EMPTY@.
  VarId Input(absl::string_view slot) const;
  // The attributes of the op. An error of theirs is one of Take.
  AttrReader& attrs() { return attrs_; }
  // All arguments of an input slot.
  std::vector<VarId> Inputs(absl::string_view slot) const;
  // Whether the op gives an output of that slot.
  bool Wants(absl::string_view slot) const { return Output(slot) != kAbsent; }

  // Adds an op with the attributes of the one that is expanded, and gives its value of slot
  // `output`. Nothing where an argument is absent, and kAbsent then. One of elementwise_ gets the
  // `axis` that Paddle wants of it.
  VarId Add(absl::string_view type, std::initializer_list<Argument> inputs,
            absl::string_view output = "Out");
  // The value of one more output of the op that was added last. REQUIRES: there is one.
  VarId AlsoGives(absl::string_view output);
  // Its values of one more slot that has several.
  std::vector<VarId> AlsoGives(absl::string_view output, int count);
  // Gives the op that was added last one more input slot; nothing without arguments, or where one
  // is absent. REQUIRES: there is an op.
  void AlsoTakes(absl::string_view slot, const std::vector<VarId>& arguments);
  // Sets an attribute of the op that was added last. REQUIRES: there is one.
  void SetAttr(absl::string_view name, AttrValue value);
  // The sum of those that are there.
  VarId Sum(const std::vector<VarId>& terms);
  // `factor` times the value.
  VarId Scale(VarId value, float factor);

  // Makes `value` the output of `slot`; nothing where the op gives none there. All ops have read
  // their inputs before an output gets its value.
  void Set(absl::string_view slot, VarId value);
  // The same, zeros of the shape of `like` where the value is absent.
  void SetOrZeros(absl::string_view slot, VarId value, VarId like);

  // A variable may stand for several: those of x are called x@VALUES, say. The part of the argument
  // of an input slot, kAbsent where no op has given it so far.
  VarId InputPart(absl::string_view slot, absl::string_view part) const;
  // Makes `value` a part of the output of `slot`, which itself gets none.
  void SetPart(absl::string_view slot, absl::string_view part, VarId value);
  // Leaves the output of `slot`, which only ops that are expanded read, without a value.
  void LeaveOut(absl::string_view slot) { left_out_.push_back(slot); }

  // The ops. An output that got no value is an error, and so is an attribute of another type.
  absl::StatusOr<std::vector<Op>> Take() &&;

 private:
  VarId Output(absl::string_view slot) const;
  VarId Temporary();
  void Assign(VarId output, VarId value);

  Program& program_;
  const Op& op_;
  AttrReader attrs_;
  VarId empty_;
  std::vector<Op> ops_;
  std::vector<Op> results_;  // give the outputs their values
  std::vector<absl::string_view> left_out_;
};

struct ExpansionDef {
  absl::string_view type;
  std::vector<SlotDef> inputs;
  std::vector<SlotDef> outputs;
  absl::Status (*expand)(Expansion&) = nullptr;
};

// The definition, or null where an op is not expanded. Filled before main(), read-only after.
const ExpansionDef* FindExpansion(absl::string_view type);

// Also adds the op to OpRegistry::Global(), so that its slots are known.
struct ExpansionRegistration {
  explicit ExpansionRegistration(ExpansionDef&& def);
};

}  // namespace interp

// INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "square_grad_grad", ...}) at namespace scope of a
// file in kernels/.
#define INTERP_REGISTER_EXPANSION(...)                                                       \
  static const ::interp::ExpansionRegistration INTERP_CONCAT(interp_expansion_registration_, \
                                                             __COUNTER__)(__VA_ARGS__)
