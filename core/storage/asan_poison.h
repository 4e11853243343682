// Free memory of pools is poisoned under AddressSanitizer: whoever uses it too late is caught.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define INTERP_POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define INTERP_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define INTERP_POISON(p, n) ((void)(p), (void)(n))
#define INTERP_UNPOISON(p, n) ((void)(p), (void)(n))
#endif
