// The page of ToHtml without a plan: "{{plan}}" stands where its JSON goes. Defined in a file that
// cmake/embed_page.cmake makes of plan_view.html and what it includes.
#pragma once

#include "absl/strings/string_view.h"

namespace interp::plan_print {

extern const absl::string_view kPlanViewPage;

}  // namespace interp::plan_print
