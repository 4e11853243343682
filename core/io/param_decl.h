// What a program declares its parameters to be, and values of files fitted to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// A parameter as the program declares it. -1 in `dims` fits any size; dtype kUndefined any dtype
// and any dims. No dims are those of a number, or say nothing: Paddle's Python leaves them out
// where it makes a variable without a shape. What the program writes may have more or fewer dims of
// 1 than it declares, and the counts of auc more elements: Paddle declares them as they are after a
// step. What no op names may have any dtype: mixed precision declares the joined weight of
// a recurrent layer as float16, which stays float32 and is used in parts. Whole numbers may stand
// for those of float32 where the program has ops that bring them back, or where an op that reads
// them says what they are multiplied by (WeightQuantization of paddle.static.quantization).
struct ParamDecl {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  bool written = false;
  bool unused = false;
  bool quantised = false;
  bool loses_elements = false;
  // The program needs no value from before: an op of block 0 writes it before any reads it, and no
  // block does. Paddle's `w.detach()` and `w.clone()` are such, which no startup program makes.
  bool made_first = false;
  // What whole numbers of a file are multiplied by: one number, or one for each output channel,
  // which come first in filters of convolutions and last in weights of products. Empty: nothing.
  std::vector<float> scales = {};
};

// The persistable LOD_TENSOR variables of all blocks, once each, ascending.
std::vector<VarId> PersistableTensors(const Program& program);

// What the program declares of those, sorted by name: what a combined file for `program` holds.
// `made_in_runs` are variables that are persistable no longer, as CompiledProgram has them: such
// a file holds them, too, with any dtype and dims.
std::vector<ParamDecl> ParamsOf(const Program& program, absl::Span<const VarId> made_in_runs = {});

// InvalidArgument when a tensor that was read is not as declared.
absl::Status CheckDeclared(DType dtype, const Shape& shape, const ParamDecl& param);

// Whether values of one dtype are rounded to another, or widened, where mixed precision declares
// that: float32 for float16 and bfloat16, and those for float32 (amp_init of paddle.static.amp).
bool Rounds(DType from, DType to);

// The same values, rounded to nearest even, in memory of their own. ResourceExhausted.
// REQUIRES: Rounds(tensor.dtype, dtype), or whole numbers become float32; the tensor is on the
// host.
absl::StatusOr<Tensor> Converted(const Tensor& tensor, DType dtype);

// InvalidArgument where AsDeclared does not take a tensor of that kind.
absl::Status CheckTaken(DType dtype, const Shape& shape, const Lod& lod, const ParamDecl& param);

// A plain tensor that was read, on the host, as declared:
// - with the declared dtype where its own Rounds to it, or where it has int8 or int16 and the
//   program is quantised, whose weights are declared as float32; multiplied by the scales that
//   there are for those;
// - with the declared dims where their number differs and those of 1 are all else that does:
//   quantisation saves scales of [] and [1,C] under declarations of [1] and [C]. That is not done
//   to a tensor with a LoD, under dims of -1, or, single numbers apart, to what the program writes.
// What is unused is left as it is. InvalidArgument where they differ otherwise, ResourceExhausted.
absl::StatusOr<Tensor> AsDeclared(Tensor tensor, const ParamDecl& param);

}  // namespace interp
