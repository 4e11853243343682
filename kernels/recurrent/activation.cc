#include "kernels/recurrent/activation.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace interp::recurrent {
namespace {

constexpr absl::string_view kNames[] = {"identity", "sigmoid", "tanh", "relu"};

}  // namespace

CellActivation ReadActivation(AttrReader& reader, absl::string_view name, CellActivation fallback) {
  const std::string given = reader.String(name, kNames[static_cast<int>(fallback)]);
  if (given.empty()) return CellActivation::kIdentity;
  for (int i = 0; i < 4; ++i) {
    if (given == kNames[i]) return static_cast<CellActivation>(i);
  }
  reader.Fail(absl::StrCat("attribute '", name, "' is \"", given,
                           "\", expected identity, sigmoid, tanh or relu"));
  return fallback;
}

CellActivation ReadActivationNumber(AttrReader& reader, absl::string_view name,
                                    CellActivation fallback) {
  const int32_t given = reader.Int(name, static_cast<int32_t>(fallback));
  if (given >= 0 && given < 4) return static_cast<CellActivation>(given);
  reader.Fail(absl::StrCat("attribute '", name, "' is ", given,
                           ", expected 0 (identity), 1 (sigmoid), 2 (tanh) or 3 (relu)"));
  return fallback;
}

}  // namespace interp::recurrent
