#include "tests/testing/kernel_runner.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/check.h"
#include "core/each_argument.h"
#include "tests/testing/slot_dtypes.h"

namespace interp::testing {
namespace {

// Nothing is shared between runs of a test.
class NoSharing : public SharedConstants {
 public:
  absl::StatusOr<std::shared_ptr<const void>> GetOrMake(
      int, uint64_t,
      const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) override {
    return make();
  }
};

// One op with its variables.
class KernelCall {
 public:
  KernelCall(const Program& program, const Op& op, absl::Span<const NamedTensor> inputs)
      : program_(program), op_(op) {
    for (const NamedTensor& input : inputs) {
      const VarId id = program.Find(input.first);
      if (id >= 0) variables_[id].tensor = InLayout(input.second, Layout::kPlain);
    }
  }

  absl::Status Prepare() {
    def_ = OpRegistry::Global().Find(op_.type);
    if (def_ == nullptr) return NotFound("no op '", op_.type, "'");
    INTERP_RETURN_IF_ERROR(Bind(op_.inputs, def_->inputs, args_.input_slots));
    INTERP_RETURN_IF_ERROR(Bind(op_.outputs, def_->outputs, args_.output_slots));
    if (def_->parse != nullptr) {
      AttrReader reader(op_);
      INTERP_ASSIGN_OR_RETURN(attrs_, def_->parse(reader));
    }
    return ChooseKernel();
  }

  // As a plan leaves inputs of which only shape and dtype count.
  absl::Status LeaveUnread() {
    bool any = false;
    ForEach(def_->inputs, args_.input_slots, [&](const SlotDef& slot, Tensor& tensor) {
      if ((slot.flags & kNoNeedBuffer) == 0 || IsRead(tensor)) return;
      any = true;
      tensor.DropMemory();
      if (IsImage(tensor)) tensor.layout = Layout::kChannelsLast;
    });
    return any ? absl::OkStatus() : Unimplemented("all inputs are read");
  }

  // Brings inputs to the layout, and outputs as `infer` shapes them.
  absl::Status SetLayout(Layout layout) {
    if (layout == Layout::kPlain) return Infer();
    const LayoutRule rule = def_->layout_rule != nullptr
                                ? def_->layout_rule(attrs_.get(), kernel_->dtype)
                                : def_->layout;
    if (rule == LayoutRule::kPlain) return Unimplemented("plain op");
    int rank = 0;
    ForEach(def_->inputs, args_.input_slots, [&](const SlotDef& slot, Tensor& tensor) {
      if (rank == 0 && IsImage(tensor) && (slot.flags & kAnyLayout) == 0)
        rank = tensor.shape.rank();
    });
    if (rank == 0) return Unimplemented("no image");
    ForEach(def_->inputs, args_.input_slots, [&](const SlotDef& slot, Tensor& tensor) {
      if (tensor.shape.rank() == rank && (slot.flags & kAnyLayout) == 0) {
        tensor = InLayout(tensor, layout);
      }
    });
    INTERP_RETURN_IF_ERROR(Infer());
    ForEach(def_->outputs, args_.output_slots, [&](const SlotDef&, Tensor& tensor) {
      if (tensor.shape.rank() == rank) tensor.layout = layout;
    });
    return Infer();
  }

  absl::Status Run(int num_threads) {
    if (!def_->dynamic_outputs) {
      absl::Status status;
      ForEach(def_->outputs, args_.output_slots, [&](const SlotDef&, Tensor& tensor) {
        if (status.ok()) status = tensor.Allocate(SystemAllocator());
      });
      INTERP_RETURN_IF_ERROR(status);
    }
    NoSharing shared;
    std::unique_ptr<KernelState> state;
    KernelContext context(args_, attrs_.get(),
                          {.allocator = &SystemAllocator(),
                           .shared = &shared,
                           .state = &state,
                           .num_threads = num_threads});
    return kernel_->run(context);
  }

  std::vector<NamedTensor> Outputs() {
    std::vector<NamedTensor> outputs;
    for (const VarId id : EachArgument(op_.outputs)) {
      if (program_.NameOf(id) == kEmptyVarName) continue;
      outputs.emplace_back(program_.NameOf(id), InLayout(variables_[id].tensor, Layout::kPlain));
    }
    return outputs;
  }

 private:
  static bool IsImage(const Tensor& tensor) {
    return tensor.shape.rank() == 4 || tensor.shape.rank() == 5;
  }

  // By the memory that some slot takes.
  bool IsRead(const Tensor& wanted) {
    bool read = false;
    ForEach(def_->inputs, args_.input_slots, [&](const SlotDef& slot, Tensor& tensor) {
      read = read || (&tensor == &wanted && (slot.flags & kNoNeedBuffer) == 0);
    });
    return read;
  }

  absl::Status Bind(const std::vector<Slot>& given, const std::vector<SlotDef>& slots,
                    BoundArgs::Ranges& ranges) {
    for (const SlotDef& slot : slots) {
      const auto it = absl::c_find_if(given, [&](const Slot& s) { return s.name == slot.name; });
      const int32_t begin = static_cast<int32_t>(args_.tensors.size());
      if ((slot.flags & kTensorArray) != 0) return Unimplemented("tensor array");
      if (it != given.end()) {
        for (const VarId id : it->args) AddArgument(id);
      }
      ranges.push_back({begin, static_cast<int32_t>(args_.tensors.size()) - begin});
    }
    return absl::OkStatus();
  }

