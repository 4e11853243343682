#include "interpreter/inspect/plan_print_html.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/json_writer.h"
#include "interpreter/inspect/plan_print_internal.h"
#include "interpreter/inspect/plan_view/page.h"

namespace interp {
namespace {

// JSON that cannot end the element it stands in: these characters occur in strings only, where an
// escape means the same.
std::string InsideScript(const std::string& json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"},
                                    {">", "\\u003e"},
                                    {"&", "\\u0026"},
                                    {"\xE2\x80\xA8", "\\u2028"},
                                    {"\xE2\x80\xA9", "\\u2029"}});
}

}  // namespace

std::string ToHtml(absl::Span<const Plan> plans, const Program& program, absl::string_view title,
                   PlanStage stage) {
  JsonWriter json;
  json.BeginObject();
  json.Field("title", title);
  json.Field("show_shrunk", stage == PlanStage::kDeps);
  plan_print::WriteStage(json, plans, PlanStage::kPlan, &program, plan_print::AttrForm::kText);
  json.EndObject();
  const absl::string_view page = plan_print::kPlanViewPage;
  constexpr absl::string_view kMark = "{{plan}}";
  const size_t at = page.find(kMark);
  return absl::StrCat(page.substr(0, at), InsideScript(std::move(json).Take()),
                      page.substr(at + kMark.size()));
}

}  // namespace interp
