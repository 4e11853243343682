// RareBytes: a string that is nearly always empty, in eight bytes then.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace interp {

// A value type. Thread-safety: like a string.
class RareBytes {
 public:
  RareBytes() = default;
  // Not explicit: it is assigned to like a string.
  RareBytes(std::string bytes) {  // NOLINT(google-explicit-constructor)
    if (!bytes.empty()) bytes_ = std::make_unique<std::string>(std::move(bytes));
  }
  RareBytes(const RareBytes& other) : RareBytes(std::string(other.view())) {}
  RareBytes(RareBytes&&) noexcept = default;
  RareBytes& operator=(const RareBytes& other) {
    if (this != &other) *this = RareBytes(other);
    return *this;
  }
  RareBytes& operator=(RareBytes&&) noexcept = default;
  ~RareBytes() = default;

  bool empty() const { return bytes_ == nullptr; }
  void clear() { bytes_.reset(); }
  absl::string_view view() const { return empty() ? absl::string_view() : *bytes_; }

  friend bool operator==(const RareBytes& a, const RareBytes& b) { return a.view() == b.view(); }

 private:
  std::unique_ptr<std::string> bytes_;  // never an empty string
};

}  // namespace interp
