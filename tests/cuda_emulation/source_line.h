// Where code of this process comes from, for reports.
#pragma once

#include <cstdint>
#include <string>

namespace interp::cuda_emulation {

// "softmax.cu:41", with what it was inlined into behind: "lanes.h:12 in softmax.cu:41". An address
// in hexadecimal where no debugging information tells. Starts a process.
std::string SourceLine(uintptr_t pc);
// The name of the function that starts at `function`.
std::string FunctionName(const void* function);

}  // namespace interp::cuda_emulation
