// Long because a call is checked step by step, each step on what the one before has found.
#include "core/array/invoke.h"

#include <algorithm>
#include <utility>

#include "core/array/array_runtime.h"
#include "core/array/op_call.h"
#include "core/array/tape.h"
#include "core/base/catching.h"
#include "core/base/near_names.h"
#include "core/find_kernel.h"
#include "core/gradient.h"
#include "core/infer_dtypes.h"

namespace interp {
namespace {

using Use = OpCall::Use;

// Slots that only programs can serve.
constexpr int kNeedsProgram = kTensorArray | kOfSubBlock | kKeepsValue;
constexpr int64_t kMaxArguments = int64_t{1} << 20;  // of one output

const std::vector<Array>* FindSlot(const ArraySlots& slots, absl::string_view name) {
  for (const auto& [slot, arrays] : slots) {
    if (slot == name) return &arrays;
  }
  return nullptr;
}

// No arrays, or none but @EMPTY@.
bool IsAbsent(const std::vector<Array>* arrays) {
  return arrays == nullptr ||
         std::ranges::none_of(*arrays, [](const Array& array) { return bool{array}; });
}

class Caller {
 public:
  Caller(ArrayRuntime& runtime, const OpDef& def, const ArraySlots& inputs,
         const InvokeOptions& options)
      : runtime_(runtime), def_(def), inputs_(inputs), options_(options) {}

  absl::StatusOr<ArraySlots> Run(const std::vector<Attr>& attrs) {
    INTERP_RETURN_IF_ERROR(CheckSlots());
    INTERP_RETURN_IF_ERROR(Prepare(attrs));
    INTERP_RETURN_IF_ERROR(AddInputs());
    AddOutputs();
    INTERP_RETURN_IF_ERROR(FindPlace());
    INTERP_RETURN_IF_ERROR(ChooseKernel());
    INTERP_RETURN_IF_ERROR(Infer());
    INTERP_RETURN_IF_ERROR(GiveOutputs());
    Tape* const tape = Tape::Current();
    if (tape != nullptr) INTERP_RETURN_IF_ERROR(CheckWrites(*tape));
    INTERP_RETURN_IF_ERROR(Push());
    if (def_.dynamic_outputs) INTERP_RETURN_IF_ERROR(AwaitShapes());
    ArraySlots outputs = Outputs();
    if (tape != nullptr) tape->Note(def_, attrs, Inputs(), outputs);
    return outputs;
  }

