// Readers: how training programs of Paddle 1.x get their input.
//
//   create_py_reader(blocking_queue=q) -> (Out=r)
//   create_double_buffer_reader(UnderlyingReader=r) -> (Out=b)
//   read(Reader=b) -> (Out=[image, label])
//
// A queue filled by Python does not exist here. What a `read` op gives is fed instead, and the ops
// fall away: those that make a reader may stand in the startup program, too.
#pragma once

#include <vector>

#include "core/program.h"
#include "core/status.h"

namespace interp {

// True for "read", which writes the next batch of a reader.
bool IsRead(const Op& op);
// True for ops that make a reader from a queue, files or another reader: create_..._reader and
// open_files.
bool MakesReader(const Op& op);

// What the `read` ops of block 0 write and another op reads, in the order of their arguments.
std::vector<VarId> ReadVars(const Program& program);

// Whether what `read` ops of block 0 write can be fed before the first op: Unimplemented for a
// variable that an op before the `read` uses.
absl::Status CheckReads(const Program& program);

// Whether the batches of one data set can be fed to all `read` ops of block 0, one in each run.
// Errors, with the op: Unimplemented for a second `read` from the same reader, which would want the
// next batch, for a reader that changes its samples by ops of its own (create_custom_reader), and
// for what CheckReads finds; InvalidArgument for a `read` without its one reader or with an output
// that is not declared, and where the attributes of create_py_reader do not fit what the variables
// are declared as.
absl::Status CheckReaders(const Program& program);

// Takes `fed` from the outputs of `read` ops in block 0, and drops those that are left without an
// output that any op reads, and then the ops whose readers nobody reads from. Other `read` ops
// stay.
void DropReaders(Program& program, const std::vector<VarId>& fed);

}  // namespace interp
