// OpDef: what an op is. One per op type: slots, attributes, output types and shapes, what may share
// memory, and the kernels that compute it. Passes, analyses and the run ask here; nobody else knows
// any op by name. Kernels register their OpDef with INTERP_REGISTER_OP in their own file.
//
// The life of an instruction:
//   analysis  `parse` reads the attributes; `infer_dtype` gives output dtypes; the row of `kernels`
//             with the instruction's dtype is chosen; casts and layout changes are inserted.
//   run       `infer` sets shape and LoD of the outputs (skipped while nothing it depends on has
//             changed); the runner gives the outputs memory; the kernel computes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/attr_reader.h"
#include "core/device/work.h"
#include "core/place.h"
#include "core/program.h"
#include "core/resource/random_stream.h"
#include "core/resource/workspace.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

class PlaceResources;
class Stream;

enum SlotFlags : uint8_t {
  kOptional = 1,      // may be absent
  kVariadic = 2,      // takes any number of arguments
  kNoNeedBuffer = 4,  // only shape and dtype are read: the memory may be gone
  kValueInInfer = 8,  // `infer` reads the values (a shape tensor, say)
  kAnyDType = 16,     // keeps its own dtype; without this flag an input of another dtype than the
                      // kernel's is cast before the op
  kTensorArray = 32,  // the variable is a tensor array (or a feed or fetch list)
  kAnyLayout = 64,    // input is taken in whatever layout it has
  kHostInput = 128,   // read from host memory wherever the op runs; kValueInInfer implies it
};

struct SlotDef {
  absl::string_view name;
  int flags = 0;  // SlotFlags
};

// Attributes as `parse` made them, shared by all clones. AttrsOf<T> of the contexts gives them
// back.
using ParsedAttrs = std::shared_ptr<const void>;

// State a kernel keeps between runs of one instruction in one core (primitives, scratch sizes).
class KernelState {
 public:
  virtual ~KernelState() = default;
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
  std::vector<Range> input_slots;   // by position in OpDef::inputs; size 0: absent
  std::vector<Range> output_slots;  // by position in OpDef::outputs
  std::vector<Tensor*> tensors;     // null for @EMPTY@
  std::vector<Variable*> variables;
  std::vector<bool> constant;  // by argument: persistable and written by no op
};

// Access to inputs and outputs, common to the contexts below. Slots are positions in OpDef::inputs
// and OpDef::outputs.
class OpContext {
 public:
  // No slot or argument is added to `args` while the context lives.
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
  // The tensor array of a kTensorArray slot.
  std::vector<Tensor>& input_array(int slot) const {
    return args_->variables[input_slots_[slot].begin]->array;
  }
  std::vector<Tensor>& output_array(int slot) const {
    return args_->variables[output_slots_[slot].begin]->array;
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
  void ShareShape(int input_slot, int output_slot) {
    if (Tensor* out = optional_output(output_slot)) {
      out->shape = input(input_slot).shape;
      out->lod = input(input_slot).lod;
    }
  }
  // Sets the shape of an output (when present) and clears its LoD.
  void SetShape(int output_slot, const Shape& shape) {
    if (Tensor* out = optional_output(output_slot)) {
      out->shape = shape;
      out->lod.clear();
    }
  }
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
    const PlaceServices* place = nullptr;
    int instruction = 0;
    int num_threads = 1;
  };
  KernelContext(BoundArgs& args, const void* attrs, const Services& services)
      : OpContext(args, attrs), services_(services) {}

  // Threads this op may use; see kernels/util/parallel_for.h.
  int num_threads() const { return services_.num_threads; }
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

// What `infer_dtype` sees: dtypes by slot, no shapes, no memory.
class DTypeContext {
 public:
  DTypeContext(const std::vector<std::vector<DType>>& inputs, const void* attrs, DType kernel,
               std::vector<std::vector<DType>>& outputs)
      : inputs_(inputs), attrs_(attrs), kernel_(kernel), outputs_(outputs) {}

  // The dtype the kernel was chosen by; the default of every output.
  DType kernel() const { return kernel_; }
  // dtype of the first argument of the slot; kUndefined when absent.
  DType input(int slot) const {
    return inputs_[slot].empty() ? DType::kUndefined : inputs_[slot][0];
  }
  absl::Span<const DType> inputs(int slot) const { return inputs_[slot]; }
  // Sets the dtype of all arguments of an output slot.
  void Set(int output_slot, DType dtype) {
    for (DType& d : outputs_[output_slot]) d = dtype;
  }
  void Set(int output_slot, int arg, DType dtype) { outputs_[output_slot][arg] = dtype; }
  template <typename T>
  const T& attrs() const {
    return *static_cast<const T*>(attrs_);
  }

