// Denormal numbers taken for zero, in operands and in results: by conv ops, transposed ones, matrix
// products, attention and the gradients of all but the last.
//
// A product of a denormal number takes an Intel core some hundred cycles, and images that
// activations have squeezed towards zero are full of them. Paddle's inference predictor flushes
// them everywhere (ScopedFlushDenormal of paddle/fluid/platform/denormal.h), its executors nowhere;
// other ops keep them here, as log(1e-38) is -87.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace interp {

// While one lives, its thread flushes denormal numbers; it then goes on as before. So do threads in
// a ParallelFor (parallel_for.h). The OpenMP threads that the thread shares with oneDNN flush them
// from then on (UseThreads in nn/onednn.h), also in parallel regions of the embedding program.
// Takes about 10 ns. Does nothing on architectures other than x86-64 and aarch64.
class FlushDenormals {
 public:
  FlushDenormals() : before_(Read()) { Write(before_ | kFlush); }
  ~FlushDenormals() { Write(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

  // For a thread of a pool, for good.
  static void InThisThread() { Write(Read() | kFlush); }

 private:
  friend class FloatMode;
#if defined(__x86_64__)
  using Register = uint32_t;
  static constexpr Register kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zero
  static Register Read() { return _mm_getcsr(); }
  static void Write(Register value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kFlush = uint64_t{1} << 24;  // FPCR.FZ
  static Register Read() {
    Register value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void Write(Register value) { asm volatile("msr fpcr, %0" ::"r"(value)); }
#else
  using Register = uint32_t;
  static constexpr Register kFlush = 0;
  static Register Read() { return 0; }
  static void Write(Register /*value*/) {}
#endif

  const Register before_;
};

// How the thread that makes it computes, for others to do alike.
class FloatMode {
 public:
  FloatMode() : mode_(FlushDenormals::Read()) {}

  // While one lives, its thread computes like that.
  class Scope {
   public:
    explicit Scope(const FloatMode& mode) : before_(FlushDenormals::Read()) {
      FlushDenormals::Write(mode.mode_);
    }
    ~Scope() { FlushDenormals::Write(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const FlushDenormals::Register before_;
  };

 private:
  const FlushDenormals::Register mode_;
};

}  // namespace interp
