#include "interpreter/compile/compiled_program.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/io/param_decl.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/compile/random_ops.h"

namespace interp {

absl::StatusOr<CompiledProgram> Compile(Program program, const std::vector<std::string>& feeds,
                                        const std::vector<std::string>& fetches,
                                        const PipelineOptions& passes, const PlanOptions& plan,
                                        const OpRegistry& ops) {
  const std::vector<VarId> persistable = PersistableTensors(program);
  NumberRandomOps(program, ops);
  PassContext context{.ops = ops, .place = plan.place.kind};
  if (!feeds.empty()) context.feeds = feeds;
  if (!fetches.empty()) context.fetches = fetches;
  INTERP_ASSIGN_OR_RETURN(PipelineResult passed, RunPipeline(std::move(program), context, passes));
  CompiledProgram compiled;
  compiled.program = std::move(passed.program);
  compiled.pass_timings = std::move(passed.timings);
  absl::c_set_difference(persistable, PersistableTensors(compiled.program),
                         std::back_inserter(compiled.made_in_runs));
  INTERP_ASSIGN_OR_RETURN(compiled.plans, BuildPlans(compiled.program, plan, ops));
  return compiled;
}

}  // namespace interp
