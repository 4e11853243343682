#include "core/base/errno_status.h"

#include <system_error>

#include "absl/strings/str_cat.h"

namespace interp {

absl::Status ErrnoStatus(int code, absl::string_view message) {
  return {absl::ErrnoToStatusCode(code),
          absl::StrCat(message, ": ", std::generic_category().message(code))};
}

}  // namespace interp
