// Training on two simulated devices: copies and computation overlapped, by the engine, which finds
// the order call by call with gradients added up by a store, and by a plan that was made before.
//
//   two_devices [FOLDER]
//
// Each device computes the gradients of its half of the batch. Those of the last layer are there
// first and are added up at once, while the layers before are still computed; the next step of a
// layer waits for the weights of that layer alone. Nothing here says so: the code pushes one
// operation after another. Times are those of the devices' own clock (core/device/sim_device.h).
// With a folder traces are written to it, for tools/draw_trace.py.
#include "tools/examples/two_devices.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/array/array_runtime.h"
#include "core/array/tape.h"
#include "core/base/trace_events.h"
#include "core/device/sim_device.h"
#include "core/kvstore/kvstore.h"

namespace interp::examples {
namespace {

// Numbers in [-scale, scale), the same in every run.
Tensor Numbers(const Shape& shape, float scale, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = (static_cast<float>(seed >> 8) / (1 << 23) - 1) * scale;
  }
  return Tensor::Of<float>(shape, values);
}

}  // namespace

std::vector<std::shared_ptr<Device>> MakeDevices(int count) {
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    // Slow enough for its memory that computing, not copying, is most of a step.
    devices.push_back(Must(MakeSimDevice({.index = i, .flops_per_s = 1e12})));
  }
  return devices;
}

Tensor WeightsOf(int layer) {
  return Numbers({kWidth, kWidth}, /*scale=*/0.15F, static_cast<uint32_t>(layer));
}

Tensor Samples() { return Numbers({kBatch, kWidth}, /*scale=*/1, /*seed=*/99); }

Watch::Watch(const std::vector<std::shared_ptr<Device>>& devices) : devices_(devices) {
  for (const auto& device : devices_) {
    Require(device->Synchronize());
    start_ns_ = std::max(start_ns_, device->NowNs());
    device->StartTrace();
  }
}

Outcome Watch::Finish() {
  Outcome outcome;
  for (const auto& device : devices_) {
    Require(device->Synchronize());
    outcome.time_us =
        std::max(outcome.time_us, static_cast<double>(device->NowNs() - start_ns_) / 1e3);
    double computing = 0;
    double copying = 0;
    for (const DeviceSpan& span : outcome.spans.emplace_back(device->StopTrace())) {
      const double us = static_cast<double>(span.end_ns - span.start_ns) / 1e3;
      (span.kind == WorkKind::kKernel ? computing : copying) += us;
    }
    outcome.compute_us = std::max(outcome.compute_us, computing);
    outcome.copying_us = std::max(outcome.copying_us, copying);
  }
  return outcome;
}

namespace {

// What one device has: its part of the batch and its weights.
struct Worker {
  Array x;
  Array scale;
  std::vector<Array> weights;
};

class Training {
 public:
  explicit Training(int num_devices) : devices_(MakeDevices(num_devices)) {
    // This thread alone enqueues, in the order of pushes: the same times in every run.
    engine::EngineOptions engine{.policy = engine::PolicyKind::kNaive};
    engine.devices = devices_;
    runtime_ = Must(ArrayRuntime::Create({.engine = engine}));
    store_ = Must(KVStore::Create(*runtime_, "device"));
    // Each device gives the mean of its part of the batch.
    Require(store_->SetOptimizer(
        {.type = "sgd", .learning_rate = kLearningRate, .rescale = 1.0 / num_devices}));
    for (int k = 0; k < kLayers; ++k) {
      Require(store_->Init(std::to_string(k), Must(runtime_->FromTensor(WeightsOf(k)))));
    }
    const Array batch = Must(runtime_->FromTensor(Samples()));
    const int64_t part = kBatch / num_devices;
    for (int i = 0; i < num_devices; ++i) {
      const Place place = devices_[i]->place();
      Worker& worker = workers_.emplace_back();
      worker.x = Must(Must(batch.Slice(i * part, (i + 1) * part)).CopyTo(place));
      for (int k = 0; k < kLayers; ++k) {
        worker.weights.push_back(Must(runtime_->New({kWidth, kWidth}, DType::kFloat32, place)));
        Require(store_->Pull(std::to_string(k), {worker.weights[k]}));
      }
    }
    Require(runtime_->WaitForAll());
  }

  // The steps, after one that is not timed.
  Outcome Run() {
    Step();
    Require(runtime_->WaitForAll());
    Watch watch(devices_);
    for (int step = 0; step < kSteps; ++step) Step();
    Require(runtime_->WaitForAll());
    Outcome outcome = watch.Finish();
    const Tensor weights = Must(workers_[0].weights[0].Read());
    outcome.first_weights.assign(weights.data<float>(), weights.data<float>() + weights.numel());
    return outcome;
  }

 private:
  Array Op(absl::string_view type, const ArraySlots& inputs) {
    return Must(First(Invoke(*runtime_, type, inputs)));
  }

