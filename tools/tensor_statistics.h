// Statistics of tensors that pages of programs show.
#pragma once

#include "core/program.h"
#include "core/scope.h"
#include "interpreter/inspect/program_html.h"

namespace interp {

// Two passes over the elements. Those of complex dtypes count by their magnitude. A tensor without
// memory, or of a dtype that cannot be read, has a type alone. REQUIRES: plain layout.
TensorStatistics StatisticsOf(const Tensor& tensor);

// Of the persistable variables of block 0 that have a value in `scope`, in program order.
std::vector<std::pair<std::string, TensorStatistics>> ParameterStatistics(const Program& program,
                                                                          const Scope& scope);

}  // namespace interp
