// What a program declares its parameters to be, and values of files fitted to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// A parameter as the program declares it. -1 in `dims` fits any size; dtype kUndefined any dtype
// and any dims. What the program writes may have more or fewer dims of 1 than it declares: Paddle
// declares it as it is after a step. What no op names may have any dtype: mixed precision declares
// the joined weight of a recurrent layer as float16, which stays float32 and is used in parts.
struct ParamDecl {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  bool written = false;
  bool unused = false;
};

// The persistable LOD_TENSOR variables of all blocks, once each, sorted by name: what a combined
// file for `program` holds.
std::vector<ParamDecl> ParamsOf(const Program& program);

// InvalidArgument when a tensor that was read is not as declared.
absl::Status CheckDeclared(DType dtype, const Shape& shape, const ParamDecl& param);

// Whether values of one dtype are taken where another is declared: int8 and int16 for float32, as
// quantised programs save their weights; float32 for float16 and bfloat16, and those for float32,
// as amp_init of paddle.static.amp does.
bool Converts(DType from, DType to);

// The same values, rounded to nearest even, in memory of their own. ResourceExhausted.
// REQUIRES: Converts(tensor.dtype, dtype), and the tensor is on the host.
absl::StatusOr<Tensor> Converted(const Tensor& tensor, DType dtype);

// A tensor that was read, on the host, as declared: with the declared dtype where its own Converts
// to it, and with the declared dims where those of 1 are all that differs and their number does
// (quantisation saves scales of [] and [1,C] under declarations of [1] and [C]; what the program
// writes keeps its dims). InvalidArgument where they differ otherwise, ResourceExhausted.
absl::StatusOr<Tensor> AsDeclared(Tensor tensor, const ParamDecl& param);

}  // namespace interp
