#include "passes/import/step_gradients.h"

#include <string>
#include <utility>
#include <vector>

#include "core/any_op.h"
#include "core/attr_reader.h"
#include "core/gradient.h"
#include "core/sub_blocks.h"
#include "passes/declarations.h"
#include "passes/verify.h"

namespace interp {
namespace {

bool IsRecurrentGrad(const Op& op) { return op.type == "recurrent_grad"; }

// Variables of the forward block whose gradients the kernel gives to a step or takes from it.
std::vector<std::string> HandedOn(const Program& program, const Op& op) {
  AttrReader attrs(op);
  std::vector<std::string> names = attrs.Strings("states");
  const std::vector<std::string> before = attrs.Strings("ex_states");
  names.insert(names.end(), before.begin(), before.end());
  if (const Slot* const outputs = op.FindInput("outputs")) {
    for (const VarId id : outputs->args) names.push_back(program.NameOf(id));
  }
  return names;
}

void DeclareIn(int32_t block, const std::string& name, Declarations& declarations,
               Program& program) {
  const VarId id = program.Find(name);
  const Var* const value = id < 0 ? nullptr : declarations.Find(block, id);
  if (value == nullptr) return;
  Var gradient = *value;
  gradient.id = program.Intern(GradientName(name));
  gradient.persistable = false;
  gradient.wire = {};
  if (declarations.FindLocal(block, gradient.id) != nullptr) return;
  declarations.Add(block, std::move(gradient));
}

}  // namespace

absl::StatusOr<Program> DeclareStepGradients(Program program) {
  if (!AnyOp(program, IsRecurrentGrad)) return program;
  INTERP_RETURN_IF_ERROR(VerifyStructure(program));
  Declarations declarations(program);
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (!IsRecurrentGrad(op)) continue;
      ForEachSubBlock(op, [&](int32_t steps) {
        for (const std::string& name : HandedOn(program, op)) {
          DeclareIn(steps, name, declarations, program);
        }
      });
    }
  }
  return program;
}

}  // namespace interp
