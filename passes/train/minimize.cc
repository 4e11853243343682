#include "passes/train/minimize.h"

#include <utility>

#include "passes/feed_fetch.h"
#include "passes/train/recompute.h"
#include "passes/verify.h"

namespace interp {

absl::StatusOr<TrainingPrograms> Minimize(Program main, Program startup,
                                          const MinimizeOptions& options, const OpRegistry& ops) {
  INTERP_RETURN_IF_ERROR(VerifyStructure(main));  // AppendBackward verifies the rest
  std::erase_if(main.blocks[0].ops, [](const Op& op) { return IsFeed(op) || IsFetch(op); });
  if (startup.blocks.empty()) startup.blocks.emplace_back();
  INTERP_RETURN_IF_ERROR(Annotate(VerifyProgram(startup, ops), "startup program"));
  TrainingPrograms programs;
  INTERP_ASSIGN_OR_RETURN(BackwardProgram backward,
                          AppendBackward(std::move(main), options.backward, ops));
  programs.gradients = std::move(backward.gradients);
  programs.main = std::move(backward.program);
  if (!options.checkpoints.empty()) {
    INTERP_ASSIGN_OR_RETURN(RecomputeResult result,
                            Recompute(std::move(programs.main), options.checkpoints, ops));
    programs.main = std::move(result.program);
    programs.num_recomputed = result.num_recomputed;
  }
  programs.startup = std::move(startup);
  INTERP_RETURN_IF_ERROR(
      AppendOptimizer(programs.main, programs.startup, programs.gradients, options.optimizer));
  return programs;
}

}  // namespace interp
