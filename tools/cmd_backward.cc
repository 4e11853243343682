// interp backward: makes a training program of a forward program.
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/annotate.h"
#include "core/io/file.h"
#include "core/op_role.h"
#include "core/program_load.h"
#include "core/program_print.h"
#include "passes/import/retired_slots.h"
#include "passes/train/minimize.h"
#include "passes/verify.h"
#include "tools/commands.h"
#include "tools/model.h"
#include "tools/outputs.h"
#include "tools/ranks.h"
#include "tools/repeated_flag.h"
#include "tools/sizes.h"

namespace interp {
namespace {

struct BackwardFlags {
  std::string model;
  std::string loss;
  std::string optimizer;
  std::vector<std::string> no_grad;
  std::vector<std::string> checkpoints;
  std::string out;
  std::string startup;
  std::string parameters;  // a program that makes the parameters
};

absl::StatusOr<Program> Load(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(Model model,
                          LoadModel({.model = path, .params = "", .compiled_from = ""}));
  if (model.compiled.has_value()) return InvalidArgument(path, ": is a plan, expected a program");
  INTERP_ASSIGN_OR_RETURN(
      Program program,
      Annotate(DropRetiredSlots(std::move(model.program), {.ops = OpRegistry::Global()}), path));
  INTERP_RETURN_IF_ERROR(Annotate(VerifyProgram(program, OpRegistry::Global()), path));
  return program;
}

absl::StatusOr<TrainingPrograms> Make(const BackwardFlags& flags, const OptimizerSpec& optimizer) {
  INTERP_ASSIGN_OR_RETURN(Program forward, Load(flags.model));
  Program startup;
  startup.version = forward.version;
  if (!flags.parameters.empty()) {
    INTERP_ASSIGN_OR_RETURN(startup, Load(flags.parameters));
  }
  const MinimizeOptions options{
      .backward = {.loss = flags.loss, .no_grad = flags.no_grad, .sources = {}},
      .optimizer = optimizer,
      .checkpoints = flags.checkpoints};
  return Annotate(Minimize(std::move(forward), std::move(startup), options, OpRegistry::Global()),
                  flags.model);
}

// "12 forward, 14 backward, 4 update".
std::string OpsByRole(const Program& program) {
  int forward = 0;
  int backward = 0;
  int update = 0;
  for (const Op& op : program.blocks[0].ops) {
    const int32_t part = RoleOf(op) & ~kLossRole;
    ++(part == kForwardRole ? forward : part == kBackwardRole ? backward : update);
  }
  return absl::StrFormat("%d forward, %d backward, %d update", forward, backward, update);
}

// Complete, but not yet in its place.
absl::StatusOr<FileWriter> Write(const std::string& path, const Program& program) {
  INTERP_ASSIGN_OR_RETURN(const std::string bytes,
                          absl::EndsWith(path, ".txt")
                              ? absl::StatusOr<std::string>(SaveProgramText(program))
                              : SaveProgram(program));
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(file.Append(bytes));
  return file;
}

// Both programs are there in the end, or none.
absl::Status WriteAll(const BackwardFlags& flags, const TrainingPrograms& made) {
  INTERP_ASSIGN_OR_RETURN(FileWriter main, Write(flags.out, made.main));
  if (!flags.startup.empty()) {
    INTERP_ASSIGN_OR_RETURN(FileWriter startup, Write(flags.startup, made.startup));
    INTERP_RETURN_IF_ERROR(startup.Commit());
  }
  return main.Commit();
}

absl::StatusOr<ExitCode> Backward(const BackwardFlags& flags, ExitCode& blame) {
  INTERP_RETURN_IF_ERROR(CheckStartedAlone("backward"));
  const auto [model, params] = InputsOf({.model = flags.model, .params = "", .compiled_from = ""});
  INTERP_RETURN_IF_ERROR(
      CheckDistinct({{"--out", flags.out}, {"--startup", flags.startup}},
                    {model, params, {"--startup-from", ModelFileOf(flags.parameters)}}));
  if (flags.startup.empty() && !flags.parameters.empty()) {
    return InvalidArgument("--startup-from has no effect without --startup");
  }
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec optimizer,
                          Annotate(ParseOptimizerSpec(flags.optimizer), "--optimizer"));
  // Both are written, or none.
  blame = ExitCode::kRunFailed;
  for (const auto& [flag, path] : {std::pair("-o", &flags.out), {"--startup", &flags.startup}}) {
    if (!path->empty()) INTERP_RETURN_IF_ERROR(Annotate(CheckWritable(*path), flag));
  }
  blame = ExitCode::kModelUnusable;
  INTERP_ASSIGN_OR_RETURN(const TrainingPrograms made, Make(flags, optimizer));
  blame = ExitCode::kRunFailed;
  INTERP_RETURN_IF_ERROR(WriteAll(flags, made));
  std::string text = absl::StrCat(flags.out, ": ops: ", OpsByRole(made.main), "; ",
                                  Counted(std::ssize(made.gradients), "parameter"));
  if (made.num_recomputed > 0) {
    absl::StrAppend(&text, "; ", Counted(made.num_recomputed, "op"), " computed again");
  }
  text += "\n";
  if (!flags.startup.empty()) {
    absl::StrAppend(&text, flags.startup, ": ",
                    Counted(std::ssize(made.startup.blocks[0].ops), "op"), "\n");
  }
  return Show(text);
}

}  // namespace

void AddBackwardCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<BackwardFlags>();
  CLI::App& command =
      *app.add_subcommand("backward", "make a training program of a forward program");
  command.add_option("MODEL", flags->model, "forward program")->required();
  command.add_option("--loss", flags->loss, "the variable to minimize, one float")->required();
  command
      .add_option("--optimizer", flags->optimizer,
                  "as in sgd, adam:learning_rate=0.001,beta1=0.9 or "
                  "momentum:learning_rate=0.1,momentum=0.9,use_nesterov=true")
      ->required();
  AddRepeatedFlag(command, "--no-grad", flags->no_grad,
                  "variables that no gradient flows through, as in a,b; repeatable")
      .delimiter(',');
  AddRepeatedFlag(command, "--checkpoints", flags->checkpoints,
                  "keep these activations and compute those between them again, as in a,b; "
                  "repeatable")
      .delimiter(',');
  command
      .add_option("-o,--out", flags->out,
                  "the training program to write; text where it ends in .txt")
      ->required();
  command.add_option("--startup", flags->startup,
                     "write the program that makes the optimizer's state (and the parameters, with "
                     "--startup-from)");
  command.add_option("--startup-from", flags->parameters,
                     "startup program of MODEL, to which the state is added");
  command.callback([flags, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return Backward(*flags, blame); });
  });
}

}  // namespace interp
