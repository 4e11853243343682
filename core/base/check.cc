#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace interp {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: a fault of interp: this does not hold: %s\n", file, line, condition);
  std::abort();
}

}  // namespace interp
