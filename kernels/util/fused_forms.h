// Refuses ops of plain type into which another library's passes have fused something.
#pragma once

#include "core/fused_forms.h"

namespace interp {

// Fails as CheckNothingFused does.
inline void RefuseFusedForms(AttrReader& attrs, absl::Span<const absl::string_view> read = {}) {
  const absl::Status status = CheckNothingFused(attrs.op(), read);
  if (!status.ok()) attrs.Fail(status.message());
}

}  // namespace interp
