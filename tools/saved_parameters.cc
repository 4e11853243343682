#include "tools/saved_parameters.h"

#include "absl/strings/match.h"
#include "core/device/device_heap.h"
#include "core/io/npz.h"
#include "core/io/params.h"

namespace interp {
namespace {

constexpr absl::string_view kCombined = ".pdiparams";
constexpr absl::string_view kNpz = ".npz";

}  // namespace

absl::StatusOr<ParametersToSave> ChooseParametersToSave(const std::string& path,
                                                        const Program& program,
                                                        absl::Span<const VarId> made_in_runs) {
  ParametersToSave chosen{.path = path};
  if (path.empty()) return chosen;
  if (!absl::EndsWith(path, kCombined) && !absl::EndsWith(path, kNpz)) {
    return InvalidArgument("'", path, "' ends in neither ", kCombined, " nor ", kNpz);
  }
  if (!made_in_runs.empty()) {
    return InvalidArgument("runs of the plan keep '", program.NameOf(made_in_runs[0]),
                           "', which the program declares persistable, for themselves; run the ",
                           "program, or compile it with --disable-pass=local_temporaries");
  }
  for (ParamDecl& param : ParamsOf(program)) chosen.names.push_back(std::move(param.name));
  if (chosen.names.empty()) {
    return InvalidArgument("the program has no persistable tensors to write to '", path, "'");
  }
  return chosen;
}

absl::Status SaveParameters(const ParametersToSave& parameters, Scope& scope) {
  if (parameters.path.empty()) return absl::OkStatus();
  const bool combined = absl::EndsWith(parameters.path, kCombined);
  std::vector<NamedTensor> values;
  for (const std::string& name : parameters.names) {
    const Variable* variable = scope.root().FindLocal(name);
    if (variable == nullptr || !variable->tensor.has_memory()) {
      if (!combined) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("'", name, "' has no value, and '", parameters.path, "' would need all ",
                       parameters.names.size(),
                       " persistable tensors; load them first (--params), or save to .npz"));
    }
    Tensor tensor = variable->tensor;
    INTERP_RETURN_IF_ERROR(MoveToHost(tensor));
    values.emplace_back(name, std::move(tensor));
  }
  return combined ? WriteCombinedParams(parameters.path, values)
                  : WriteNpz(parameters.path, values);
}

}  // namespace interp
