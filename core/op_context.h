// What an op's functions see while they work on one instruction: its arguments, its attributes, and
// what the interpreter provides. Kernels get these by way of op_def.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/algorithms.h"
#include "core/block_runner.h"
#include "core/device/work.h"
#include "core/resource/random_stream.h"
#include "core/resource/workspace.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/variable.h"

namespace interp {

class PlaceResources;
class Stream;

// Attributes as `parse` made them, shared by all clones. AttrsOf<T> of the contexts gives them
// back.
using ParsedAttrs = std::shared_ptr<const void>;

// State a kernel keeps between runs of one instruction in one core (primitives, scratch sizes).
class KernelState {
 public:
  virtual ~KernelState() = default;
  // What the last run computed with, of kernels that choose; for reports.
  virtual std::string algorithm() const { return ""; }
};

// Things computed from constants, made once and shared by all clones of a core: packed weights.
// Thread-safe. `Make` may run twice when two threads race; the first result is kept.
class SharedConstants {
 public:
  virtual ~SharedConstants() = default;
  // The value under (instruction, key), made by `make` when there is none.
  virtual absl::StatusOr<std::shared_ptr<const void>> GetOrMake(
      int instruction, uint64_t key,
      const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) = 0;
};

// The variables of one instruction, by slot position of its OpDef. Made once, at link time.
struct BoundArgs {
  struct Range {
    int32_t begin = 0;
    int32_t size = 0;
  };
  // Most ops have few: then their lists lie here, without an allocation of their own.
  using Ranges = absl::InlinedVector<Range, 2>;
  using Tensors = absl::InlinedVector<Tensor*, 4>;
  using Variables = absl::InlinedVector<Variable*, 4>;
  Ranges input_slots;                      // by position in OpDef::inputs; size 0: absent
  Ranges output_slots;                     // by position in OpDef::outputs
  Tensors tensors;                         // null for @EMPTY@
  Variables variables;                     // likewise
  absl::InlinedVector<bool, 16> constant;  // by argument: persistable and written by no op
};

// Access to inputs and outputs, common to the contexts below. Slots are positions in OpDef::inputs
// and OpDef::outputs.
class OpContext {
 public:
  // `args` stays where it is, and no slot or argument is added to it, while the context lives.
  OpContext(BoundArgs& args, const void* attrs)
      : input_slots_(args.input_slots.data()),
        output_slots_(args.output_slots.data()),
        tensors_(args.tensors.data()),
        args_(&args),
        attrs_(attrs) {}

  // True when the slot has at least one argument.
  bool has_input(int slot) const { return first_or_null(input_slots_[slot]) != nullptr; }
  bool has_output(int slot) const { return first_or_null(output_slots_[slot]) != nullptr; }
  // The first argument of the slot. REQUIRES: present (mandatory slots always are).
  const Tensor& input(int slot) const { return *first_or_null(input_slots_[slot]); }
  Tensor& output(int slot) const { return *first_or_null(output_slots_[slot]); }
  // The first argument of the slot, or null.
  const Tensor* optional_input(int slot) const { return first_or_null(input_slots_[slot]); }
  Tensor* optional_output(int slot) const { return first_or_null(output_slots_[slot]); }
  // All arguments of a variadic slot; @EMPTY@ is null.
  absl::Span<const Tensor* const> inputs(int slot) const {
    const BoundArgs::Range r = input_slots_[slot];
    return absl::Span<const Tensor* const>(tensors_ + r.begin, r.size);
  }
  absl::Span<Tensor* const> outputs(int slot) const {
    const BoundArgs::Range r = output_slots_[slot];
    return absl::Span<Tensor* const>(tensors_ + r.begin, r.size);
  }
  // The first argument of a kTensorArray slot: its array, or the variable itself for the kinds that
  // hold something else. REQUIRES: present.
  std::vector<Tensor>& input_array(int slot) const { return input_variable(slot).array; }
  std::vector<Tensor>& output_array(int slot) const { return output_variable(slot).array; }
  Variable& input_variable(int slot) const { return *args_->variables[input_slots_[slot].begin]; }
  Variable& output_variable(int slot) const { return *args_->variables[output_slots_[slot].begin]; }
  // All arguments of a variadic slot as variables; @EMPTY@ is null.
  absl::Span<Variable* const> input_variables(int slot) const {
    const BoundArgs::Range r = input_slots_[slot];
    return absl::Span<Variable* const>(args_->variables.data() + r.begin, r.size);
  }
  absl::Span<Variable* const> output_variables(int slot) const {
    const BoundArgs::Range r = output_slots_[slot];
    return absl::Span<Variable* const>(args_->variables.data() + r.begin, r.size);
  }
  // What the op's `parse` made. REQUIRES: T is the type given to ParseAttrs.
  template <typename T>
  const T& attrs() const {
    return *static_cast<const T*>(attrs_);
  }

