// Fingerprints by which a plan file knows its program and its kernels again.
#pragma once

#include <cstdint>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// XXH64 with seed 1 of the saved program, never 0. Errors as SaveProgram.
absl::StatusOr<uint64_t> FingerprintOf(const Program& program);

// A hash of all that plans rely on: slots with their flags, inplace and view pairs, the dtype and
// place of each kernel, layout rules and flags. It cannot see what functions do.
uint64_t FingerprintOf(const OpDef& def);

}  // namespace interp
