#include "interpreter/inspect/plan_print_html.h"

#include "core/base/json_writer.h"
#include "interpreter/inspect/pages.h"
#include "interpreter/inspect/plan_print_internal.h"

namespace interp {
std::string ToHtml(absl::Span<const Plan> plans, const Program& program, absl::string_view title,
                   PlanStage stage) {
  JsonWriter json;
  json.BeginObject();
  json.Field("title", title);
  json.Field("show_shrunk", stage == PlanStage::kDeps);
  plan_print::WriteStage(json, plans, PlanStage::kPlan, &program, plan_print::AttrForm::kText);
  json.EndObject();
  return pages::FillPage(pages::kPlanView, std::move(json).Take());
}

}  // namespace interp
