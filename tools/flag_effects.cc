#include "tools/flag_effects.h"

namespace interp {

absl::Status CheckEffect(const CLI::App& command, std::initializer_list<const char*> flags,
                         bool effective, absl::string_view when) {
  if (effective) return absl::OkStatus();
  for (const char* flag : flags) {
    if (command.count(flag) > 0) return InvalidArgument(flag, " has no effect ", when);
  }
  return absl::OkStatus();
}

}  // namespace interp