 protected:
  Tensor* first_or_null(BoundArgs::Range r) const {
    return r.size > 0 ? tensors_[r.begin] : nullptr;
  }

  // Copies of the pointers in *args_: kernels of small ops feel each indirection.
  const BoundArgs::Range* input_slots_;
  const BoundArgs::Range* output_slots_;
  Tensor* const* tensors_;
  BoundArgs* args_;
  const void* attrs_;
};

// What `infer` sees. It sets `shape` and `lod` of every output; dtype and layout are set already.
// Inputs always have a shape; only kValueInInfer inputs have readable memory.
class InferContext : public OpContext {
 public:
  using OpContext::OpContext;

  // Output gets shape and LoD of the input.
  void ShareShape(int input_slot, int output_slot);
  // Sets the shape of an output (when present) and clears its LoD.
  void SetShape(int output_slot, const Shape& shape);
  // The values of an int32 or int64 tensor (also bool and float, truncated). Error when the tensor
  // has no memory or another dtype.
  static absl::StatusOr<std::vector<int64_t>> Integers(const Tensor& tensor);
};

// What a kernel sees. Outputs have shape, dtype and memory, unless OpDef::dynamic_outputs is set.
class KernelContext : public OpContext {
 public:
  // Of the place that a kernel runs on; shared by the instructions of one stream.
  struct PlaceServices {
    Stream* stream = nullptr;        // where a device's kernel enqueues its work; null on the host
    WorkErrors* errors = nullptr;    // of that work
    Allocator* workspace = nullptr;  // in the order of `stream`; null: Services::allocator
    PlaceResources* resources = nullptr;
  };
  // All borrowed; set once, when the kernel is bound.
  struct Services {
    Allocator* allocator = nullptr;
    SharedConstants* shared = nullptr;
    std::unique_ptr<KernelState>* state = nullptr;  // of this instruction
    const RandomSource* random = nullptr;           // of an op with OpDef::random
    BlockRunner* block = nullptr;                   // of an op with OpDef::sub_block
    const PlaceServices* place = nullptr;
    int instruction = 0;
    int num_threads = 1;
    Algorithms algorithms = Algorithms::kFast;
  };
  KernelContext(BoundArgs& args, const void* attrs, const Services& services)
      : OpContext(args, attrs), services_(services) {}

  // What the kernel was bound with.
  const Services& services() const { return services_; }
  // Threads this op may use; see kernels/util/parallel_for.h.
  int num_threads() const { return services_.num_threads; }
  // What this op may choose from.
  Algorithms algorithms() const { return services_.algorithms; }
  Allocator& allocator() const { return *services_.allocator; }
  // REQUIRES: a kernel of a device.
  Stream& stream() const { return *services_.place->stream; }
  Work work() const {
    return {.tag = services_.instruction,
            .errors = services_.place != nullptr ? services_.place->errors : nullptr};
  }
  // Number of this instruction in its plan.
  int instruction() const { return services_.instruction; }

