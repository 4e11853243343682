// OpDef: what an op is. One per op type: slots, attributes, output types and shapes, what may share
// memory, and the kernels that compute it. Passes, analyses and the run ask here; nobody else knows
// any op by name. Kernels register their OpDef with INTERP_REGISTER_OP in their own file.
//
// The life of an instruction:
//   analysis  `parse` reads the attributes; `infer_dtype` gives output dtypes; the row of `kernels`
//             with the instruction's dtype is chosen; casts and layout changes are inserted.
//   run       `infer` sets shape and LoD of the outputs (skipped while nothing it depends on has
//             changed); the runner gives the outputs memory; the kernel computes.
//
// Long because what an op is, is read in one place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/attr_reader.h"
#include "core/gradient.h"
#include "core/op_context.h"
#include "core/place.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

enum SlotFlags : uint16_t {
  kOptional = 1,      // may be absent
  kVariadic = 2,      // takes any number of arguments
  kNoNeedBuffer = 4,  // only shape and dtype are read: the memory may be gone
  kValueInInfer = 8,  // `infer` reads the values (a shape tensor, say)
  kAnyDType = 16,     // keeps its own dtype; without this flag an input of another dtype than the
                      // kernel's is cast before the op
  kTensorArray = 32,  // the kernel uses the variable itself: an array, a rank table, step records
  kAnyLayout = 64,    // input is taken in whatever layout it has; an output is plain, whatever the
                      // op's layout rule
  kHostInput = 128,   // read from host memory wherever the op runs; kValueInInfer implies it
  kMayBeEmpty = 256,  // the variable may hold no value: the kernel looks
  kOfSubBlock = 512,  // only repeats what the sub-block uses, which the analysis finds by itself:
                      // plans leave it out
  // Takes tensors and arrays, of which the kernel uses the variables themselves. All arguments of
  // such slots are the one or the other; those of ops that run blocks may be mixed.
  kMayBeArray = 1024,
  // Takes selected rows as well as tensors: the kernel looks which (Variable::selected_rows). It
  // gives an output of that kind its rows and memory itself. `infer` sees only a tensor's shape.
  kMayBeRows = 2048,
  // Of an output, a persistable variable that no input names: the kernel finds in it what it had
  // before, zeros where it had nothing. Passes do not see that read; such ops are host_only.
  kKeepsValue = 4096,
  // Of an input: a constant of float32 may lie where a file has it, at any address. Kernels read
  // it as bytes, or by ConstantElements (core/constant_elements.h), while they pack it.
  kMayBeUnaligned = 8192,
};

struct SlotDef {
  absl::string_view name;
  int flags = 0;  // SlotFlags
  // Of an input: the attribute whose value it has instead, where a program has variables for it
  // (AttrType VAR and VARS of Paddle): one with all of it or, in a variadic slot, one a number.
  absl::string_view attr = "";
};

using KernelFn = absl::Status (*)(KernelContext&);

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
  // Inputs are brought to plain layout; images that it makes are channels-last where an op that
  // reads them, perhaps behind others that follow, prefers that.
  kForReaders,
};

// What a program of mixed precision computes an op in (passes/mixed_precision.h). An op without a
// row for 16 bits stays in float32 whatever it says.
enum class PrecisionRule : int8_t {
  kFollows,  // 16 bits where an input that counts is of 16 bits already: bound by memory
  kReduced,  // 16 bits: products and convolutions
  kFull,     // float32: losses, exponentials, sums of many terms
};

struct KernelDef {
  DType dtype;  // of the instruction, see OpDef::kernel_dtype; kUndefined serves every dtype
  KernelFn run;
  // A row of a device enqueues its work on KernelContext::stream. kSim runs kCpu rows too; on other
  // devices an instruction that no row of theirs serves runs on the host.
  PlaceKind place = PlaceKind::kCpu;
  bool inplace = true;     // false: this row takes no pair of OpDef::inplace
  bool host_only = false;  // as OpDef::host_only, for instructions that this row serves
  // Overrides OpDef::layout. A row of a device is kPlain where it does not say otherwise.
  std::optional<LayoutRule> layout = std::nullopt;
  // Whether it computes what the op's attributes ask for, of a row of a device; null: always.
  bool (*takes)(const void* attrs) = nullptr;
  // Of a row of the host: makes what `run` keeps for these shapes (primitives, packed constants)
  // before its first run and beside other instructions; ParallelFor stays on the calling thread. Of
  // inputs only the values of constants are to be read (KernelContext::input_is_constant), and
  // outputs have no memory. `run` makes what is missing, and finds errors again. Null: nothing.
  KernelFn prepare = nullptr;
};

// An input slot whose memory an output slot may take over: the first argument of each, or with
// `each` argument i of one and argument i of the other.
struct SharePair {
  int input = 0;
  int output = 0;
  bool each = false;
};