 private:
  absl::Status CheckSlots() const {
    if (def_.sub_block != nullptr) return Unimplemented("runs a block, which needs a program");
    for (const auto& [slot, arrays] : inputs_) {
      const int index = def_.InputIndex(slot);
      if (index < 0) return InvalidArgument("has no input '", slot, "'");
      const int flags = def_.inputs[index].flags;
      if (arrays.size() > 1 && (flags & kVariadic) == 0) {
        return InvalidArgument("input '", slot, "' takes one array, not ", arrays.size());
      }
      for (const Array& array : arrays) {
        if (array && &array.runtime() != &runtime_) {
          return InvalidArgument("input '", slot, "' is an array of another runtime");
        }
        if (array && array.is_rows() && (flags & kMayBeRows) == 0) {
          return InvalidArgument("input '", slot, "' cannot be an array of rows");
        }
      }
    }
    for (const auto& [slot, count] : options_.outputs) {
      INTERP_RETURN_IF_ERROR(CheckOutput(slot, count));
    }
    for (const auto& [slot, arrays] : options_.into) {
      INTERP_RETURN_IF_ERROR(CheckOutput(slot, std::ssize(arrays)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOutput(absl::string_view slot, int64_t count) const {
    const int index = def_.OutputIndex(slot);
    if (index < 0) return InvalidArgument("has no output '", slot, "'");
    const int flags = def_.outputs[index].flags;
    if (count > 0 && (flags & kKeepsValue) != 0) {
      return Unimplemented("output '", slot, "' is a state, which takes a variable of a program");
    }
    const bool fits = count >= ((flags & kOptional) != 0 ? 0 : 1) &&
                      (count <= 1 || (flags & kVariadic) != 0) && count <= kMaxArguments;
    if (fits) return absl::OkStatus();
    return InvalidArgument("output '", slot, "' is asked for ", count, " times, expected once",
                           (flags & kVariadic) != 0 ? " or more" : "");
  }

  // An op whose gradient may read what is written is none that may be recorded.
  absl::Status CheckWrites(const Tape& tape) const {
    for (size_t i = call_->num_inputs; i < call_->operands.size(); ++i) {
      const Array& into = call_->operands[i].array;
      INTERP_RETURN_IF_ERROR(tape.CheckWrite(into));
      for (size_t k = 0; k < call_->num_inputs; ++k) {
        const Array& input = call_->operands[k].array;
        if (!input || !input.SharesMemoryWith(into) || !GradientUses(k)) continue;
        return InvalidArgument("writes over its input ", DescribeArray(input),
                               ", whose gradient would see other values");
      }
    }
    return absl::OkStatus();
  }

  // Whether the gradient of the op may read that input or be one of it.
  bool GradientUses(size_t input) const {
    const GradientDef& gradient = def_.gradient;
    if (gradient.make != nullptr) return true;
    for (size_t slot = 0; slot < def_.inputs.size(); ++slot) {
      const BoundArgs::Range range = call_->args.input_slots[slot];
      const auto at = static_cast<int32_t>(input) - range.begin;
      if (at < 0 || at >= range.size) continue;
      const absl::string_view name = def_.inputs[slot].name;
      return std::ranges::find(gradient.inputs, name) != gradient.inputs.end() ||
             std::ranges::find(gradient.outputs, GradientName(name)) != gradient.outputs.end();
    }
    return false;
  }

  absl::Status Prepare(const std::vector<Attr>& attrs) {
    Op op;
    op.type = std::string(def_.type);
    for (const SlotDef& slot : def_.inputs) {
      const std::vector<Array>* arrays = FindSlot(inputs_, slot.name);
      if (IsAbsent(arrays)) continue;
      op.inputs.push_back({std::string(slot.name), ArgIds(arrays->size(), 0)});
    }
    op.attrs = attrs;
    INTERP_ASSIGN_OR_RETURN(std::shared_ptr<CachedOp> cached,
                            runtime_.op_cache().Get(def_, std::move(op)));
    call_ = std::make_shared<OpCall>(runtime_, std::move(cached));
    return absl::OkStatus();
  }

  void AddSlot(size_t count, BoundArgs::Ranges& slots, std::vector<int32_t>& counts) {
    slots.push_back({static_cast<int32_t>(call_->operands.size()), static_cast<int32_t>(count)});
    counts.push_back(static_cast<int32_t>(count));
  }

  absl::Status AddInputs() {
    for (const SlotDef& slot : def_.inputs) {
      const std::vector<Array>* arrays = FindSlot(inputs_, slot.name);
      const bool absent = IsAbsent(arrays);
      if (absent && (slot.flags & kOptional) == 0) {
        return InvalidArgument("input '", slot.name, "' is missing");
      }
      if (!absent && (slot.flags & kNeedsProgram) != 0) {
        return Unimplemented("takes variables of programs for '", slot.name, "'");
      }
      AddSlot(absent ? 0 : arrays->size(), call_->args.input_slots, input_counts_);
      if (absent) continue;
      for (const Array& array : *arrays) {
        Use use = Use::kNone;
        if (array && (slot.flags & kNoNeedBuffer) == 0) use = Use::kRead;
        if (array && array.is_rows()) use = Use::kRows;
        call_->operands.push_back({array, use});
        flags_.push_back(slot.flags);
      }
    }
    call_->num_inputs = call_->operands.size();
    return absl::OkStatus();
  }

  int CountOf(const SlotDef& slot) const {
    if (const std::vector<Array>* into = FindSlot(options_.into, slot.name); into != nullptr) {
      return static_cast<int>(into->size());
    }
    for (const auto& [name, count] : options_.outputs) {
      if (name == slot.name) return count;
    }
    if ((slot.flags & kOptional) == 0) return 1;
    if ((slot.flags & kNeedsProgram) != 0) return 0;
    return Tape::Wants(def_, slot.name) ? CountForGradient(slot) : 0;
  }

  // What an op leaves for its gradient in a slot of several it leaves for each of its inputs.
  int CountForGradient(const SlotDef& slot) const {
    size_t most = 1;
    if ((slot.flags & kVariadic) == 0) return static_cast<int>(most);
    for (const SlotDef& input : def_.inputs) {
      const std::vector<Array>* arrays = FindSlot(inputs_, input.name);
      if (arrays != nullptr && (input.flags & kVariadic) != 0) {
        most = std::max(most, arrays->size());
      }
    }
    return static_cast<int>(most);
  }

  void AddOutputs() {
    for (const SlotDef& slot : def_.outputs) {
      const int count = CountOf(slot);
      AddSlot(static_cast<size_t>(count), call_->args.output_slots, output_counts_);
      const std::vector<Array>* into = FindSlot(options_.into, slot.name);
      for (int i = 0; i < count; ++i) {
        call_->operands.push_back({into != nullptr ? (*into)[i] : Array(), Use::kNone});
        flags_.push_back(slot.flags);
      }
    }
  }

  absl::Status FindPlace() {
    bool found = false;
    place_ = options_.place;
    for (size_t i = 0; i < call_->num_inputs; ++i) {
      const Array& array = call_->operands[i].array;
      if (!array) continue;
      if ((flags_[i] & (kHostInput | kValueInInfer)) != 0) {
        if (array.place().on_host()) continue;
        return InvalidArgument("reads an array ", DescribeArray(array),
                               " on the host; expected one on cpu");
      }
      if (found && array.place() != place_) {
        return InvalidArgument("has inputs on ", Name(place_), " and ", Name(array.place()),
                               "; copy one of them to the other's place");
      }
      place_ = array.place();
      found = true;
    }
    if (!place_.on_host() && (def_.host_only || def_.dynamic_outputs)) return HostOnly();
    return absl::OkStatus();
  }

  absl::Status HostOnly() const {
    return InvalidArgument("runs on the host alone, its inputs lie on ", Name(place_),
                           "; copy them to cpu");
  }

  absl::Status ChooseKernel() {
    std::vector<DType> in;
    for (size_t i = 0; i < call_->num_inputs; ++i) {
      const Array& array = call_->operands[i].array;
      in.push_back(array ? array.dtype() : DType::kUndefined);
    }
    output_dtypes_.assign(call_->operands.size() - call_->num_inputs, DType::kUndefined);
    const DTypeContext::Outputs outputs{absl::MakeSpan(output_dtypes_), output_counts_};
    const void* attrs = call_->op->attrs();
    const DType dtype = KernelDType(def_, call_->op->op(), attrs, {in, input_counts_}, outputs);
    INTERP_ASSIGN_OR_RETURN(const int32_t row, FindKernel(def_, dtype, attrs, place_.kind));
    call_->kernel = &def_.kernels[row];
    if (!place_.on_host() && call_->kernel->host_only) return HostOnly();
    for (size_t i = 0; i < call_->num_inputs && dtype != DType::kUndefined; ++i) {
      if (in[i] == DType::kUndefined || in[i] == dtype || (flags_[i] & kAnyDType) != 0) continue;
      INTERP_RETURN_IF_ERROR(CastInput(i, dtype));
      in[i] = dtype;
    }
    InferDTypes(def_, attrs, dtype, {in, input_counts_}, outputs);
    return absl::OkStatus();
  }

  // As a plan does before an instruction.
  absl::Status CastInput(size_t i, DType dtype) {
    Array& array = call_->operands[i].array;
    const OpDef* cast = runtime_.ops().Find("cast");
    if (cast == nullptr || array.is_rows()) {
      return InvalidArgument("has an input ", DescribeArray(array), ", but its kernel takes ",
                             Name(dtype));
    }
    absl::StatusOr<Array> casted =
        First(Invoke(runtime_, *cast, {{"X", {array}}},
                     {{"in_dtype", static_cast<int32_t>(array.dtype())},
                      {"out_dtype", static_cast<int32_t>(dtype)}},
                     {.priority = options_.priority, .property = options_.property}));
    INTERP_RETURN_IF_ERROR(casted.status());
    array = *std::move(casted);
    return absl::OkStatus();
  }

  absl::Status Infer() {
    const size_t count = call_->operands.size();
    call_->variables.resize(count);
    call_->args.constant.assign(count, false);
    for (size_t i = 0; i < count; ++i) {
      OpCall::Operand& operand = call_->operands[i];
      const bool given = operand.array || i >= call_->num_inputs;
      if (operand.array) call_->BindShape(i);
      call_->args.variables.push_back(given ? &call_->variables[i] : nullptr);
      call_->args.tensors.push_back(given ? &call_->variables[i].tensor : nullptr);
      if (i < call_->num_inputs && operand.array && (flags_[i] & kValueInInfer) != 0) {
        // The kernel is to see the values that shapes follow from, whatever is written meanwhile.
        INTERP_ASSIGN_OR_RETURN(const Tensor value, operand.array.Read());
        call_->variables[i].tensor.ShareMemory(value);
        operand.use = Use::kNone;
      }
    }
    for (size_t i = call_->num_inputs; i < count; ++i) {
      call_->variables[i].tensor.dtype = output_dtypes_[i - call_->num_inputs];
    }
    if (def_.infer == nullptr) return absl::OkStatus();
    InferContext context(call_->args, call_->op->attrs());
    return def_.infer(context);
  }

  absl::Status GiveOutputs() {
    for (size_t i = call_->num_inputs; i < call_->operands.size(); ++i) {
      OpCall::Operand& operand = call_->operands[i];
      const Tensor& inferred = call_->variables[i].tensor;
      if (!inferred.lod.empty()) return Unimplemented("gives a LoD, which arrays have not");
      if (operand.array) {
        INTERP_RETURN_IF_ERROR(CheckInto(i, operand.array, inferred));
        operand.use = operand.array.is_rows() ? Use::kRows : UseOfOutput(i);
      } else {
        const Shape shape = def_.dynamic_outputs ? Shape{0} : inferred.shape;
        INTERP_ASSIGN_OR_RETURN(operand.array, runtime_.New(shape, inferred.dtype, place_));
        operand.use = def_.dynamic_outputs ? Use::kFound : Use::kWrite;
      }
    }
    call_->BindVariables();
    return absl::OkStatus();
  }

  absl::Status CheckInto(size_t i, const Array& into, const Tensor& inferred) const {
    if (&into.runtime() != &runtime_ || into.place() != place_) {
      return InvalidArgument("writes into an array ", DescribeArray(into), ", but runs on ",
                             Name(place_));
    }
    if (def_.dynamic_outputs) return InvalidArgument("finds the shapes of its outputs itself");
    for (size_t k = call_->num_inputs; k < i; ++k) {
      if (call_->operands[k].array.SharesMemoryWith(into)) {
        return InvalidArgument("writes two outputs into one array");
      }
    }
    if (into.is_rows() && (flags_[i] & kMayBeRows) == 0) {
      return InvalidArgument("cannot write into an array of rows");
    }
    Shape shape = inferred.shape;
    if (into.is_rows() && shape.rank() > 0)
      shape[0] = into.shape()[0];  // how many there are, or all
    if (into.shape() == shape && into.dtype() == inferred.dtype) return absl::OkStatus();
    return InvalidArgument("gives ", DescribeType(inferred), ", to be written into an array ",
                           DescribeArray(into));
  }

  // How an output in an array that was given is written.
  Use UseOfOutput(size_t output) const {
    const Array& into = call_->operands[output].array;
    int readers = 0;
    bool same = false;
    for (size_t i = 0; i < call_->num_inputs; ++i) {
      const Array& input = call_->operands[i].array;
      if (!input || !input.SharesMemoryWith(into)) continue;
      ++readers;
      same = MayShare(i, output) && input.size_bytes() == into.size_bytes() &&
             ArrayAccess::offset_bytes(input) == ArrayAccess::offset_bytes(into);
    }
    if (readers == 0) return Use::kWrite;
    return readers == 1 && same && call_->kernel->inplace ? Use::kInPlace : Use::kAside;
  }

  // Whether the definition lets that output be written over that input.
  bool MayShare(size_t input, size_t output) const {
    return std::any_of(def_.inplace.begin(), def_.inplace.end(), [&](const SharePair& pair) {
      const BoundArgs::Range in = call_->args.input_slots[pair.input];
      const BoundArgs::Range out = call_->args.output_slots[pair.output];
      const auto in_arg = static_cast<int32_t>(input) - in.begin;
      const auto out_arg = static_cast<int32_t>(output) - out.begin;
      if (in_arg < 0 || in_arg >= in.size || out_arg < 0 || out_arg >= out.size) return false;
      return pair.each ? in_arg == out_arg : in_arg == 0 && out_arg == 0;
    });
  }

  absl::Status Push() {
    absl::InlinedVector<engine::Variable, 8> reads;
    absl::InlinedVector<engine::Variable, 4> writes;
    absl::InlinedVector<engine::Variable, 4> updates;
    for (size_t i = 0; i < call_->operands.size(); ++i) {
      const OpCall::Operand& operand = call_->operands[i];
      if (operand.use == Use::kNone) continue;
      if (i < call_->num_inputs) {
        reads.push_back(operand.array.variable());
      } else {
        const bool whole = ArrayAccess::IsWhole(operand.array);
        (whole ? writes : updates).push_back(operand.array.variable());
      }
    }
    if (def_.random) call_->random = runtime_.NextRandomState();
    INTERP_RETURN_IF_ERROR(runtime_.engine().Push(
        [call = call_](const engine::RunContext& context) { return call->Run(context); },
        {.reads = reads, .writes = writes, .updates = updates},
        {.name = def_.type.data(),
         .place = place_,
         .property = options_.property,
         .priority = options_.priority}));
    for (size_t i = call_->num_inputs; i < call_->operands.size(); ++i) {
      ArrayAccess::CountWrite(call_->operands[i].array);
    }
    return absl::OkStatus();
  }

  absl::Status AwaitShapes() {
    for (size_t i = call_->num_inputs; i < call_->operands.size(); ++i) {
      const Array array = call_->operands[i].array;
      INTERP_RETURN_IF_ERROR(array.WaitToRead());
      found_.push_back(runtime_.ViewOf(array, ArrayAccess::chunk(array)->value.tensor.shape, 0));
    }
    return absl::OkStatus();
  }

  // As the kernel takes them, cast ones included.
  ArraySlots Inputs() const {
    ArraySlots inputs;
    size_t at = 0;
    for (size_t slot = 0; slot < def_.inputs.size(); ++slot) {
      const int32_t count = input_counts_[slot];
      if (count == 0) continue;
      auto& [name, arrays] = inputs.emplace_back(def_.inputs[slot].name, std::vector<Array>());
      for (int32_t i = 0; i < count; ++i) arrays.push_back(call_->operands[at++].array);
    }
    return inputs;
  }

  ArraySlots Outputs() const {
    ArraySlots outputs;
    size_t at = 0;
    for (size_t slot = 0; slot < def_.outputs.size(); ++slot) {
      const int32_t count = output_counts_[slot];
      if (count == 0) continue;
      outputs.emplace_back(def_.outputs[slot].name, std::vector<Array>());
      for (int32_t i = 0; i < count; ++i, ++at) {
        outputs.back().second.push_back(
            found_.empty() ? call_->operands[call_->num_inputs + at].array : found_[at]);
      }
    }
    return outputs;
  }

  ArrayRuntime& runtime_;
  const OpDef& def_;
  const ArraySlots& inputs_;
  const InvokeOptions& options_;
  std::shared_ptr<OpCall> call_;
  Place place_;
  std::vector<int> flags_;  // by argument
  std::vector<int32_t> input_counts_, output_counts_;
  std::vector<DType> output_dtypes_;
  std::vector<Array> found_;  // by output
};

}  // namespace

absl::StatusOr<ArraySlots> Invoke(ArrayRuntime& runtime, const OpDef& def, const ArraySlots& inputs,
                                  const std::vector<Attr>& attrs, const InvokeOptions& options) {
  // Definitions take memory for what they parse and infer.
  absl::StatusOr<ArraySlots> outputs =
      Catching([&] { return Caller(runtime, def, inputs, options).Run(attrs); });
  if (!outputs.ok()) return Annotate(outputs.status(), def.type);
  return outputs;
}

absl::StatusOr<ArraySlots> Invoke(ArrayRuntime& runtime, absl::string_view type,
                                  const ArraySlots& inputs, const std::vector<Attr>& attrs,
                                  const InvokeOptions& options) {
  const OpDef* def = runtime.ops().Find(type);
  if (def == nullptr) {
    return NotFound("no op named '", type, "' is registered",
                    NearNamesHint(type, runtime.ops().Types()));
  }
  return Invoke(runtime, *def, inputs, attrs, options);
}

absl::StatusOr<Array> First(absl::StatusOr<ArraySlots> outputs) {
  INTERP_RETURN_IF_ERROR(outputs.status());
  if (outputs->empty() || outputs->front().second.empty()) {
    return InvalidArgument("the op has given no output");
  }
  return outputs->front().second.front();
}

}  // namespace interp
