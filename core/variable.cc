#include "core/variable.h"

namespace interp {

Variable::Variable() = default;
Variable::Variable(Variable&&) noexcept = default;
Variable& Variable::operator=(Variable&&) noexcept = default;
Variable::~Variable() = default;

void Variable::DropValue() {
  tensor.DropMemory();
  array.clear();
  rank_table.reset();
  steps.clear();
  if (selected_rows.has_value()) *selected_rows = {};
}

}  // namespace interp
