// Error vocabulary of interp: absl::Status and absl::StatusOr, never exceptions across our API.
//
// Codes used here: kInvalidArgument (the caller's file, feed or flag is wrong), kNotFound (a name
// that does not exist), kUnimplemented (valid, but interp cannot do it), kResourceExhausted (memory
// limits), kCancelled and kDeadlineExceeded (a run was stopped), kDataLoss (truncated or damaged
// file), kInternal (a bug of ours).
//
// Messages start in lower case, have no final period, quote names, and state what was found and
// what was expected. The layer that knows more puts its place in front, once, with `Annotate`.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace interp {

// Returns `status` with "`prefix`: " put in front of its message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view prefix) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(prefix, ": ", status.message()));
}

template <typename... Args>
absl::Status InvalidArgument(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status Unimplemented(const Args&... args) {
  return absl::UnimplementedError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status NotFound(const Args&... args) {
  return absl::NotFoundError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status DataLoss(const Args&... args) {
  return absl::DataLossError(absl::StrCat(args...));
}
template <typename... Args>
absl::Status ResourceExhausted(const Args&... args) {
  return absl::ResourceExhaustedError(absl::StrCat(args...));
}

}  // namespace interp

#define INTERP_CONCAT_INNER(a, b) a##b
#define INTERP_CONCAT(a, b) INTERP_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr` (an absl::Status) is an error.
#define INTERP_RETURN_IF_ERROR(expr)                                                    \
  do {                                                                                  \
    if (absl::Status interp_status = (expr); !interp_status.ok()) return interp_status; \
  } while (false)

// INTERP_ASSIGN_OR_RETURN(auto x, StatusOrExpression()): binds the value or returns the error.
#define INTERP_ASSIGN_OR_RETURN(lhs, expr) \
  INTERP_ASSIGN_OR_RETURN_INNER(INTERP_CONCAT(interp_or_, __LINE__), lhs, expr)
#define INTERP_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return std::move(tmp).status();      \
  lhs = *std::move(tmp)