  void AddArgument(VarId id) {
    Variable* variable = program_.NameOf(id) == kEmptyVarName ? nullptr : &variables_[id];
    args_.variables.push_back(variable);
    args_.tensors.push_back(variable == nullptr ? nullptr : &variable->tensor);
    args_.constant.push_back(false);
  }

  template <typename Body>
  void ForEach(const std::vector<SlotDef>& slots, const BoundArgs::Ranges& ranges,
               const Body& body) {
    for (size_t s = 0; s < slots.size(); ++s) {
      for (int32_t i = 0; i < ranges[s].size; ++i) {
        Tensor* tensor = args_.tensors[ranges[s].begin + i];
        if (tensor != nullptr) body(slots[s], *tensor);
      }
    }
  }

  SlotDTypes DTypesOf(const BoundArgs::Ranges& ranges) const {
    SlotDTypes result;
    for (const BoundArgs::Range& range : ranges) {
      result.counts.push_back(range.size);
      for (int32_t i = 0; i < range.size; ++i) {
        const Tensor* tensor = args_.tensors[range.begin + i];
        result.dtypes.push_back(tensor == nullptr ? DType::kUndefined : tensor->dtype);
      }
    }
    return result;
  }

  DType KernelDType(const SlotDTypes& inputs, SlotDTypes& outputs) const {
    const DTypeContext context(inputs.AsInputs(), attrs_.get(), DType::kUndefined,
                               outputs.AsOutputs());
    if (def_->kernel_dtype != nullptr) return def_->kernel_dtype(context);
    for (const DType dtype : inputs.dtypes) {
      if (dtype != DType::kUndefined) return dtype;
    }
    AttrReader reader(op_);
    return reader.Type("dtype", DType::kFloat32);
  }

  absl::Status ChooseKernel() {
    const SlotDTypes inputs = DTypesOf(args_.input_slots);
    SlotDTypes outputs = DTypesOf(args_.output_slots);
    const DType dtype = KernelDType(inputs, outputs);
    kernel_ = absl::c_find_if(def_->kernels, [dtype](const KernelDef& kernel) {
      return kernel.dtype == dtype || kernel.dtype == DType::kUndefined;
    });
    if (kernel_ == def_->kernels.end()) return Unimplemented("no kernel for ", Name(dtype));
    bool casts = false;
    ForEach(def_->inputs, args_.input_slots, [&](const SlotDef& slot, Tensor& tensor) {
      casts |= (slot.flags & kAnyDType) == 0 && tensor.dtype != dtype;
    });
    if (casts) return Unimplemented("an input is cast");
    absl::c_fill(outputs.dtypes, dtype);
    DTypeContext context(inputs.AsInputs(), attrs_.get(), dtype, outputs.AsOutputs());
    if (def_->infer_dtype != nullptr) def_->infer_dtype(context);
    const size_t first = args_.tensors.size() - outputs.dtypes.size();
    for (size_t i = 0; i < outputs.dtypes.size(); ++i) {
      Tensor* tensor = args_.tensors[first + i];
      if (tensor != nullptr) tensor->dtype = outputs.dtypes[i];
    }
    return absl::OkStatus();
  }

  absl::Status Infer() {
    if (def_->infer == nullptr) return absl::OkStatus();
    InferContext context(args_, attrs_.get());
    return def_->infer(context);
  }

  const Program& program_;
  const Op& op_;
  const OpDef* def_ = nullptr;
  ParsedAttrs attrs_;
  std::vector<KernelDef>::const_iterator kernel_;
  BoundArgs args_;
  std::map<VarId, Variable> variables_;  // addresses stay
};

}  // namespace

Tensor InLayout(const Tensor& tensor, Layout layout) {
  Tensor copy;
  copy.shape = tensor.shape;
  copy.dtype = tensor.dtype;
  copy.layout = layout;
  copy.lod = tensor.lod;
  if (!tensor.has_memory()) return copy;
  const absl::Status status = copy.Allocate(SystemAllocator());
  INTERP_CHECK(status.ok());
  const size_t size = SizeOf(tensor.dtype);
  const bool moves = tensor.layout != layout;
  const int64_t channels = moves ? tensor.shape[1] : 1;
  const int64_t spatial = moves ? tensor.shape.numel(2, tensor.shape.rank()) : 1;
  for (int64_t i = 0; i < tensor.numel(); ++i) {  // i: plain position
    const int64_t n = i / (channels * spatial);
    const int64_t c = i / spatial % channels;
    const int64_t last = (n * spatial + i % spatial) * channels + c;
    const int64_t from = tensor.layout == Layout::kPlain ? i : last;
    const int64_t to = layout == Layout::kPlain ? i : last;
    std::memcpy(static_cast<char*>(copy.mutable_raw_data()) + to * size,
                static_cast<const char*>(tensor.raw_data()) + from * size, size);
  }
  return copy;
}

absl::StatusOr<std::vector<NamedTensor>> RunKernel(const Program& program, const Op& op,
                                                   absl::Span<const NamedTensor> inputs,
                                                   const KernelRunOptions& options) {
  KernelCall call(program, op, inputs);
  INTERP_RETURN_IF_ERROR(call.Prepare());
  if (options.unread_elsewhere) INTERP_RETURN_IF_ERROR(call.LeaveUnread());
  INTERP_RETURN_IF_ERROR(call.SetLayout(options.layout));
  INTERP_RETURN_IF_ERROR(call.Run(options.num_threads));
  return call.Outputs();
}

}  // namespace interp::testing
