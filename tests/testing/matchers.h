// What tests compare: statuses, tensors, plans.
#pragma once

#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"

namespace interp::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}
MATCHER_P2(FailsWith, code, part,
           absl::StrCat("fails with ", absl::StatusCodeToString(code), " and \"", part, "\"")) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code && absl::StrContains(StatusOf(arg).message(), part);
}

// Equal shape, dtype, LoD and bits. Both plain.
inline bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape || a.dtype != b.dtype || a.lod != b.lod) return false;
  if (a.layout != Layout::kPlain || b.layout != Layout::kPlain) return false;
  if (a.has_memory() != b.has_memory()) return false;
  return !a.has_memory() || a.size_bytes() == 0 ||
         std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}
inline bool SameBits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!SameBits(a[i], b[i])) return false;
  }
  return true;
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const T* data = tensor.data<T>();
  return std::vector<T>(data, data + tensor.numel());
}

template <typename T>
Tensor VectorOf(std::vector<T> values) {
  return Tensor::Of<T>({static_cast<int64_t>(values.size())}, values);
}

// Edges as text, "0->2 raw x", with "~" behind those that were shrunk.
inline std::vector<std::string> EdgeTexts(const std::vector<Edge>& edges,
                                          const std::vector<PlanVar>& vars) {
  std::vector<std::string> texts;
  for (const Edge& edge : edges) {
    texts.push_back(absl::StrCat(edge.from, "->", edge.to, " ", Name(edge.kind),
                                 edge.var < 0 ? "" : absl::StrCat(" ", vars[edge.var].name),
                                 edge.shrunk ? "~" : ""));
  }
  return texts;
}

}  // namespace interp::testing
