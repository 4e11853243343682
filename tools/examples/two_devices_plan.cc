// The training of two_devices.cc as a program: what runs where is said by `op_device`, and the
// plan, made once, has the copies, the streams and the events between them.
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/device/device_heap.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "core/op_role.h"
#include "core/program_parse.h"
#include "core/storage/memory_source.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"
#include "tools/examples/two_devices.h"

namespace interp::examples {
namespace {

// Device i computes layers on its part of the batch, x<i>, to the loss q<i>.
std::string Forward(int num_devices) {
  std::string vars = "block 0\n  var loss float32[1]\n";
  std::string ops;
  std::string losses;
  for (int k = 0; k < kLayers; ++k) {
    absl::StrAppend(&vars, "  var w", k, " float32[", kWidth, ",", kWidth, "] param\n");
  }
  const std::string dims = absl::StrCat(" float32[", kBatch / num_devices, ",", kWidth, "]");
  std::vector<std::string> last;
  for (int i = 0; i < num_devices; ++i) {
    last.push_back(absl::StrCat("x", i));
    absl::StrAppend(&vars, "  var x", i, dims, " persistable\n  var q", i, " float32[1]\n  var s",
                    i, dims, "\n");
  }
  // Layer by layer, so that the backward part has the gradients of one layer next to each other.
  for (int k = 0; k < kLayers; ++k) {
    for (int i = 0; i < num_devices; ++i) {
      const std::string product = absl::StrCat("p", i, "_", k);
      const std::string next = absl::StrCat("h", i, "_", k);
      absl::StrAppend(&vars, "  var ", product, dims, "\n  var ", next, dims, "\n");
      absl::StrAppend(&ops, "  matmul_v2(X=", last[i], ", Y=w", k, ") -> (Out=", product, ")\n",
                      "  relu(X=", product, ") -> (Out=", next, ")\n");
      last[i] = next;
    }
  }
  for (int i = 0; i < num_devices; ++i) {
    absl::StrAppend(&ops, "  square(X=", last[i], ") -> (Out=s", i, ")\n  mean(X=s", i,
                    ") -> (Out=q", i, ")\n");
    absl::StrAppend(&losses, i == 0 ? "" : ", ", "q", i);
  }
  return absl::StrCat(
      vars, "  var total float32[1]\n", ops, "  sum(X=[", losses,
      "]) -> (Out=total)\n  scale(X=total) -> (Out=loss) {scale=", 1.0 / num_devices, "}\n");
}

// Puts an op on a device: that of the layers' values where it uses some. Sums and updates of
// weights go where those are kept, as the store deals them out, and to a stream of their own, so
// that what they wait for holds up no layer.
void PutOnDevice(const Program& program, int num_devices, Op& op) {
  int device = 0;
  bool of_layer = false;
  for (const std::vector<Slot>* const slots : {&op.outputs, &op.inputs}) {
    for (const VarId id : EachArgument(*slots)) {
      const std::string& name = program.NameOf(id);
      const int number = name.size() > 1 ? name[1] - '0' : -1;
      if (of_layer || number < 0 || number > kLayers) continue;
      of_layer = std::string_view("xphsq").find(name[0]) != std::string_view::npos;
      if (of_layer || name[0] == 'w') device = number % num_devices;
    }
  }
  SetAttr(op, kDeviceAttr, absl::StrCat("sim:", device));
  if (!of_layer) SetAttr(op, "execution_stream", std::string("weights"));
}

Program MakeProgram(int num_devices, Program& startup) {
  const Program forward = Must(ParseProgram(Forward(num_devices)));
  const std::string rule = absl::StrCat("sgd:learning_rate=", kLearningRate);
  Program empty;
  empty.blocks.emplace_back();
  TrainingPrograms made = Must(Minimize(
      forward, empty, {.backward = {.loss = "loss"}, .optimizer = Must(ParseOptimizerSpec(rule))},
      OpRegistry::Global()));
  for (Op& op : made.main.blocks[0].ops) PutOnDevice(made.main, num_devices, op);
  startup = std::move(made.startup);
  return std::move(made.main);
}

}  // namespace

Outcome TrainByPlan(int num_devices) {
  const auto devices = MakeDevices(num_devices);
  Program startup;
  Program main = MakeProgram(num_devices, startup);
  TrainerOptions options{.core = {.scheduler = SchedulerKind::kTrace, .devices = devices}};
  options.core.plan.place = Place{PlaceKind::kSim, 0};
  const auto trainer = Must(Trainer::Create(std::move(main), nullptr, options));
  Require(trainer->Initialize(startup));
  Scope& scope = *trainer->scope();
  for (int k = 0; k < kLayers; ++k) {
    scope.FindOrCreate(absl::StrCat("w", k))->tensor = WeightsOf(k);
  }
  const Tensor samples = Samples();
  const int64_t part = kBatch / num_devices;
  for (int i = 0; i < num_devices; ++i) {
    const float* const first = samples.data<float>() + i * part * kWidth;
    scope.FindOrCreate(absl::StrCat("x", i))->tensor =
        Tensor::Of<float>({part, kWidth}, std::vector<float>(first, first + part * kWidth));
  }
  Require(trainer->Step({}).status());
  Watch watch(devices);
  for (int step = 0; step < kSteps; ++step) {
    Require(trainer->Step({}, {.wait_for_devices = false}).status());
  }
  Require(trainer->core().Synchronize());
  Outcome outcome = watch.Finish();
  const Tensor weights = Must(CopyToHost(scope.Find("w0")->tensor, SystemAllocator()));
  outcome.first_weights.assign(weights.data<float>(), weights.data<float>() + weights.numel());
  return outcome;
}

}  // namespace interp::examples
