// A program or plan with its parameters, as files hold them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/io/params.h"
#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/plan_file/plan_file.h"

namespace interp {

struct ParameterTotals {
  int64_t count = 0;
  uint64_t size_bytes = 0;
};

struct Model {
  std::string path;
  Program program;  // of a plan file: after the passes
  // Of a plan file, but that its program is the one above. Proved by TakeCompiled.
  std::optional<CompiledProgram> compiled;
  std::shared_ptr<Scope> scope;  // holds the parameters
  ParameterTotals loaded;        // what was read into the scope
  // What of a plan's packed constants is not used, and why, or what a file of parameters lacks; or
  // empty.
  std::string note;
};

// CompiledProgram::made_in_runs of a plan file; of a program nothing.
absl::Span<const VarId> MadeInRuns(const Model& model);

// Reads a program: the text form where `path` ends in .txt, else Paddle's protobuf. Errors start
// with the path and say what the file is where it is something else.
absl::StatusOr<Program> ReadAnyProgram(const std::string& path);

// The values of `declared`, sorted by name and AsDeclared (core/io/param_decl.h), from a file or
// folder of parameters (core/io/pickle_params.h) or a checkpoint of training, which may hold
// others, too. Those that are made first may be missing, all of them.
absl::StatusOr<std::vector<NamedTensor>> ReadParameters(const std::string& path,
                                                        const std::vector<ParamDecl>& declared,
                                                        ParamMemory memory = ParamMemory::kCopied);

// Reads the program or plan that `path`, a file or a folder or prefix of one, leads to
// (model_files.h), and its parameters: those at `params`, see ReadParameters; ""
// for none; nullopt for those that lie beside it, when the program has any. A plan that brings its
// parameters uses them unless `params` names others. Errors start with the path of the file.
//
// `prepare` is ParsePlan's: what a file says loads nothing unless the caller lets it
// (LoadForPlace). With ParamMemory::kFile nobody but a core may read or write the parameters.
absl::StatusOr<Model> LoadModel(const std::string& path, const std::optional<std::string>& params,
                                PreparePlace prepare = RefuseUnloaded,
                                ParamMemory memory = ParamMemory::kCopied);

// The plan and its program, both moved out of the model: what loaded plans are run from. Errors
// are those of CheckProved, and the model stays whole. REQUIRES: model.compiled.
absl::StatusOr<CompiledProgram> TakeCompiled(Model& model);

}  // namespace interp
