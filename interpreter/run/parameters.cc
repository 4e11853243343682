#include "interpreter/run/parameters.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "core/constant_elements.h"
#include "core/device/device_heap.h"

namespace interp {
namespace {

// Whether the instruction takes a value that it, or another one, changes.
bool TakesChanging(const Plan& plan, const Instruction& instruction) {
  return absl::c_any_of(instruction.inputs, [&](VarId id) {
    return id >= 0 && plan.vars[id].persistable && !plan.vars[id].constant;
  });
}

// Variables that an instruction reads in place, as typed elements, by VarId. What is copied into
// another form is not.
std::vector<bool> ReadInPlace(const Plan& plan) {
  std::vector<bool> read(plan.vars.size());
  const auto note = [&](const Instruction& instruction) {
    // Packed weights that a changing value is part of are made anew in every run.
    const bool packs = !TakesChanging(plan, instruction);
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0) continue;
      const int flags = InputFlags(instruction, static_cast<int>(arg));
      read[id] = read[id] || !packs || (flags & kMayBeUnaligned) == 0;
    }
  };
  absl::c_for_each(plan.folded, note);
  absl::c_for_each(plan.instructions, note);
  return read;
}

}  // namespace

Parameters::Parameters(const Plan& plan, absl::Span<Variable* const> variables)
    : plan_(plan), variables_(variables) {
  const std::vector<bool> read_in_place = ReadInPlace(plan_);
  for (size_t id = 0; id < plan_.vars.size(); ++id) {
    const PlanVar& var = plan_.vars[id];
    const bool parameter = var.persistable && var.copy_of < 0 && var.kind == VarKind::kLodTensor;
    if (!parameter) continue;
    if (var.constant) {
      constants_.push_back({.variable = variables_[id]});
      constant_ids_.push_back(static_cast<VarId>(id));
    }
    (var.constant ? constant_homes_ : written_homes_)
        .push_back({variables_[id], var.place, var.constant && !read_in_place[id]});
    if (!var.constant) written_.push_back(static_cast<VarId>(id));
  }
}

absl::Status Parameters::Check() const {
  INTERP_RETURN_IF_ERROR(CheckWritten());
  return CheckConstants();
}

absl::Status Parameters::CheckWritten() const {
  for (const VarId id : written_) INTERP_RETURN_IF_ERROR(CheckDType(id));
  return absl::OkStatus();
}

absl::Status Parameters::CheckConstants() const {
  for (const Instruction& instruction : plan_.folded) {
    INTERP_RETURN_IF_ERROR(CheckConstants(instruction));
  }
  for (const Instruction& instruction : plan_.instructions) {
    INTERP_RETURN_IF_ERROR(CheckConstants(instruction));
  }
  return absl::OkStatus();
}

absl::Status Parameters::CheckConstants(const Instruction& instruction) const {
  for (const VarId input : instruction.inputs) {
    if (input < 0) continue;
    const VarId id = plan_.vars[input].copy_of >= 0 ? plan_.vars[input].copy_of : input;
    const PlanVar& var = plan_.vars[id];
    if (!var.constant || var.folded || var.kind != VarKind::kLodTensor) continue;
    if (variables_[id]->tensor.has_memory()) {
      INTERP_RETURN_IF_ERROR(CheckDType(id));
      continue;
    }
    return NotFound("parameter '", var.name, "' of op ", instruction.op_type,
                    " has no value; load the parameters first (--params)");
  }
  return absl::OkStatus();
}

absl::Status Parameters::CheckDType(VarId id) const {
  const PlanVar& var = plan_.vars[id];
  const Tensor& tensor = variables_[id]->tensor;
  const bool fits = !tensor.has_memory() || tensor.dtype == var.dtype;
  if (fits || var.dtype == DType::kUndefined) return absl::OkStatus();
  return InvalidArgument("parameter '", var.name, "' is ", DescribeType(tensor),
                         ", the program declares ", Name(var.dtype));
}

bool Parameters::NoteConstants() {
  bool changed = false;
  for (ConstantValue& constant : constants_) {
    const Buffer* buffer = constant.variable->tensor.buffer().get();
    const ConstantValue now{.variable = constant.variable,
                            .version = constant.variable->version,
                            .buffer = buffer,
                            .serial = buffer != nullptr ? buffer->serial : 0};
    if (now == constant) continue;
    changed = true;
    constant = now;
  }
  return changed;
}

bool Parameters::AreThose(absl::Span<const NamedTensor> tensors) const {
  return std::all_of(constant_ids_.begin(), constant_ids_.end(), [&](VarId id) {
    const Variable& variable = *variables_[id];
    const std::string& name = plan_.vars[id].name;
    const auto it = std::lower_bound(
        tensors.begin(), tensors.end(), name,
        [](const NamedTensor& tensor, const std::string& wanted) { return tensor.first < wanted; });
    if (it == tensors.end() || it->first != name) return !variable.tensor.has_memory();
    return variable.version == 0 && variable.tensor.raw_data() == it->second.raw_data() &&
           variable.tensor.shape == it->second.shape;
  });
}

bool Parameters::LieIn(const Buffer& buffer) const {
  const auto lies_there = [&buffer](const Home& home) {
    return home.variable->tensor.buffer().get() == &buffer;
  };
  return absl::c_any_of(constant_homes_, lies_there) || absl::c_any_of(written_homes_, lies_there);
}

bool Parameters::IsHome(const Home& home) {
  const Tensor& tensor = home.variable->tensor;
  if (!tensor.has_memory()) return true;
  return tensor.place() == home.place && (home.may_be_unaligned || IsAligned(tensor));
}

bool Parameters::ConstantsAreHome() const { return absl::c_all_of(constant_homes_, IsHome); }

absl::Status Parameters::MoveConstants(DeviceSet* devices) {
  const absl::Status moved = MoveHome(constant_homes_, devices);
  if (!moved.ok()) {
    for (ConstantValue& constant : constants_) constant = {.variable = constant.variable};
  }
  return moved;
}

absl::Status Parameters::MoveWritten(DeviceSet* devices) {
  return MoveHome(written_homes_, devices);
}

absl::Status Parameters::MoveHome(const std::vector<Home>& homes, DeviceSet* devices) {
  for (const Home& home : homes) {
    if (IsHome(home)) continue;
    Tensor& tensor = home.variable->tensor;
    INTERP_RETURN_IF_ERROR(MoveToHost(tensor));
    if (!home.place.on_host()) {
      INTERP_ASSIGN_OR_RETURN(tensor, devices->heap(home.place).Upload(tensor));
    } else if (!IsHome(home)) {
      INTERP_ASSIGN_OR_RETURN(tensor, TakeFromFile(tensor));
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
