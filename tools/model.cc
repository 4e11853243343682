#include "tools/model.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/io/file.h"
#include "core/io/params.h"
#include "core/program_load.h"
#include "core/program_parse.h"

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
absl::StatusOr<Program> ReadAnyProgram(const std::string& path) {
  if (!absl::EndsWith(path, ".txt")) return ReadProgram(path);
  INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<Program> program = ParseProgram(text);
  if (!program.ok()) return Annotate(program.status(), path);
  return program;
}

absl::Status LoadParameters(const std::string& path, Model& model) {
  INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> params,
                          ReadParams(path, ParamsOf(model.program)));
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
                  "program: .pdmodel, __model__ or .pb; .txt: the text form of `interp dump`")

      ->required();
  command.add_option("--params", flags.params,
                     "parameters: a combined .pdiparams file, or a folder with one file each");
}

absl::StatusOr<Model> LoadModel(const ModelFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  Model model;
  model.path = flags.model;
  model.scope = std::make_shared<Scope>();
  INTERP_ASSIGN_OR_RETURN(model.program, ReadAnyProgram(flags.model));
  if (!flags.params.empty()) INTERP_RETURN_IF_ERROR(LoadParameters(flags.params, model));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  model.load_ms = elapsed.count();
  return model;
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
