// What g++ calls in code that is compiled with -fsanitize=thread: one call before each access to
// memory. Only the instrumentation is used; ThreadSanitizer's own runtime is not linked.
#include <cstddef>
#include <cstdint>

#include "tests/cuda_emulation/grid.h"

// Names of the compiler. NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)

#define INTERP_HOOK(name, bytes, kind)                                                          \
  void __tsan_##name(void* address) {                                                           \
    interp::cuda_emulation::OnAccess(address, bytes, interp::cuda_emulation::AccessKind::kind,  \
                                     reinterpret_cast<uintptr_t>(__builtin_return_address(0))); \
  }
#define INTERP_HOOKS(bytes)              \
  INTERP_HOOK(read##bytes, bytes, kRead) \
  INTERP_HOOK(write##bytes, bytes, kWrite)

// Atomic operations of the host's code, which is in the same files: done as they are asked for, in
// the strictest order. Kernels use those of cuda_runtime.h.
#define INTERP_ATOMIC_CHANGE(bits, name)                                                         \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* at, uint##bits##_t value, \
                                              int) {                                             \
    return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                         \
  }
#define INTERP_ATOMIC_COMPARE(bits, name)                                                      \
  int __tsan_atomic##bits##_compare_exchange_##name(                                           \
      volatile uint##bits##_t* at, uint##bits##_t* expected, uint##bits##_t value, int, int) { \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,           \
                                       __ATOMIC_SEQ_CST);                                      \
  }
#define INTERP_ATOMICS(bits)                                                                       \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* at, int) {              \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* at, uint##bits##_t value, int) {       \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* at, uint##bits##_t value, \
                                                int) {                                             \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                                \
  INTERP_ATOMIC_CHANGE(bits, fetch_add)                                                            \
  INTERP_ATOMIC_CHANGE(bits, fetch_sub)                                                            \
  INTERP_ATOMIC_CHANGE(bits, fetch_and)                                                            \
  INTERP_ATOMIC_CHANGE(bits, fetch_or)                                                             \
  INTERP_ATOMIC_COMPARE(bits, strong)                                                              \
  INTERP_ATOMIC_COMPARE(bits, weak)

extern "C" {
INTERP_ATOMICS(8)
INTERP_ATOMICS(32)
INTERP_ATOMICS(64)
INTERP_HOOKS(1)
INTERP_HOOKS(2)
INTERP_HOOKS(4)
INTERP_HOOKS(8)
INTERP_HOOKS(16)

void __tsan_read_range(void* address, size_t bytes) {
  interp::cuda_emulation::OnAccess(address, bytes, interp::cuda_emulation::AccessKind::kRead,
                                   reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
void __tsan_write_range(void* address, size_t bytes) {
  interp::cuda_emulation::OnAccess(address, bytes, interp::cuda_emulation::AccessKind::kWrite,
                                   reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

void __tsan_init() {}
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** /*object*/, void* /*table*/) {}
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
