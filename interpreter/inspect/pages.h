// The page of `interp dump --format=html` without its data: "{{data}}" stands where its JSON
// goes. They are defined in files that cmake/embed_page.cmake makes of plan_view/plan_view.html,
// includes; page_parts holds what is not about plans.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace interp::pages {

extern const absl::string_view kPlanView;

// `page` with `json` for its data, whatever is in that.
std::string FillPage(absl::string_view page, const std::string& json);

}  // namespace interp::pages
