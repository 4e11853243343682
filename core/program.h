// Program, Block, Op, Var: a ProgramDesc as plain values.
//
// Names are interned once: `Program::names[id]` is the name of VarId `id`, in all blocks. A program
// keeps every field of the file it came from, also those interp does not know, so that saving it
// again gives an equal message (see program_load.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/base/rare_bytes.h"
#include "core/dtype.h"

namespace interp {

using VarId = int32_t;  // index into Program::names

// Name of the variable that stands for "no argument here" (Paddle's kEmptyVarName).
inline constexpr absl::string_view kEmptyVarName = "@EMPTY@";

// Paddle's VarType.Type for the values that are kinds of variables.
enum class VarKind : int32_t {
  kLodTensor = 7,
  kSelectedRows = 8,
  kFeedMinibatch = 9,
  kFetchList = 10,
  kStepScopes = 11,
  kLodRankTable = 12,
  kLodTensorArray = 13,
  kPlaceList = 14,
  kReader = 15,
  kFetchVarList = 16,
  kRaw = 17,
  kTuple = 18,
  kString = 25,
  kStrings = 26,
  kVocab = 27,
  kFeedList = 28,
  kSparseCoo = 30,
  kSparseCsr = 31,
};

struct Var {
  VarId id = -1;
  VarKind kind = VarKind::kLodTensor;
  // Element type and dims (-1: unknown) of tensor kinds; kUndefined and empty for the others and
  // where the program does not tell.
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  int32_t lod_level = 0;
  bool persistable = false;
  bool need_check_feed = false;
  bool is_parameter = false;
  bool stop_gradient = false;
  // The VarDesc message as it was loaded; empty for variables made here, and where the name and the
  // fields above give all of it. What they do not hold (which optional fields were set, variable
  // attributes, unknown fields) is taken from it on saving.
  RareBytes wire = {};
};

// Distinct types for the attribute kinds that share a representation, so that the variant's index
// is Paddle's AttrType number.
struct BlockIndex {
  int32_t index = 0;
  bool operator==(const BlockIndex&) const = default;
};
struct BlockIndices {
  std::vector<int32_t> indices;
  bool operator==(const BlockIndices&) const = default;
};
struct VarName {
  std::string name;
  bool operator==(const VarName&) const = default;
};
struct VarNames {
  std::vector<std::string> names;
  bool operator==(const VarNames&) const = default;
};
// Scalar (Paddle 2.5+): bool, int64, double or complex.
struct Complex {
  double real = 0;
  double imag = 0;
  bool operator==(const Complex&) const = default;
};
struct Scalar {
  std::variant<bool, int64_t, double, Complex> value;
  bool operator==(const Scalar&) const = default;
};

// Alternatives are in the order of AttrType: INT 0 ... SCALARS 17.
using AttrVariant =
    std::variant<int32_t, float, std::string, std::vector<int32_t>, std::vector<float>,
                 std::vector<std::string>, bool, std::vector<bool>, BlockIndex, int64_t,
                 BlockIndices, std::vector<int64_t>, std::vector<double>, VarName, VarNames, double,
                 Scalar, std::vector<Scalar>>;

// The value of an attribute: a variant whose copies, moves and destruction are compiled once.
struct AttrValue : AttrVariant {
  using AttrVariant::AttrVariant;
  AttrValue();
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();
  bool operator==(const AttrValue& other) const;
};

struct Attr {
  std::string name;
  AttrValue value;
  // The OpDesc.Attr message as it was loaded, when name and value do not give all of it (unknown
  // fields, a value left to its default); else empty. Used like Var::wire.
  RareBytes wire = {};
  bool operator==(const Attr&) const = default;
};

// Arguments of a slot; few need no allocation of their own.
using ArgIds = absl::InlinedVector<VarId, 4>;

// A named input or output with its arguments, in file order.
struct Slot {
  std::string name;
  ArgIds args;
  RareBytes unknown_fields = {};
  bool operator==(const Slot&) const = default;
};

// An output that uses the memory of an input: set by the inplace pass, obeyed by the interpreter.
// Indices are positions in the flattened argument lists of the op (all slots, in order).
struct InplacePair {
  int32_t input = 0;
  int32_t output = 0;
  bool operator==(const InplacePair&) const = default;
};

struct Op {
  std::string type;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  std::vector<Attr> attrs;
  std::vector<InplacePair> inplace;  // not part of the file format
  bool is_target = false;
  bool has_is_target = false;
  RareBytes unknown_fields;

  // The slot or attribute of that name, or null.
  const Slot* FindInput(absl::string_view name) const;
  const Slot* FindOutput(absl::string_view name) const;
  const Attr* FindAttr(absl::string_view name) const;
};

struct Block {
  int32_t idx = 0;
  int32_t parent_idx = -1;
  int32_t forward_block_idx = -1;
  bool has_forward_block_idx = false;
  std::vector<Var> vars;
  std::vector<Op> ops;
  std::string unknown_fields;
};

struct Program {
  std::vector<std::string> names;  // by VarId
  std::vector<Block> blocks;
  // Paddle's version: major * 1000000 + minor * 1000 + patch; 0 when unknown.
  int64_t version = 0;
  std::string wire;  // the serialised ProgramDesc without its blocks; empty for programs made here

  // The id of `name`, which is added when new. Amortised O(1).
  VarId Intern(absl::string_view name);
  // The id of `name`, or -1.
  VarId Find(absl::string_view name) const;

  const std::string& NameOf(VarId id) const { return names[id]; }

 private:
  // By the hash of the name, or the next free number where another name has that one.
  absl::flat_hash_map<uint64_t, VarId> ids_;
};

// The position of variable `id` in block.vars by id, -1 where the block declares none:
// a dense table so that analyses look a variable up in O(1).
std::vector<int32_t> VarPositions(const Program& program, const Block& block);

}  // namespace interp
