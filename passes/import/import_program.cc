#include "passes/import/import_program.h"

#include <utility>

#include "passes/import/fused_products.h"
#include "passes/import/padded_weights.h"
#include "passes/import/real_gradients.h"
#include "passes/import/retired_slots.h"
#include "passes/import/step_gradients.h"
#include "passes/quant/kept_scales.h"
#include "passes/quant/mobile_quantizers.h"

namespace interp {

absl::StatusOr<Program> ImportProgram(Program program, const PassContext& context) {
  NameMobileQuantizers(program);
  INTERP_ASSIGN_OR_RETURN(program, DropRetiredSlots(std::move(program), context));
  INTERP_ASSIGN_OR_RETURN(program, SplitFusedProducts(std::move(program)));
  INTERP_ASSIGN_OR_RETURN(program, CropPaddedWeights(std::move(program), context));
  INTERP_ASSIGN_OR_RETURN(program, DeclareStepGradients(std::move(program)));
  INTERP_ASSIGN_OR_RETURN(program, TakeRealGradients(std::move(program)));
  return KeepScales(std::move(program));
}

}  // namespace interp
