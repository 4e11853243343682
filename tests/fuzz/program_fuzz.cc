// Any bytes as a program: an error, or a program that prints and whose saved form is stable.
#include <cstdint>
#include <cstdlib>

#include "core/program_load.h"
#include "core/program_print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<interp::Program> program =
      interp::LoadProgram({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) return 0;
  interp::ToText(*program);
  const absl::StatusOr<std::string> saved = interp::SaveProgram(*program);
  if (!saved.ok()) std::abort();
  const absl::StatusOr<interp::Program> loaded = interp::LoadProgram(*saved);
  if (!loaded.ok()) std::abort();
  if (*interp::SaveProgram(*loaded) != *saved) std::abort();
  return 0;
}
