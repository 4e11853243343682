#include "tools/model.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/io/file.h"
#include "core/io/params.h"
#include "core/io/pickle_params.h"
#include "core/program_load.h"
#include "core/program_parse.h"
#include "interpreter/plan_file/fingerprint.h"
#include "interpreter/plan_file/plan_file.h"
#include "tools/file_kind.h"

namespace interp {
namespace {

// Saturates: dims come from a file.
uint64_t DeclaredBytes(const Var& var) {
  uint64_t size_bytes = SizeOf(var.dtype);
  for (const int64_t dim : var.dims) {
    const uint64_t factor = static_cast<uint64_t>(std::max<int64_t>(dim < 0 ? 1 : dim, 0));
    if (factor > 0 && size_bytes > std::numeric_limits<uint64_t>::max() / 2 / factor) {
      return std::numeric_limits<uint64_t>::max() / 2;
    }
    size_bytes *= factor;
  }
  return size_bytes;
}

// Files that end in .txt hold the text form, for experiments by hand.
absl::StatusOr<Program> ParseAnyProgram(const std::string& path, const std::string& bytes) {
  const bool text = absl::EndsWith(path, ".txt");
  absl::StatusOr<Program> program = text ? ParseProgram(bytes) : LoadProgram(bytes);
  if (program.ok() && program->blocks.empty()) {
    return InvalidArgument(path, ": the program has no blocks");
  }
  if (program.ok()) return program;
  const std::string hint = ForeignFileHint(path, bytes);
  if (text || hint.empty()) return Annotate(program.status(), path);
  return DataLoss(path, ": no program of Paddle: ", hint);
}

absl::Status CheckCompiledFrom(const std::string& path, const Model& model) {
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  INTERP_ASSIGN_OR_RETURN(const Program program, ParseAnyProgram(path, bytes));
  INTERP_ASSIGN_OR_RETURN(const uint64_t fingerprint, FingerprintOf(program));
  if (model.compiled->source_fingerprint == fingerprint) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      model.path, ": compiled from another program than ", path, "; compile that again"));
}

absl::Status LoadProgramOrPlan(const ModelFlags& flags, Model& model) {
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(flags.model));
  if (IsPlanFile(bytes)) {
    absl::StatusOr<CompiledProgram> compiled = ParsePlan(bytes, OpRegistry::Global());
    if (!compiled.ok()) return Annotate(compiled.status(), flags.model);
    model.program = std::move(compiled->program);
    model.compiled = *std::move(compiled);
  } else {
    INTERP_ASSIGN_OR_RETURN(model.program, ParseAnyProgram(flags.model, bytes));
  }
  const bool check = model.compiled.has_value() && !flags.compiled_from.empty();
  return check ? CheckCompiledFrom(flags.compiled_from, model) : absl::OkStatus();
}

absl::Status LoadParameters(const std::string& path, Model& model) {
  INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> params,
                          ReadAnyParams(path, ParamsOf(model.program)));
  for (auto& [name, tensor] : params) {
    ++model.loaded.count;
    model.loaded.size_bytes += tensor.size_bytes();
    model.scope->FindOrCreate(name)->tensor = std::move(tensor);
  }
  return absl::OkStatus();
}

}  // namespace

void AddModelFlags(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("MODEL", flags.model,
                  "program: .pdmodel, __model__ or .pb; .txt: the text form of `interp dump`; or "
                  "a plan of `interp compile`")
      ->required();
  command.add_option(
      "--params", flags.params,
      "parameters: a combined .pdiparams file, a .pdparams file, with the .pdopt beside "
      "it where needed, or a folder with one file each");
  command.add_option("--compiled-from", flags.compiled_from,
                     "refuse a plan that was not compiled from this program");
}

absl::StatusOr<Model> LoadModel(const ModelFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  Model model;
  model.path = flags.model;
  model.scope = std::make_shared<Scope>();
  INTERP_RETURN_IF_ERROR(LoadProgramOrPlan(flags, model));
  if (!flags.params.empty()) INTERP_RETURN_IF_ERROR(LoadParameters(flags.params, model));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  model.load_ms = elapsed.count();
  return model;
}

absl::Status CheckModelFlags(const ModelFlags& flags, const Model& model) {
  if (flags.compiled_from.empty() || model.compiled.has_value()) return absl::OkStatus();
  return InvalidArgument(model.path, ": --compiled-from is for plans, and this is a program");
}

CompiledProgram TakeCompiled(Model& model) {
  CompiledProgram compiled = *std::move(model.compiled);
  compiled.program = std::move(model.program);
  return compiled;
}

ParameterTotals DeclaredParameters(const Program& program) {
  ParameterTotals totals;
  for (const Var& var : program.blocks[0].vars) {
    if (!var.persistable || var.kind != VarKind::kLodTensor) continue;
    ++totals.count;
    totals.size_bytes += DeclaredBytes(var);
  }
  return totals;
}

const Var* FindVar(const Program& program, VarId id) {
  const std::vector<Var>& vars = program.blocks[0].vars;
  const auto it = std::find_if(vars.begin(), vars.end(), [&](const Var& v) { return v.id == id; });
  return it == vars.end() ? nullptr : &*it;
}

std::string DescribeVar(const Var* var) {
  if (var == nullptr) return "undeclared";
  return absl::StrCat(Name(var->dtype), "[", absl::StrJoin(var->dims, ","), "]");
}

}  // namespace interp
