#include "tools/variable_capture.h"

#include <algorithm>

#include "interpreter/plan/instruction_name.h"

namespace interp {
namespace {

template <typename T>
absl::StatusOr<Tensor> Widen(const Tensor& tensor) {
  Tensor wide;
  wide.shape = tensor.shape;
  wide.dtype = DType::kFloat32;
  wide.lod = tensor.lod;
  INTERP_RETURN_IF_ERROR(wide.Allocate(SystemAllocator()));
  std::copy_n(tensor.data<T>(), tensor.numel(), wide.mutable_data<float>());
  return wide;
}

}  // namespace

absl::StatusOr<Tensor> WidenTensor(const Tensor& tensor) {
  if (tensor.has_memory() && tensor.dtype == DType::kBFloat16) return Widen<bfloat16>(tensor);
  if (tensor.has_memory() && tensor.dtype == DType::kFloat16) return Widen<float16>(tensor);
  return tensor;
}

VariableCapture::VariableCapture(const InterpreterCore& core)
    : core_(core), position_(core.plan().instructions.size(), 0) {
  const std::vector<InstrId>& order = core.plan().order;
  for (size_t at = 0; at < order.size(); ++at) position_[order[at]] = static_cast<int32_t>(at);
}

void VariableCapture::OnInstruction(int32_t instruction, int /*worker*/, int64_t /*start_ns*/,
                                    int64_t /*end_ns*/) {
  const std::vector<Instruction>& all = core_.plan().instructions;
  if (instruction >= std::ssize(all)) return;  // of a sub-block
  const std::lock_guard lock(mutex_);
  status_.Update(Copy(all[instruction], position_[instruction]));
}

absl::Status VariableCapture::Copy(const Instruction& instruction, int32_t at) {
  if (instruction.op_type == "feed") return absl::OkStatus();
  for (const VarId id : instruction.outputs) {
    if (id < 0) continue;
    const PlanVar& var = core_.plan().vars[id];
    if (var.program_var < 0 || var.kind != VarKind::kLodTensor || !var.place.on_host()) continue;
    const Tensor& tensor = core_.variables()[id]->tensor;
    if (!tensor.has_memory()) continue;
    WrittenValue written{.variable = var.name, .op = NameOf(instruction), .at = at, .value = {}};
    INTERP_ASSIGN_OR_RETURN(written.value, tensor.Clone(SystemAllocator()));
    values_.push_back(std::move(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WrittenValue>> VariableCapture::Take() {
  const std::lock_guard lock(mutex_);
  INTERP_RETURN_IF_ERROR(status_);
  std::stable_sort(values_.begin(), values_.end(),
                   [](const WrittenValue& a, const WrittenValue& b) { return a.at < b.at; });
  absl::flat_hash_map<std::string, int32_t> writes;
  for (WrittenValue& written : values_) written.write = writes[written.variable]++;
  return std::exchange(values_, {});
}

}  // namespace interp
