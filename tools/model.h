// A program with its parameters, as the commands take it from the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"

namespace interp {

struct ModelFlags {
  std::string model;
  std::string params;  // empty: none
};
void AddModelFlags(CLI::App& command, ModelFlags& flags);

struct ParameterTotals {
  int64_t count = 0;
  uint64_t size_bytes = 0;
};

struct Model {
  std::string path;
  Program program;
  std::shared_ptr<Scope> scope;  // holds the parameters
  ParameterTotals loaded;        // what was read into the scope
  double load_ms = 0;
};

// Reads the program and, when asked to, its parameters. Errors start with the file's path.
absl::StatusOr<Model> LoadModel(const ModelFlags& flags);

// Number and declared size of the program's parameters: persistable tensors of block 0. Unknown
// dims count as 1.
ParameterTotals DeclaredParameters(const Program& program);

// The declaration of variable `id` in block 0, or null. Linear in the number of variables.
const Var* FindVar(const Program& program, VarId id);

// "float32[-1,3,224,224]"; "undeclared" for null.
std::string DescribeVar(const Var* var);

}  // namespace interp
