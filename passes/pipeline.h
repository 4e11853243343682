// The pipeline: which passes there are, which of them run, and the runner.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "passes/pass.h"

namespace interp {

// A pass from outside the library. Its name is none of AllPasses'.
struct ExtraPass {
  Pass pass;
  std::string before = {};  // the pass of AllPasses that it runs before; empty: it runs last
};

struct PipelineOptions {
  // Names of passes; an unknown name is an error.
  std::vector<std::string> disable = {};
  std::vector<std::string> enable = {};       // those that are not on by default
  std::vector<std::string> float32_ops = {};  // as of PassContext, besides its own
  // Passes of the caller's own, in this order where they run before the same pass. They are
  // enabled, disabled, printed and verified as the others are.
  std::vector<ExtraPass> extra = {};
  // After these passes ("all": after each) `print` gets the program, before it is verified.
  std::vector<std::string> print_after = {};
  std::function<void(absl::string_view pass, const Program& program)> print = nullptr;
  // Check the program after each pass; unset: as VerifiesPasses() says.
  std::optional<bool> verify = std::nullopt;
};

// For runs of which fetches alone are wanted, and not what they leave in the scope: enables
// local_temporaries. Does nothing where that or prune is disabled.
void KeepNoState(PipelineOptions& options);

// Whether programs are checked after each pass where options do not say. That costs about as much
// as the passes themselves: it starts as true in Debug builds only, and tests turn it on. What
// comes in is checked always.
bool VerifiesPasses();
void VerifyPasses(bool on);

struct PassTiming {
  absl::string_view pass;
  int64_t duration_ns = 0;  // of the pass alone, without verification
};

struct PipelineResult {
  Program program;
  std::vector<PassTiming> timings;  // in the order the passes ran
};

// Every pass, in the order they run in.
absl::Span<const Pass> AllPasses();

// Those that run with these options. NotFound for a name that is no pass, listing all names;
// AlreadyExists for an extra pass that is named like another.
absl::StatusOr<std::vector<Pass>> DefaultPipeline(const PipelineOptions& options);

// Runs DefaultPipeline(options) on what ImportProgram makes of `program`. The result has feed and
// fetch ops, and every op of it that can run is in context.ops. Errors name the op they are about;
// an error of kind Internal is a bug of the pass it names.
absl::StatusOr<PipelineResult> RunPipeline(Program program, const PassContext& context,
                                           const PipelineOptions& options = {});

// Runs exactly these passes, behind ImportProgram: for tests and tools.
absl::StatusOr<PipelineResult> RunPasses(Program program, const PassContext& context,
                                         absl::Span<const Pass> passes,
                                         const PipelineOptions& options = {});

}  // namespace interp
