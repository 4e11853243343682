// A program with its parameters, as the commands take it from the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"
#include "interpreter/compile/compiled_program.h"

namespace interp {

struct ModelFlags {
  std::string model;
  std::string params;         // empty: none
  std::string compiled_from;  // a program; empty: do not check
};
void AddModelFlags(CLI::App& command, ModelFlags& flags);

struct ParameterTotals {
  int64_t count = 0;
  uint64_t size_bytes = 0;
};

struct Model {
  std::string path;
  Program program;  // of a plan file: after the passes
  // Of a plan file, but that its program is the one above. Not proved.
  std::optional<CompiledProgram> compiled;
  std::shared_ptr<Scope> scope;  // holds the parameters
  ParameterTotals loaded;        // what was read into the scope
  double load_ms = 0;
};

// Reads the program or plan and, when asked to, its parameters. Errors start with the file's path;
// FailedPrecondition for a plan that was not compiled from `flags.compiled_from`.
absl::StatusOr<Model> LoadModel(const ModelFlags& flags);

// InvalidArgument for flags that do not go with what was loaded.
absl::Status CheckModelFlags(const ModelFlags& flags, const Model& model);

// The plan and its program, both moved out of the model. REQUIRES: model.compiled.
CompiledProgram TakeCompiled(Model& model);

// Number and declared size of the program's parameters: persistable tensors of block 0. Unknown
// dims count as 1.
ParameterTotals DeclaredParameters(const Program& program);

// The declaration of variable `id` in block 0, or null. Linear in the number of variables.
const Var* FindVar(const Program& program, VarId id);

// "float32[-1,3,224,224]"; "undeclared" for null.
std::string DescribeVar(const Var* var);

}  // namespace interp
