// Builds LeNet, trains it on drawings of digits and tells how many of others it recognises.
//   train_lenet [STEPS]        needs no file, no Python and no Paddle
//   train_lenet --save DIR     writes LeNet's programs instead, for `interp backward`
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/io/file.h"
#include "core/program_builder.h"
#include "core/program_load.h"
#include "digits.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"

namespace interp::examples {
namespace {

constexpr int64_t kBatch = 64;

struct LeNet {
  BuiltProgram programs;
  std::string loss;
  std::string accuracy;
};

absl::StatusOr<LeNet> BuildLeNet(bool is_test) {
  ProgramBuilder net({.is_test = is_test});
  const Value image = net.Data("image", {-1, 1, kDigitSize, kDigitSize});
  const Value label = net.Data("label", {-1, 1}, DType::kInt64);
  Value h = net.Pool2d(net.Conv2d(image, {.filters = 20, .size = 5, .act = "relu"}), {.size = 2});
  h = net.Pool2d(net.Conv2d(h, {.filters = 50, .size = 5, .act = "relu"}), {.size = 2});
  const Value logits = net.Fc(net.Fc(net.Flatten(h), 500, {.act = "relu"}), 10);
  const Value loss = net.Mean(net.SoftmaxWithCrossEntropy(logits, label));
  const Value accuracy = net.Accuracy(net.Softmax(logits), label);
  LeNet lenet{.programs = {}, .loss = net.NameOf(loss), .accuracy = net.NameOf(accuracy)};
  INTERP_ASSIGN_OR_RETURN(lenet.programs, net.Finish());
  return lenet;
}

absl::Status Train(int64_t steps) {
  INTERP_ASSIGN_OR_RETURN(const LeNet lenet, BuildLeNet(/*is_test=*/false));
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec adam, ParseOptimizerSpec("adam:learning_rate=0.001"));
  INTERP_ASSIGN_OR_RETURN(
      TrainingPrograms programs,
      Minimize(lenet.programs.main, lenet.programs.startup,
               {.backward = {.loss = lenet.loss}, .optimizer = adam}, OpRegistry::Global()));
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                          Trainer::Create(std::move(programs.main), nullptr,
                                          {.feeds = {"image", "label"}, .fetches = {lenet.loss}}));
  INTERP_RETURN_IF_ERROR(trainer->Initialize(programs.startup));
  INTERP_ASSIGN_OR_RETURN(const Digits digits, DrawDigits(steps * kBatch, /*seed=*/1));
  for (int64_t step = 0; step < steps; ++step) {
    const Digits batch = Rows(digits, step * kBatch, (step + 1) * kBatch);
    INTERP_ASSIGN_OR_RETURN(const auto fetched, trainer->Step({batch.images, batch.labels}));
    if (step % 20 == 0 || step + 1 == steps) {
      std::printf("step %3d  loss %.4f\n", static_cast<int>(step + 1), *fetched[0].data<float>());
    }
  }
  INTERP_ASSIGN_OR_RETURN(const LeNet test, BuildLeNet(/*is_test=*/true));
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<InterpreterCore> core,
                          InterpreterCore::Create(test.programs.main, {"image", "label"},
                                                  {test.accuracy}, trainer->scope()));
  INTERP_ASSIGN_OR_RETURN(const Digits others, DrawDigits(1000, /*seed=*/2));
  INTERP_ASSIGN_OR_RETURN(const auto result, core->Run({others.images, others.labels}));
  std::printf("recognises %.1f %% of 1000 other digits\n", 100 * *result[0].data<float>());
  return absl::OkStatus();
}

// Beside the training: the same programs as files.
absl::Status Save(const std::string& dir) {
  INTERP_ASSIGN_OR_RETURN(const LeNet lenet, BuildLeNet(/*is_test=*/false));
  INTERP_ASSIGN_OR_RETURN(const LeNet test, BuildLeNet(/*is_test=*/true));
  for (const auto& [name, program] :
       {std::pair("forward", &lenet.programs.main), std::pair("startup", &lenet.programs.startup),
        std::pair("test", &test.programs.main)}) {
    INTERP_ASSIGN_OR_RETURN(const std::string bytes, SaveProgram(*program));
    INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(dir + "/" + name + ".pdmodel"));
    INTERP_RETURN_IF_ERROR(file.Append(bytes));
    INTERP_RETURN_IF_ERROR(file.Commit());
  }
  std::printf("loss %s, accuracy %s\n", lenet.loss.c_str(), lenet.accuracy.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace interp::examples

int main(int argc, char** argv) {
  const bool save = argc > 2 && std::strcmp(argv[1], "--save") == 0;
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 200;
  const absl::Status status =
      save ? interp::examples::Save(argv[2]) : interp::examples::Train(steps > 0 ? steps : 200);
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