// What the kernel of an op has in common with the op's sub-block, besides the variables of
// enclosing blocks that the block uses by itself.
struct SubBlock {
  // A variable of the block that the kernel sets before an activation. Its kind and dtype are those
  // of input argument `arg` of slot `slot`.
  struct Entry {
    std::string name;
    int slot = 0;
    int arg = 0;
  };
  std::vector<Entry> entries;
  std::vector<std::string> results;  // variables that it reads after an activation
  // The block's gradient reads captured tensors as they were when the activation started, not as
  // they are when it runs itself (loops).
  bool saves_captures = false;
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

  PrecisionRule precision = PrecisionRule::kFollows;

  // Output may be written over a dying input of the same size (the kernel reads element i before it
  // writes element i, and no other element of that input later).
  std::vector<SharePair> inplace = {};
  // Output is the input's memory under another shape (reshape): the kernel copies only when the two
  // do not share already (see CopyUnlessShared in kernels/util).
  std::vector<SharePair> view = {};
  // A view holds where one of the two is channels-last and the other plain: the dimensions are
  // turned as the layouts are.
  bool view_turns = false;

  // The kernel sets the outputs' shapes and allocates them (results of non-maximum suppression).
  // All that depends on such an output is inferred anew in every run.
  bool dynamic_outputs = false;
  // Has an effect besides its outputs or depends on hidden state: never pruned, never merged.
  bool side_effect = false;
  // Draws random numbers (KernelContext::random): runs differ, so results are not to be kept.
  bool random = false;
  // Runs on the host even where the program runs on a device. So do ops with dynamic_outputs or
  // tensor arrays, whose results the host must see, and those with an array for kMayBeArray.
  bool host_only = false;

  // Of an op that runs the block its attribute `sub_block` names: fills in `block`. Null: the op
  // runs no block. Such an op runs on the host, what is in the block wherever it can.
  absl::Status (*sub_block)(const Program& program, const Op& op, SubBlock& block) = nullptr;

  // What append_backward makes of the op. Empty: it cannot be differentiated.
  GradientDef gradient = {};

  // Floating-point operations of one run, from shapes alone; for profiles and cost models. A
  // multiplication and an addition count as two. Null or 0: unknown.
  int64_t (*flops)(const OpContext&) = nullptr;

  // Position of a slot by name, or -1.
  int InputIndex(absl::string_view name) const;
  int OutputIndex(absl::string_view name) const;
  // Whether instructions of this op can run on a place of that kind, whatever their dtype and
  // attributes.
  bool RunsOn(PlaceKind kind) const;
};

// Fits a `T Read(AttrReader&)` to OpDef::parse.
template <typename T, T (*Read)(AttrReader&)>
absl::StatusOr<ParsedAttrs> ParseAttrs(AttrReader& reader) {
  auto parsed = std::make_shared<const T>(Read(reader));
  if (!reader.status().ok()) return reader.status();
  return ParsedAttrs(std::move(parsed));
}

// All op definitions by type. Filled before main() by the kernels' registrations, and by libraries
// of ops (interpreter/load_ops.h) before programs are; read-only after: reads need no lock.
class OpRegistry {
 public:
  // Named only by the registration macro and by the facades that build plans.
  static OpRegistry& Global();

  // Adds a definition. Aborts when the type is there already, a programming error, but between
  // BeginLoad and EndLoad.
  void Add(OpDef def);
  // Adds rows to the definition of `type`, which may come later: kernels of another place have
  // files of their own.
  void AddKernels(absl::string_view type, const std::vector<KernelDef>& rows);
  // Around the registrations of a library that is loaded into the running process: EndLoad adds
  // all of them, or none and says AlreadyExists where a type is there already.
  void BeginLoad();
  absl::Status EndLoad();

  // The definition, or null.
  const OpDef* Find(absl::string_view type) const;
  // All types, sorted.
  std::vector<absl::string_view> Types() const;

 private:
  absl::flat_hash_map<absl::string_view, std::unique_ptr<OpDef>> defs_;
  // Rows of types that are not there yet.
  absl::flat_hash_map<absl::string_view, std::vector<KernelDef>> early_rows_;
  bool loading_ = false;
  std::vector<OpDef> loaded_;  // added since BeginLoad
};

struct OpRegistration {
  explicit OpRegistration(OpDef&& def);
};
struct KernelRegistration {
  KernelRegistration(absl::string_view type, const std::vector<KernelDef>& rows);
};

}  // namespace interp

// INTERP_REGISTER_OP(OpDef{.type = "relu", ...}) at namespace scope of a file in kernels/.
#define INTERP_REGISTER_OP(...)                                                \
  static const ::interp::OpRegistration INTERP_CONCAT(interp_op_registration_, \
                                                      __COUNTER__)(__VA_ARGS__)
// INTERP_REGISTER_KERNELS("relu", {{DType::kFloat32, Relu, PlaceKind::kCuda}}) likewise.
#define INTERP_REGISTER_KERNELS(type, ...)                                             \
  static const ::interp::KernelRegistration INTERP_CONCAT(interp_kernel_registration_, \
                                                          __COUNTER__)(type, __VA_ARGS__)
