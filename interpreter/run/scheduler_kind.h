// The kinds of schedulers that a user chooses from; docs/command_line.md says what each is for.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

enum class SchedulerKind : int8_t {
  kAuto,  // trace where parallel running cannot pay, else async
  kTrace,
  kSerial,
  kAsync,
  kEngine,
  kShuffle,
};
absl::string_view Name(SchedulerKind kind);
// The kind of that name; InvalidArgument lists the names.
absl::StatusOr<SchedulerKind> SchedulerFromName(absl::string_view name);

}  // namespace interp
