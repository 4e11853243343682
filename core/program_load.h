// Reads and writes programs in Paddle's format (.pdmodel, __model__): the bytes of one ProgramDesc.
//
// Saving is lossless: LoadProgram then SaveProgram gives a message equal to the first one, unknown
// fields and the difference between an unset field and a default included. What changed in between
// is changed in the message, the rest of it stays.
//
// Files are untrusted. Loading checks the wire format, that required fields are there, and what any
// later step relies on:
//   - block i has idx i; block 0 has no parent, the others an earlier block; nesting is bounded.
//     Paddle-Lite writes 0 for the parent of block 0: that is read as none, and saved so;
//   - BLOCK and BLOCKS attributes name existing blocks, and no block leads back to itself;
//   - a block declares a variable once; tensors have at most kMaxRank dims whose product does not
//     overflow (negative dims all read as -1);
//   - types of ops and names of slots, attributes and variables are present.
// Whether ops are known and their arguments declared is for the passes to say. Errors name the
// block, and the op, variable or byte offset in question; nothing is allocated beyond a small
// multiple of the file's size.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// Blocks may nest this deep, both by parent and by BLOCK attributes: what walks them recurses.
inline constexpr int kMaxBlockDepth = 64;

// The program whose ProgramDesc is `bytes`. Time linear in the size. Errors: DataLoss for bytes
// that are no such message (cut off or damaged), InvalidArgument for a program that contradicts
// itself.
absl::StatusOr<Program> LoadProgram(absl::string_view bytes);

// The same with ids given out beforehand: names[i] has id i, other names the ids after them.
// InvalidArgument when a name repeats.
absl::StatusOr<Program> LoadProgram(absl::string_view bytes, absl::Span<const std::string> names);

// The same as the first for a file; errors start with its path.
absl::StatusOr<Program> ReadProgram(const std::string& path);

// The serialised ProgramDesc. `Op::inplace` is not part of the format and is left out.
// Errors: ResourceExhausted beyond 2 GiB, the limit of the format.
absl::StatusOr<std::string> SaveProgram(const Program& program);

}  // namespace interp
