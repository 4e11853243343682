// Readers: how training programs of Paddle 1.x get their input.
//
//   create_py_reader(blocking_queue=q) -> (Out=r)
//   create_double_buffer_reader(UnderlyingReader=r) -> (Out=b)
//   read(Reader=b) -> (Out=[image, label])
//
// A queue filled by Python does not exist here. What a `read` op gives is fed instead, and the ops
// fall away.
#pragma once

#include <vector>

#include "core/program.h"

namespace interp {

// True for "read", which writes the next batch of a reader.
bool IsRead(const Op& op);
// True for ops that make a reader from a queue, a file or another reader: create_..._reader.
bool MakesReader(const Op& op);

// What the `read` ops of block 0 write and another op reads, in the order of their arguments.
std::vector<VarId> ReadVars(const Program& program);

// Takes `fed` from the outputs of `read` ops in block 0, and drops those that are left without an
// output that any op reads, and then the ops whose readers nobody reads from. Other `read` ops
// stay.
void DropReaders(Program& program, const std::vector<VarId>& fed);

}  // namespace interp
