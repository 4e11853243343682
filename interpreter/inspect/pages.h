// The pages of `interp dump --format=html` without their data: "{{data}}" stands where its JSON
// goes. They are defined in files that cmake/embed_page.cmake makes of plan_view/plan_view.html,
// program_view/program_view.html and what these include; page_parts holds what both do.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace interp::pages {

extern const absl::string_view kPlanView;
extern const absl::string_view kProgramView;

// `page` with `json` for its data, whatever is in that.
std::string FillPage(absl::string_view page, const std::string& json);

}  // namespace interp::pages