 private:
  const std::vector<std::vector<DType>>& inputs_;
  const void* attrs_;
  DType kernel_;
  std::vector<std::vector<DType>>& outputs_;
};

using KernelFn = absl::Status (*)(KernelContext&);

struct KernelDef {
  DType dtype;  // of the instruction, see OpDef::kernel_dtype; kUndefined serves every dtype
  KernelFn run;
  // kSim runs kCpu rows too: only what enqueues work itself has rows for a device.
  PlaceKind place = PlaceKind::kCpu;
};

// How an op treats channels-last tensors (rank 4 and 5). Plans decide layouts from this alone.
enum class LayoutRule : int8_t {
  // Inputs (but kAnyLayout ones) are brought to plain layout, outputs are plain.
  kPlain,
  // Faster channels-last: full-rank inputs are brought to it, outputs of that rank have it.
  kPrefersChannelsLast,
  // Element by element or otherwise indifferent: once one input is channels-last, all inputs of its
  // rank are brought to it and outputs of that rank have it. The kernel handles lower-rank inputs
  // (a [C] bias, a [N,C,1,1] scale) in either case.
  kFollows,
};

// An input slot whose memory an output slot may take over; first argument of each.
struct SharePair {
  int input = 0;
  int output = 0;
};

struct OpDef {
  absl::string_view type;
  std::vector<SlotDef> inputs;
  std::vector<SlotDef> outputs;

  // Parses and checks attributes: ParseAttrs<MyAttrs, ReadMyAttrs>. Null: the kernel reads none.
  absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&) = nullptr;

  // The dtype kernels are chosen by. Null: that of the first present input argument; with no input
  // at all, the `dtype` attribute (float32 when absent).
  DType (*kernel_dtype)(const DTypeContext&) = nullptr;
  // Sets output dtypes that differ from the kernel's. Null: all are the kernel's.
  void (*infer_dtype)(DTypeContext&) = nullptr;
  // Sets shape and LoD of the outputs. Never null but with dynamic_outputs.
  absl::Status (*infer)(InferContext&) = nullptr;

  std::vector<KernelDef> kernels = {};
  LayoutRule layout = LayoutRule::kPlain;
  // Overrides `layout` by attributes and kernel dtype (data_format "NHWC" is plain, say). May be
  // null.
  LayoutRule (*layout_rule)(const void* attrs, DType kernel) = nullptr;

  // Output may be written over a dying input of the same size (the kernel reads element i before it
  // writes element i, and no other element of that input later).
  std::vector<SharePair> inplace = {};
  // Output is the input's memory under another shape (reshape): the kernel copies only when the two
  // do not share already (see CopyUnlessShared in kernels/util).
  std::vector<SharePair> view = {};

  // The kernel sets the outputs' shapes and allocates them (results of non-maximum suppression).
  // All that depends on such an output is inferred anew in every run.
  bool dynamic_outputs = false;
  // Has an effect besides its outputs or depends on hidden state: never pruned, never merged.
  bool side_effect = false;
  // Draws random numbers (KernelContext::random): runs differ, so results are not to be kept.
  bool random = false;
  // Runs on the host even where the program runs on a device. So do ops with dynamic_outputs or
  // tensor arrays, whose results the host must see.
  bool host_only = false;

  // Floating-point operations of one run, from shapes alone; for profiles and cost models. A
  // multiplication and an addition count as two. Null or 0: unknown.
  int64_t (*flops)(const OpContext&) = nullptr;

  // Position of a slot by name, or -1.
  int InputIndex(absl::string_view name) const;
  int OutputIndex(absl::string_view name) const;
  // Whether instructions of this op can run on a place of that kind.
  bool RunsOn(PlaceKind kind) const;
};

// Fits a `T Read(AttrReader&)` to OpDef::parse.
template <typename T, T (*Read)(AttrReader&)>
absl::StatusOr<ParsedAttrs> ParseAttrs(AttrReader& reader) {
  auto parsed = std::make_shared<const T>(Read(reader));
  if (!reader.status().ok()) return reader.status();
  return ParsedAttrs(std::move(parsed));
}

// All op definitions by type. Filled before main() by the kernels' registrations, read-only after:
// reads need no lock.
class OpRegistry {
 public:
  // Named only by the registration macro and by the facades that build plans.
  static OpRegistry& Global();

  // Adds a definition. Aborts when the type is there already: that is a programming error.
  void Add(OpDef def);
  // The definition, or null.
  const OpDef* Find(absl::string_view type) const;
  // All types, sorted.
  std::vector<absl::string_view> Types() const;

 private:
  absl::flat_hash_map<absl::string_view, std::unique_ptr<OpDef>> defs_;
};

struct OpRegistration {
  explicit OpRegistration(OpDef def) { OpRegistry::Global().Add(std::move(def)); }
};

}  // namespace interp

// INTERP_REGISTER_OP(OpDef{.type = "relu", ...}) at namespace scope of a file in kernels/.
#define INTERP_REGISTER_OP(...)                                                \
  static const ::interp::OpRegistration INTERP_CONCAT(interp_op_registration_, \
                                                      __COUNTER__)(__VA_ARGS__)