  // This op's random numbers of this run. REQUIRES: OpDef::random. Without a core (a kernel run by
  // hand) they are those of seed 0.
  RandomStream random() const {
    if (services_.random == nullptr) return RandomStream(RandomState{}, /*op=*/0);
    return RandomStream(*services_.random->state, services_.random->op);
  }
  // Temporary memory of the place this kernel runs on, until the result goes.
  absl::StatusOr<Workspace> workspace(size_t size_bytes) const {
    const PlaceServices* place = services_.place;
    const bool own = place != nullptr && place->workspace != nullptr;
    return Workspace::Take(own ? *place->workspace : *services_.allocator, size_bytes);
  }
  // The sub-block of this op. REQUIRES: OpDef::sub_block.
  BlockRunner& block() const { return *services_.block; }
  // What the instructions of this place share. REQUIRES: run by a core.
  PlaceResources& place_resources() const { return *services_.place->resources; }

  // Gives `out` memory for its shape and dtype. For kernels with dynamic_outputs, which set the
  // shape themselves, and for scratch tensors.
  absl::Status Allocate(Tensor& out) const { return out.Allocate(*services_.allocator); }

  // The input's values never change: derived data may be kept. `arg`: of a variadic slot.
  bool input_is_constant(int slot, int arg = 0) const {
    const BoundArgs::Range r = input_slots_[slot];
    return arg < r.size && args_->constant[r.begin + arg];
  }

  // This instruction's state in this core, default-constructed at first use. T derives KernelState.
  template <typename T>
  T& state() const {
    if (*services_.state == nullptr) *services_.state = std::make_unique<T>();
    return static_cast<T&>(**services_.state);
  }

  // A value made once per (instruction, key) and shared by all clones: packed constant weights.
  // `make` returns absl::StatusOr<std::shared_ptr<const T>>. `key` tells variants apart (a hash of
  // the memory descriptor, say).
  template <typename T, typename Make>
  absl::StatusOr<std::shared_ptr<const T>> Shared(uint64_t key, Make make) const {
    absl::StatusOr<std::shared_ptr<const void>> value = services_.shared->GetOrMake(
        services_.instruction, key, [&]() -> absl::StatusOr<std::shared_ptr<const void>> {
          absl::StatusOr<std::shared_ptr<const T>> made = make();
          if (!made.ok()) return made.status();
          return std::shared_ptr<const void>(*std::move(made));
        });
    if (!value.ok()) return value.status();
    return std::static_pointer_cast<const T>(*std::move(value));
  }

 private:
  Services services_;
};

// What `infer_dtype` sees: dtypes by slot, no shapes, no memory. Arguments of all slots lie one
// after the other; `counts` has the number of each slot's.
class DTypeContext {
 public:
  struct Inputs {
    absl::Span<const DType> dtypes;
    absl::Span<const int32_t> counts;
  };
  struct Outputs {
    absl::Span<DType> dtypes;
    absl::Span<const int32_t> counts;
  };
  // All spans are borrowed.
  DTypeContext(Inputs inputs, const void* attrs, DType kernel, Outputs outputs)
      : inputs_(inputs), attrs_(attrs), kernel_(kernel), outputs_(outputs) {}

  // The dtype the kernel was chosen by; the default of every output.
  DType kernel() const { return kernel_; }
  // dtype of the first argument of the slot; kUndefined when absent.
  DType input(int slot) const {
    return inputs_.counts[slot] == 0 ? DType::kUndefined : inputs(slot)[0];
  }
  absl::Span<const DType> inputs(int slot) const {
    return inputs_.dtypes.subspan(Begin(inputs_.counts, slot), inputs_.counts[slot]);
  }
  // Sets the dtype of all arguments of an output slot.
  void Set(int output_slot, DType dtype) {
    for (DType& d : outputs(output_slot)) d = dtype;
  }
  void Set(int output_slot, int arg, DType dtype) { outputs(output_slot)[arg] = dtype; }
  template <typename T>
  const T& attrs() const {
    return *static_cast<const T*>(attrs_);
  }

 private:
  static size_t Begin(absl::Span<const int32_t> counts, int slot) {
    size_t begin = 0;
    for (int s = 0; s < slot; ++s) begin += static_cast<size_t>(counts[s]);
    return begin;
  }
  absl::Span<DType> outputs(int slot) {
    return outputs_.dtypes.subspan(Begin(outputs_.counts, slot), outputs_.counts[slot]);
  }

  Inputs inputs_;
  const void* attrs_;
  DType kernel_;
  Outputs outputs_;
};

}  // namespace interp
