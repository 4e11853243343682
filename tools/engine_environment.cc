#include "tools/engine_environment.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "core/base/annotate.h"

namespace interp::engine {
namespace {

// The number in an environment variable; `value` as it was when there is none.
template <typename T>
absl::Status ReadNumber(const char* name, int64_t least, int64_t most, T& value) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return absl::OkStatus();
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < least || number > most) {
    return InvalidArgument("environment variable ", name, " is '", text,
                           "', expected a number from ", least, " to ", most);
  }
  value = static_cast<T>(number);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EngineOptions> FromEnvironment(EngineOptions options) {
  if (const char* const policy = std::getenv("INTERP_ENGINE")) {
    INTERP_ASSIGN_OR_RETURN(options.policy,
                            Annotate(PolicyFromName(policy), "environment variable INTERP_ENGINE"));
  }
  INTERP_RETURN_IF_ERROR(ReadNumber("INTERP_ENGINE_WORKERS", 1, kMaxWorkers, options.workers));
  INTERP_RETURN_IF_ERROR(
      ReadNumber("INTERP_ENGINE_MAX_IN_FLIGHT", 0, int64_t{1} << 40, options.max_in_flight));
  return options;
}

}  // namespace interp::engine
