#include "tools/model.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "absl/strings/str_join.h"
#include "core/io/npy.h"
#include "interpreter/load_cuda.h"
#include "interpreter/model_files.h"
#include "interpreter/plan_file/fingerprint.h"
#include "tools/sizes.h"

namespace interp {
namespace {

absl::Status CheckCompiledFrom(const std::string& path, const Model& model) {
  INTERP_ASSIGN_OR_RETURN(const Program program, ReadAnyProgram(path));
  INTERP_ASSIGN_OR_RETURN(const uint64_t fingerprint, FingerprintOf(program));
  if (model.compiled->source_fingerprint == fingerprint) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      model.path, ": compiled from another program than ", path, "; compile that again"));
}

}  // namespace

void AddModelFlags(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("MODEL", flags.model,
                  "program: .pdmodel, __model__ or .pb; .txt: the text form of `interp dump`; or "
                  "a plan of `interp compile`; or a folder that holds one")
      ->required();
  command.add_option(
      "--params", flags.params,
      "parameters: a combined .pdiparams file, a .pdparams file, with the .pdopt beside "
      "it where needed, a folder with one file each, or a checkpoint (DIR/step-N)");
  command.add_option("--compiled-from", flags.compiled_from,
                     "refuse a plan that was not compiled from this program");
}

absl::StatusOr<Model> LoadModel(const ModelFlags& flags) {
  std::optional<std::string> params = flags.params;
  if (flags.finds_params && flags.params.empty()) params.reset();
  INTERP_ASSIGN_OR_RETURN(Model model, LoadModel(flags.model, params, LoadForPlace, flags.memory));
  if (model.compiled.has_value() && !flags.compiled_from.empty()) {
    INTERP_RETURN_IF_ERROR(CheckCompiledFrom(flags.compiled_from, model));
  }
  return model;
}

ModelInputs InputsOf(const ModelFlags& flags) {
  const absl::StatusOr<ModelFiles> found = FindModelFiles(flags.model);
  const ModelFiles files = found.ok() ? *found : ModelFiles{.model = flags.model, .params = ""};
  return {.model = {"MODEL", files.model},
          .params = flags.params.empty() ? NamedFile{"the parameters", files.params}
                                         : NamedFile{"--params", flags.params}};
}

std::vector<NamedFile> FilesOfParameters(const NamedFile& params, const Model& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(params.path, ignored)) return {params};
  std::vector<NamedFile> files;
  for (const ParamDecl& param : ParamsOf(model.program, MadeInRuns(model))) {
    files.push_back({params.flag, absl::StrCat(params.path, "/", param.name)});
  }
  return files;
}

std::string ModelFileOf(const std::string& path) {
  if (path.empty()) return path;
  const absl::StatusOr<ModelFiles> found = FindModelFiles(path);
  return found.ok() ? found->model : path;
}

absl::Status CheckReadAgain(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(ModelFileOf(path), error);
  if (!fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status)) {
    return absl::OkStatus();
  }
  return InvalidArgument("'", path,
                         "' is a pipe or a device, and is read more than once: expected a "
                         "file");
}

absl::Status CheckModelFlags(const ModelFlags& flags, const Model& model) {
  if (flags.compiled_from.empty() || model.compiled.has_value()) return absl::OkStatus();
  return InvalidArgument(model.path, ": --compiled-from is for plans, and this is a program");
}

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

absl::Status TakeDeclaredBytes(absl::string_view name, const Var& var, absl::string_view what,
                               absl::string_view expected, size_t& left_bytes) {
  const uint64_t bytes = DeclaredBytes(var);
  if (bytes > left_bytes) {
    return ResourceExhausted(what, " take more than ", FormatBytes(kMaxArrayBytes), ", '", name,
                             "' being ", DescribeVar(&var), ": expected ", expected);
  }
  left_bytes -= bytes;
  return absl::OkStatus();
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
