#include "interpreter/load_model.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/io/file.h"
#include "core/io/file_kind.h"
#include "core/io/pickle_params.h"
#include "core/program_load.h"
#include "core/program_parse.h"
#include "interpreter/model_files.h"
#include "interpreter/plan_file/plan_file.h"
#include "interpreter/train/checkpoint.h"

namespace interp {
namespace {

// What a file holds, for as long as this lives. Mapped, as a program is read once from end to end;
// pipes are read. A device has no end, or nothing in it.
class FileContent {
 public:
  static absl::StatusOr<FileContent> Open(const std::string& path) {
    FileContent content;
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) {
      INTERP_ASSIGN_OR_RETURN(content.mapped_, MappedFile::Open(path));
    } else if (std::filesystem::is_character_file(path, error)) {
      return InvalidArgument("'", path, "' is a device, expected a file");
    } else {
      INTERP_ASSIGN_OR_RETURN(content.read_, ReadFile(path));
    }
    return content;
  }
  absl::string_view bytes() const { return mapped_ != nullptr ? mapped_->bytes() : read_; }
  // What the bytes are as a plan; its packed constants keep the mapping.
  absl::StatusOr<CompiledProgram> Parse(const OpRegistry& ops, PreparePlace prepare) const {
    if (mapped_ == nullptr) return ParsePlan(read_, ops, prepare);
    const auto release = [mapped = mapped_] { (void)mapped; };
    return ParsePlan(BorrowBuffer(mapped_->mutable_data(), mapped_->bytes().size(),
                                  /*writable=*/false, release),
                     ops, prepare);
  }

 private:
  std::shared_ptr<const MappedFile> mapped_;
  std::string read_;
};

absl::StatusOr<Program> ParseAnyProgram(const std::string& path, absl::string_view bytes) {
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

// A checkpoint of training has the optimizer's state, too.
absl::StatusOr<std::vector<NamedTensor>> ReadFromCheckpoint(
    const std::string& folder, const std::vector<ParamDecl>& declared) {
  INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> values, ReadCheckpointValues(folder));
  absl::flat_hash_map<absl::string_view, Tensor*> by_name;
  for (auto& [name, tensor] : values) by_name[name] = &tensor;
  std::vector<NamedTensor> wanted;
  for (const ParamDecl& param : declared) {
    const auto it = by_name.find(param.name);
    if (it == by_name.end()) {
      return NotFound("checkpoint '", folder, "' has no variable '", param.name, "'");
    }
    absl::StatusOr<Tensor> tensor = AsDeclared(std::move(*it->second), param);
    if (!tensor.ok()) {
      return Annotate(tensor.status(), absl::StrCat("'", folder, "': variable '", param.name, "'"));
    }
    wanted.emplace_back(param.name, *std::move(tensor));
  }
  return wanted;
}

// What there is to say where a file lacks what the program makes first; else nothing.
std::string NoteMissing(const std::string& path, const std::vector<ParamDecl>& declared,
                        const absl::flat_hash_set<absl::string_view>& not_wanted) {
  int64_t count = 0;
  const std::string* first = nullptr;
  for (const ParamDecl& param : declared) {
    if (!param.made_first || not_wanted.contains(param.name)) continue;
    if (count++ == 0) first = &param.name;
  }
  if (count == 0) return "";
  return absl::StrCat("'", path, "' was read without ", count,
                      " variables that the program makes first, such as '", *first, "'");
}

absl::Status LoadParameters(const std::string& path, ParamMemory memory, Model& model) {
  const absl::Span<const VarId> made_in_runs = MadeInRuns(model);
  absl::flat_hash_set<absl::string_view> not_wanted;
  for (const VarId id : made_in_runs) not_wanted.insert(model.program.NameOf(id));
  const std::vector<ParamDecl> declared = ParamsOf(model.program, made_in_runs);
  INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> params, ReadParameters(path, declared, memory));
  if (params.size() < declared.size()) {
    const std::string missing = NoteMissing(path, declared, not_wanted);
    if (!missing.empty()) model.note = missing;
  }
  for (auto& [name, tensor] : params) {
    if (not_wanted.contains(name)) continue;
    ++model.loaded.count;
    model.loaded.size_bytes += tensor.size_bytes();
    model.scope->FindOrCreate(name)->tensor = std::move(tensor);
  }
  return absl::OkStatus();
}

// Reads the plan into `model`, with the parameters that it brings unless there are `others`.
absl::Status LoadPlanFile(const FileContent& file, bool others, PreparePlace prepare,
                          Model& model) {
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, file.Parse(OpRegistry::Global(), prepare));
  if (compiled.packed != nullptr && others) {
    model.note =
        "other parameters were given: the plan's own, and what it keeps of them, are not used";
    compiled.packed.reset();
  }
  if (compiled.packed != nullptr) {
    INTERP_RETURN_IF_ERROR(UsePackedConstants(compiled, *model.scope, &model.note));
    for (const auto& [name, tensor] : compiled.packed->parameters) {
      ++model.loaded.count;
      model.loaded.size_bytes += tensor.size_bytes();
    }
  }
  model.program = std::move(compiled.program);
  model.compiled = std::move(compiled);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ReadParameters(const std::string& path,
                                                        const std::vector<ParamDecl>& declared,
                                                        ParamMemory memory) {
  const auto read = [&path, memory](const std::vector<ParamDecl>& params) {
    return IsCheckpoint(path) ? ReadFromCheckpoint(path, params)
                              : ReadAnyParams(path, params, memory);
  };
  absl::StatusOr<std::vector<NamedTensor>> all = read(declared);
  if (all.ok()) return all;
  std::vector<ParamDecl> needed = declared;
  if (std::erase_if(needed, [](const ParamDecl& param) { return param.made_first; }) == 0) {
    return all;
  }
  absl::StatusOr<std::vector<NamedTensor>> others = read(needed);
  return others.ok() ? others : all;
}

absl::Span<const VarId> MadeInRuns(const Model& model) {
  if (!model.compiled.has_value()) return {};
  return model.compiled->made_in_runs;
}

absl::StatusOr<Program> ReadAnyProgram(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const FileContent file, FileContent::Open(path));
  return ParseAnyProgram(path, file.bytes());
}

absl::StatusOr<Model> LoadModel(const std::string& path, const std::optional<std::string>& params,
                                PreparePlace prepare, ParamMemory memory) {
  INTERP_ASSIGN_OR_RETURN(const ModelFiles files, FindModelFiles(path));
  Model model;
  model.path = files.model;
  model.scope = std::make_shared<Scope>();
  INTERP_ASSIGN_OR_RETURN(const FileContent file, FileContent::Open(model.path));
  if (IsPlanFile(file.bytes())) {
    const bool others = params.has_value() && !params->empty();
    INTERP_RETURN_IF_ERROR(Annotate(LoadPlanFile(file, others, prepare, model), model.path));
    if (model.compiled->packed != nullptr) return model;
  } else {
    INTERP_ASSIGN_OR_RETURN(model.program, ParseAnyProgram(model.path, file.bytes()));
  }
  const std::string& chosen = params.has_value() ? *params : files.params;
  const bool wanted = params.has_value() || !ParamsOf(model.program).empty();
  if (!chosen.empty() && wanted) INTERP_RETURN_IF_ERROR(LoadParameters(chosen, memory, model));
  return model;
}

absl::StatusOr<CompiledProgram> TakeCompiled(Model& model) {
  INTERP_RETURN_IF_ERROR(CheckProved(model.compiled->plans));
  CompiledProgram compiled = *std::move(model.compiled);
  compiled.program = std::move(model.program);
  return compiled;
}

}  // namespace interp
