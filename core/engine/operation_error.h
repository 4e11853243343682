// OperationError: why an operation failed, shared by all variables it has spoilt.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "core/status.h"

namespace interp::engine {

// Immutable but for `reported`.
struct OperationError {
  absl::Status status;           // what the operation returned, or what it threw, in words
  std::exception_ptr exception;  // what it threw; null when it returned an error
  std::string operation;         // its name
  uint64_t number = 0;           // the same for one push only
  // A wait has returned it.
  mutable std::atomic<bool> reported{false};
};

// Shared ownership by a pointer of one word, which fits into a variable.
class ErrorRef {
 public:
  ErrorRef() = default;
  static ErrorRef Make(absl::Status status, std::exception_ptr exception, std::string operation,
                       uint64_t number) {
    ErrorRef ref;
    ref.node_ = new Node;
    ref.node_->error.status = std::move(status);
    ref.node_->error.exception = std::move(exception);
    ref.node_->error.operation = std::move(operation);
    ref.node_->error.number = number;
    return ref;
  }
  ErrorRef(const ErrorRef& other) : node_(other.node_) {
    if (node_ != nullptr) node_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  ErrorRef(ErrorRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  ErrorRef& operator=(ErrorRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~ErrorRef() {
    if (node_ != nullptr && node_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
  }

  explicit operator bool() const { return node_ != nullptr; }
  const OperationError& operator*() const { return node_->error; }
  const OperationError* operator->() const { return &node_->error; }
  bool operator==(const ErrorRef& other) const { return node_ == other.node_; }

 private:
  struct Node {
    std::atomic<int32_t> refs{1};
    OperationError error;
  };
  Node* node_ = nullptr;
};

// How the number of a push is shown: "#12", and "#12.3" for one of a thread that was not the first
// to push.
std::string NumberText(uint64_t number);

// "operation 'add' (#12): division by zero", with the code of its status.
inline absl::Status ToStatus(const OperationError& error) {
  return Annotate(error.status, absl::StrCat("operation '", error.operation, "' (",
                                             NumberText(error.number), ")"));
}

}  // namespace interp::engine
