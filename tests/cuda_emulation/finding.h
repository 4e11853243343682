// Finding: what is wrong with device code that ran.
#pragma once

#include <cstdint>
#include <string>

namespace interp::cuda_emulation {

struct Finding {
  enum class Type : int8_t {
    // The launch goes on after these, as on a GPU.
    kRace,           // two threads, one byte, nothing that orders them
    kUninitialised,  // a read of device or shared memory that nobody wrote
    kUnordered,      // work of two streams, four bytes, no event between
    kHandle,         // of a library, which ends after its stream or while another GPU is current
    kHostFunction,   // a call of CUDA by a function of cudaLaunchHostFunc, which may make none
    // These end it and the device is lost.
    kOutOfBounds,  // includes memory of the host and freed memory
    kMisaligned,
    kBarrier,       // some threads of a block wait where others never come
    kWarp,          // a mask that does not fit the threads that are there
    kSharedMemory,  // more than a block has
  };
  Type type = Type::kRace;
  std::string text;  // one line with kernel, block, thread and source
};

}  // namespace interp::cuda_emulation
