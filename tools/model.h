// A program with its parameters, as the commands take it from the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "core/program.h"
#include "core/status.h"
#include "interpreter/load_model.h"
#include "tools/outputs.h"

namespace interp {

struct ModelFlags {
  std::string model;
  std::string params;         // empty: none, or with `finds_params` what lies beside the model
  std::string compiled_from;  // a program; empty: do not check
  bool finds_params = false;
  ParamMemory memory = ParamMemory::kCopied;  // kFile: for commands that only run the program
};
void AddModelFlags(CLI::App& command, ModelFlags& flags);

// Reads what `flags` name: a file, or a folder or prefix of one (interpreter/model_files.h). Errors
// start with the file's path; FailedPrecondition for a plan that was not compiled from
// `flags.compiled_from`.
absl::StatusOr<Model> LoadModel(const ModelFlags& flags);

// The program or plan that LoadModel reads, and the parameters that are given or lie beside it:
// results take the place of neither.
struct ModelInputs {
  NamedFile model;
  NamedFile params;
};
ModelInputs InputsOf(const ModelFlags& flags);
// The files of `params`: of a folder, one for each parameter of the program.
std::vector<NamedFile> FilesOfParameters(const NamedFile& params, const Model& model);
// The program or plan at `path`; "" for "".
std::string ModelFileOf(const std::string& path);

// InvalidArgument for a pipe or a device, of commands that read the model more than once.
absl::Status CheckReadAgain(const std::string& path);

// InvalidArgument for flags that do not go with what was loaded.
absl::Status CheckModelFlags(const ModelFlags& flags, const Model& model);

// Unknown dims count as 1. Saturates: dims come from a file.
uint64_t DeclaredBytes(const Var& var);

// Takes DeclaredBytes off `left_bytes`: how much of kMaxArrayBytes may still be made up because the
// program, which may be somebody else's, declares it. ResourceExhausted where that is less, as in
// "random feeds take more than 16.00 GiB, 'x' being float32[5000000000]: expected a file", `what`
// being "random feeds" and `expected` "a file".
absl::Status TakeDeclaredBytes(absl::string_view name, const Var& var, absl::string_view what,
                               absl::string_view expected, size_t& left_bytes);

// Number and declared size of the program's parameters: persistable tensors of block 0. Unknown
// dims count as 1.
ParameterTotals DeclaredParameters(const Program& program);

// The declaration of variable `id` in block 0, or null. Linear in the number of variables.
const Var* FindVar(const Program& program, VarId id);

// "float32[-1,3,224,224]"; "undeclared" for null.
std::string DescribeVar(const Var* var);

}  // namespace interp
