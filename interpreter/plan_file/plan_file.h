// Plan files: compiled programs kept between processes, so that a start need not run the passes and
// the analysis again. docs/formats.md describes the format.
//
// A plan file is of use only to a build with the same kernels: it refers to rows of the kernels'
// tables. It records a fingerprint of every op it uses and is refused where one differs. It may
// hold the parameters with what is computed of them (CompiledProgram::packed), which is for one
// kind of machine; else it has nothing of the machine it was made on.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "core/buffer.h"
#include "core/op_def.h"
#include "core/place.h"
#include "core/scope.h"
#include "core/status.h"
#include "interpreter/compile/compiled_program.h"

namespace interp {

// Whether `bytes` begin like a plan file.
bool IsPlanFile(absl::string_view bytes);

// FailedPrecondition for a GPU where nothing that runs programs on GPUs is loaded.
absl::Status RefuseUnloaded(Place place);

// The bytes of a plan file. InvalidArgument when the plan does not belong to the program: it has
// other variables, or its instructions name no ops; ResourceExhausted beyond 2 GiB.
absl::StatusOr<std::string> FormatPlan(const CompiledProgram& compiled);

// The compiled program of a plan file, without pass timings; `ops` must outlive it. Bytes are
// untrusted: nothing is allocated beyond a small multiple of their size, and the result has passed
// CheckPlansStructure and CheckPlanTypes, but is not proved. Errors: DataLoss for what is no plan
// file, cut off or damaged; FailedPrecondition for one of another format or other kernels,
// InvalidArgument for one that contradicts itself.
//
// Packed constants are tensors in `file`, aligned to kBufferAlignment, and keep it alive; their
// elements are checked where they are used.
//
// `prepare` is called with places of devices that the plan names, before its ops are looked up: of
// each kind one. Its error is that of the plan.
using PreparePlace = absl::FunctionRef<absl::Status(Place)>;
absl::StatusOr<CompiledProgram> ParsePlan(const BufferRef& file, const OpRegistry& ops,
                                          PreparePlace prepare = RefuseUnloaded);
// The same of a copy of `bytes`.
absl::StatusOr<CompiledProgram> ParsePlan(absl::string_view bytes, const OpRegistry& ops,
                                          PreparePlace prepare = RefuseUnloaded);

// Puts the parameters that the plan brings into `scope`, where packed constants are used that were
// computed by another machine or build: then they are dropped from `compiled`, and `note` says so.
// DataLoss for damaged parameters. REQUIRES: compiled.packed.
absl::Status UsePackedConstants(CompiledProgram& compiled, Scope& scope, std::string* note);

// InvalidArgument with the first violations unless VerifyPlans proves the plans.
absl::Status CheckProved(absl::Span<const Plan> plans);

// FormatPlan to a file, which is written beside its place and renamed. Errors start with the path.
absl::Status SavePlan(const CompiledProgram& compiled, const std::string& path);
// ParsePlan of a file, then CheckProved. Errors start with the path. Files of its parameters are
// read by ParamsOf(program, made_in_runs); what is made in runs is not for the scope. LoadModel
// does both.
absl::StatusOr<CompiledProgram> LoadPlan(const std::string& path, const OpRegistry& ops);

}  // namespace interp
