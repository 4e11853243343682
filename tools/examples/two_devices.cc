// Training on two simulated devices: copies and computation overlapped by the engine, gradients
// added up by a store. Run it: two_devices.
//
// Each device computes the gradients of its half of the batch. Those of the last layer are there
// first and go to the store at once, while the layers before are still computed; the next step of a
// layer waits for the weights of that layer alone. Nothing here says so: the code pushes one
// operation after another. Times are those of the devices' own clock (core/device/sim_device.h).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/array/array_runtime.h"
#include "core/array/tape.h"
#include "core/device/sim_device.h"
#include "core/kvstore/kvstore.h"

namespace interp {
namespace {

constexpr int kLayers = 6;
constexpr int64_t kWidth = 192;
constexpr int64_t kBatch = 2048;  // of all devices together
constexpr int kSteps = 6;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

// Numbers in [-scale, scale), the same in every run.
Tensor Numbers(const Shape& shape, float scale, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = (static_cast<float>(seed >> 8) / (1 << 23) - 1) * scale;
  }
  return Tensor::Of<float>(shape, values);
}

struct Outcome {
  double time_us = 0;     // simulated, of all steps
  double compute_us = 0;  // of them, the busiest device computes
  double copying_us = 0;  // and copies
  std::vector<float> first_weights;
};

// What one device has: its part of the batch and its weights.
struct Worker {
  Array x;
  Array scale;
  std::vector<Array> weights;
};

class Training {
 public:
  explicit Training(int num_devices) {
    // This thread alone enqueues, in the order of pushes: the same times in every run.
    engine::EngineOptions engine{.policy = engine::PolicyKind::kNaive};
    for (int i = 0; i < num_devices; ++i) {
      // Slow enough for its memory that computing, not copying, is most of a step.
      devices_.push_back(Must(MakeSimDevice({.index = i, .flops_per_s = 1e12})));
      engine.devices.push_back(devices_.back());
    }
    runtime_ = Must(ArrayRuntime::Create({.engine = engine}));
    store_ = Must(KVStore::Create(*runtime_, "device"));
    // Each device gives the mean of its part of the batch.
    Require(
        store_->SetOptimizer({.type = "sgd", .learning_rate = 0.05, .rescale = 1.0 / num_devices}));
    for (int k = 0; k < kLayers; ++k) {
      const Tensor w = Numbers({kWidth, kWidth}, /*scale=*/0.15F, static_cast<uint32_t>(k));
      Require(store_->Init(std::to_string(k), Must(runtime_->FromTensor(w))));
    }
    const Array batch =
        Must(runtime_->FromTensor(Numbers({kBatch, kWidth}, /*scale=*/1, /*seed=*/99)));
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

  Outcome Run() {
    int64_t start = 0;
    for (const auto& device : devices_) {
      Require(device->Synchronize());
      start = std::max(start, device->NowNs());
      device->StartTrace();
    }
    for (int step = 0; step < kSteps; ++step) Step();
    Require(runtime_->WaitForAll());
    Outcome outcome;
    for (const auto& device : devices_) {
      Require(device->Synchronize());
      outcome.time_us =
          std::max(outcome.time_us, static_cast<double>(device->NowNs() - start) / 1e3);
      double computing = 0;
      double copying = 0;
      for (const DeviceSpan& span : device->StopTrace()) {
        const double us = static_cast<double>(span.end_ns - span.start_ns) / 1e3;
        (span.kind == WorkKind::kKernel ? computing : copying) += us;
      }
      outcome.compute_us = std::max(outcome.compute_us, computing);
      outcome.copying_us = std::max(outcome.copying_us, copying);
    }
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

int Main() {
  const Outcome one = Training(1).Run();
  const Outcome two = Training(2).Run();
  std::printf("%d steps of %d layers, simulated time\n", kSteps, kLayers);
  std::printf("            all        computing  copying\n");
  std::printf("1 device    %7.1f us %7.1f us %7.1f us\n", one.time_us, one.compute_us,
              one.copying_us);
  std::printf("2 devices   %7.1f us %7.1f us %7.1f us\n", two.time_us, two.compute_us,
              two.copying_us);
  const double hidden = two.compute_us + two.copying_us - two.time_us;
  float difference = 0;
  for (size_t i = 0; i < one.first_weights.size(); ++i) {
    difference = std::max(difference, std::abs(one.first_weights[i] - two.first_weights[i]));
  }
  std::printf("weights differ by %.1e at most\n", difference);
  std::printf("%.2f x one device; %.0f %% of the copying is hidden behind computing\n",
              one.time_us / two.time_us, 100 * std::clamp(hidden / two.copying_us, 0.0, 1.0));
  return 0;
}

}  // namespace
}  // namespace interp

int main() { return interp::Main(); }