  // Gradients of the mean square of what the layers make of a worker's part of the batch.
  std::vector<Array> Gradients(const Worker& worker) {
    Tape tape;
    Array h = worker.x;
    for (const Array& w : worker.weights) {
      h = Op("relu", {{"X", {Op("matmul_v2", {{"X", {h}}, {"Y", {w}}})}}});
    }
    const Array loss = Op("mean", {{"X", {Op("square", {{"X", {h}}})}}});
    return Must(tape.Backward(loss, worker.weights));
  }

  void Step() {
    std::vector<std::vector<Array>> gradients;
    for (const Worker& worker : workers_) gradients.push_back(Gradients(worker));
    for (int k = kLayers - 1; k >= 0; --k) {
      std::vector<Array> pushed;
      std::vector<Array> pulled;
      for (size_t i = 0; i < workers_.size(); ++i) {
        pushed.push_back(gradients[i][k]);
        pulled.push_back(workers_[i].weights[k]);
      }
      Require(store_->PushPull(std::to_string(k), pushed, pulled));
    }
  }

  std::vector<std::shared_ptr<Device>> devices_;
  std::unique_ptr<ArrayRuntime> runtime_;
  std::unique_ptr<KVStore> store_;
  std::vector<Worker> workers_;
};

// The last two steps: a row for each stream that has done something.
void WriteTrace(const Outcome& outcome, const std::string& path) {
  int64_t end_ns = 0;
  for (const std::vector<DeviceSpan>& spans : outcome.spans) {
    for (const DeviceSpan& span : spans) end_ns = std::max(end_ns, span.end_ns);
  }
  const int64_t from_ns = end_ns - static_cast<int64_t>(outcome.time_us * 1e3 * 2 / kSteps);
  TraceEvents events;
  for (size_t i = 0; i < outcome.spans.size(); ++i) {
    const int process = static_cast<int>(i) + 1;
    events.NameProcess(absl::StrCat("sim:", i), {.process = process});
    std::vector<int32_t> named;
    for (const DeviceSpan& span : outcome.spans[i]) {
      if (span.start_ns < from_ns) continue;
      const TraceLane lane{.process = process, .thread = span.stream};
      if (std::find(named.begin(), named.end(), span.stream) == named.end()) {
        named.push_back(span.stream);
        events.NameThread(absl::StrCat("sim:", i, " ", Name(span.kind)), lane);
      }
      events.BeginSlice(Name(span.kind), Name(span.kind), lane, span.start_ns - from_ns,
                        span.end_ns - from_ns);
      events.EndSlice();
    }
  }
  std::ofstream file(path);
  file << std::move(events).Take();
  if (!file.flush()) Require(absl::UnknownError(absl::StrCat("cannot write '", path, "'")));
}

float LargestDifference(const Outcome& a, const Outcome& b) {
  float difference = 0;
  for (size_t i = 0; i < a.first_weights.size(); ++i) {
    difference = std::max(difference, std::abs(a.first_weights[i] - b.first_weights[i]));
  }
  return difference;
}

void Print(const char* what, const Outcome& outcome, const Outcome& one) {
  std::printf("%-18s %8.1f us  %8.1f us  %7.1f us", what, outcome.time_us, outcome.compute_us,
              outcome.copying_us);
  if (outcome.spans.size() > 1) {
    const double hidden = outcome.compute_us + outcome.copying_us - outcome.time_us;
    std::printf("  %.2f x  %4.0f %%", one.time_us / outcome.time_us,
                100 * std::clamp(hidden / outcome.copying_us, 0.0, 1.0));
  }
  std::printf("\n");
}

int Main(const char* folder) {
  const Outcome one = Training(1).Run();
  const Outcome two = Training(2).Run();
  const Outcome one_by_plan = TrainByPlan(1);
  const Outcome two_by_plan = TrainByPlan(2);
  std::printf("%d steps of %d layers, simulated time\n", kSteps, kLayers);
  std::printf("%-18s %11s  %11s  %10s  %6s  %6s\n", "", "all", "computing", "copying", "gain",
              "hidden");
  Print("1 device, engine", one, one);
  Print("2 devices, engine", two, one);
  Print("1 device, plan", one_by_plan, one_by_plan);
  Print("2 devices, plan", two_by_plan, one_by_plan);
  const float difference =
      std::max({LargestDifference(two, one), LargestDifference(one_by_plan, one),
                LargestDifference(two_by_plan, one)});
  std::printf("weights differ by %.1e at most\n", difference);
  if (folder == nullptr) return 0;
  WriteTrace(one, absl::StrCat(folder, "/one.json"));
  WriteTrace(two, absl::StrCat(folder, "/engine.json"));
  WriteTrace(two_by_plan, absl::StrCat(folder, "/plan.json"));
  return 0;
}

}  // namespace
}  // namespace interp::examples

int main(int argc, char** argv) { return interp::examples::Main(argc > 1 ? argv[1] : nullptr); }
