#include "passes/fresh_var.h"

#include "absl/strings/str_cat.h"

namespace interp {

VarId FreshVar(Program& program, std::string name) {
  while (program.Find(name) >= 0) name += "_";
  return program.Intern(name);
}

VarId FreshVar(Program& program, absl::string_view stem, int64_t& next) {
  std::string name;
  do {
    name = absl::StrCat(stem, next++);
  } while (program.Find(name) >= 0);
  return program.Intern(name);
}

}  // namespace interp
