// StoreOptimizer: an optimizer op as the updater of a store.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/array/invoke.h"

namespace interp {

// An op with inputs Param, Grad and LearningRate and the output ParamOut. Any other input that is
// not optional and has an output of its name and "Out" is state that the op updates.
struct StoreOptimizerOptions {
  std::string type = "sgd";
  double learning_rate = 0.01;
  std::vector<Attr> attrs = {};
  // What gradients are multiplied by: sums over devices and batches are not means.
  double rescale = 1;
  // States of one element and what they begin as (Beta1Pow). All others are zeros like Param.
  std::vector<std::pair<std::string, double>> scalars = {};
};

// Thread-safety: Update of different keys.
class StoreOptimizer {
 public:
  // NotFound for an op that is not registered; InvalidArgument for one that is no optimizer, and
  // Unimplemented for one that needs more than the above.
  static absl::StatusOr<std::shared_ptr<StoreOptimizer>> Make(ArrayRuntime& runtime,
                                                              const StoreOptimizerOptions& options);

  // Pushes the update of a parameter.
  absl::Status Update(absl::string_view key, const Array& gradient, const Array& parameter);

 private:
  struct State {
    absl::string_view input;
    absl::string_view output;
  };
  StoreOptimizer(ArrayRuntime& runtime, const OpDef& def, const StoreOptimizerOptions& options)
      : runtime_(runtime), def_(def), options_(options) {}
  absl::Status FindStates();
  absl::StatusOr<Array> Scalar(double value, const Array& like);
  absl::StatusOr<ArraySlots> MakeStates(const Array& parameter);

  ArrayRuntime& runtime_;
  const OpDef& def_;
  const StoreOptimizerOptions options_;
  std::vector<State> states_;
  std::mutex mutex_;  // guards what follows
  absl::flat_hash_map<std::string, std::shared_ptr<const ArraySlots>> of_keys_;  // the inputs
};

}  // namespace interp
