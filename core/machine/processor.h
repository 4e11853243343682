// What the processor can do that runs this, which may be more than what the library is built for.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace interp {

// The highest level whose instructions it has all: "x86-64" to "x86-64-v4", or the name of another
// architecture. The levels are those of the x86-64 psABI, and what glibc's loader goes by.
absl::string_view ProcessorLevel();

// Whether it multiplies pairs of bfloat16 (AVX512_BF16), which no level has. Costs a load.
bool ProcessorHasBf16Products();

// Whether it multiplies tiles of bfloat16 (AMX_BF16), which no level has. Costs an instruction that
// virtual machines emulate.
bool ProcessorHasBf16Tiles();

// Whether it adds products of uint8 and int8 to int32 sums without an intermediate of 16 bits,
// which saturates (AVX512_VNNI). Costs a load.
bool ProcessorHasInt8Products();

// Bytes of the L2 cache of a core; 1 MiB where the system does not tell. Thread-safety: any.
int64_t L2CacheBytes();

}  // namespace interp
