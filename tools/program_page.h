// What the page of a program says beside the program itself.
#pragma once

#include "core/status.h"
#include "interpreter/inspect/program_html.h"
#include "interpreter/load_model.h"

namespace interp {

// `parameters`: of finding those beside the model, when nobody named them; an error is told on the
// page. Reads every loaded parameter.
ProgramPage MakeProgramPage(const Model& model, const absl::Status& parameters);

}  // namespace interp
