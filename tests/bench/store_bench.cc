// Answers compare_store.py: rounds of pushes and pulls of a store of kind `local`.
//   store_bench CASE ARRAYS BYTES ROUNDS      prints the seconds of each round
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/array/array_runtime.h"
#include "core/kvstore/kvstore.h"

namespace interp {
namespace {

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

int Main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string what = argv[1];
  const int arrays = std::atoi(argv[2]);
  const int64_t count = std::atoll(argv[3]) / static_cast<int64_t>(sizeof(float));
  const int rounds = std::atoi(argv[4]);
  const auto runtime = Must(ArrayRuntime::Create({.engine = {.workers = 2}}));
  const auto store = Must(KVStore::Create(*runtime, "local"));
  if (what == "sgd") Require(store->SetOptimizer({.type = "sgd", .learning_rate = 0.1}));
  std::vector<std::string> keys;
  std::vector<std::vector<Array>> values;
  std::vector<Array> outs;
  for (int k = 0; k < arrays; ++k) {
    keys.push_back(std::to_string(k));
    const std::vector<float> numbers(static_cast<size_t>(count), static_cast<float>(k));
    const Tensor tensor = Tensor::Of<float>({count}, numbers);
    values.emplace_back();
    for (int i = 0; i < (what == "one" ? 1 : 2); ++i) {
      values.back().push_back(Must(runtime->FromTensor(tensor)));
    }
    outs.push_back(Must(runtime->FromTensor(tensor)));
    Require(store->Init(keys.back(), outs.back()));
  }
  Require(runtime->WaitForAll());
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < arrays; ++k) Require(store->Push(keys[k], values[k], -k));
    for (int k = 0; k < arrays; ++k) Require(store->Pull(keys[k], {outs[k]}, -k));
    // What is pulled is written to, so that nothing that is put off is left out.
    for (int k = 0; what == "touched" && k < arrays; ++k) {
      Require(Invoke(*runtime, "scale", {{"X", {outs[k]}}}, {{"bias", 1.0F}},
                     {.into = {{"Out", {outs[k]}}}})
                  .status());
    }
    Require(runtime->WaitForAll());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("%.9f\n", taken.count());
  }
  return 0;
}

}  // namespace
}  // namespace interp

int main(int argc, char** argv) { return interp::Main(argc, argv); }
