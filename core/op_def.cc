#include "core/op_def.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace interp {
namespace {

int IndexOf(const std::vector<SlotDef>& slots, absl::string_view name) {
  const auto it = std::find_if(slots.begin(), slots.end(),
                               [name](const SlotDef& slot) { return slot.name == name; });
  return it == slots.end() ? -1 : static_cast<int>(it - slots.begin());
}

template <typename T>
std::vector<int64_t> ToIntegers(const Tensor& tensor) {
  const T* data = tensor.data<T>();
  return std::vector<int64_t>(data, data + tensor.numel());
}

}  // namespace

int OpDef::InputIndex(absl::string_view name) const { return IndexOf(inputs, name); }
int OpDef::OutputIndex(absl::string_view name) const { return IndexOf(outputs, name); }

bool OpDef::RunsOn(PlaceKind kind) const {
  if (kind == PlaceKind::kCpu) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const KernelDef& kernel) { return kernel.place == PlaceKind::kCpu; });
  }
  // What a simulated device has no row for it runs by the host's.
  const bool has_row = kind == PlaceKind::kSim ||
                       std::any_of(kernels.begin(), kernels.end(), [kind](const KernelDef& kernel) {
                         return kernel.place == kind;
                       });
  const auto is_array = [](const SlotDef& slot) { return (slot.flags & kTensorArray) != 0; };
  return has_row && !host_only && !dynamic_outputs && sub_block == nullptr &&
         std::none_of(inputs.begin(), inputs.end(), is_array) &&
         std::none_of(outputs.begin(), outputs.end(), is_array);
}

void InferContext::ShareShape(int input_slot, int output_slot) {
  if (Tensor* out = optional_output(output_slot)) {
    out->shape = input(input_slot).shape;
    out->lod = input(input_slot).lod;
  }
}

void InferContext::SetShape(int output_slot, const Shape& shape) {
  if (Tensor* out = optional_output(output_slot)) {
    out->shape = shape;
    out->lod.clear();
  }
}

absl::StatusOr<std::vector<int64_t>> InferContext::Integers(const Tensor& tensor) {
  if (!tensor.has_memory()) {
    return InvalidArgument("a tensor of ", DescribeType(tensor),
                           ", on which shapes depend, has no value");
  }
  switch (tensor.dtype) {
    case DType::kInt32:
      return ToIntegers<int32_t>(tensor);
    case DType::kInt64:
      return ToIntegers<int64_t>(tensor);
    case DType::kBool:
      return ToIntegers<bool>(tensor);
    case DType::kFloat32:
      return ToIntegers<float>(tensor);
    default:
      return InvalidArgument("shape tensor is ", DescribeType(tensor), ", expected int32 or int64");
  }
}

OpRegistry& OpRegistry::Global() {
  static auto& registry = *new OpRegistry;
  return registry;
}

void OpRegistry::BeginLoad() {
  loading_ = true;
  loaded_.clear();
}

absl::Status OpRegistry::EndLoad() {
  loading_ = false;
  std::vector<OpDef> loaded = std::exchange(loaded_, {});
  absl::flat_hash_set<absl::string_view> types;
  for (const OpDef& def : loaded) {
    if (defs_.contains(def.type) || !types.insert(def.type).second) {
      return absl::AlreadyExistsError(
          absl::StrCat("an op named '", def.type, "' is there already; give it another name"));
    }
  }
  for (OpDef& def : loaded) Add(std::move(def));
  return absl::OkStatus();
}

void OpRegistry::Add(OpDef def) {
  if (loading_) {
    loaded_.push_back(std::move(def));
    return;
  }
  const absl::string_view type = def.type;
  if (!defs_.try_emplace(type, std::make_unique<OpDef>(std::move(def))).second) {
    std::fprintf(stderr, "op '%.*s' is registered twice\n", static_cast<int>(type.size()),
                 type.data());
    std::abort();
  }
  if (const auto early = early_rows_.extract(type); !early.empty()) {
    AddKernels(type, early.mapped());
  }
}

void OpRegistry::AddKernels(absl::string_view type, const std::vector<KernelDef>& rows) {
  const auto it = defs_.find(type);
  std::vector<KernelDef>& kernels = it == defs_.end() ? early_rows_[type] : it->second->kernels;
  kernels.insert(kernels.end(), rows.begin(), rows.end());
}

const OpDef* OpRegistry::Find(absl::string_view type) const {
  const auto it = defs_.find(type);
  return it == defs_.end() ? nullptr : it->second.get();
}

std::vector<absl::string_view> OpRegistry::Types() const {
  std::vector<absl::string_view> types;
  types.reserve(defs_.size());
  for (const auto& [type, def] : defs_) types.push_back(type);
  std::sort(types.begin(), types.end());
  return types;
}

OpRegistration::OpRegistration(OpDef&& def) { OpRegistry::Global().Add(std::move(def)); }

KernelRegistration::KernelRegistration(absl::string_view type, const std::vector<KernelDef>& rows) {
  OpRegistry::Global().AddKernels(type, rows);
}

}  // namespace interp
