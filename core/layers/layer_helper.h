// LayerHelper: what the layers of ProgramBuilder share (Paddle's class of that name).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/program_builder.h"

namespace interp {

// One layer while it is being added: its name, and what is named after it. After an error all of it
// does nothing.
class LayerHelper {
 public:
  // Takes the next name of the kind; fails unless all of `inputs` are values of the builder.
  LayerHelper(ProgramBuilder& net, absl::string_view kind, const std::vector<Value>& inputs);

  bool ok() const { return net_.status().ok(); }
  const std::string& name() const { return name_; }

  // "<layer>.<suffix>_0", initialised in the startup program.
  Value Parameter(absl::string_view suffix, Dims dims, DType dtype, const ParamOptions& options,
                  const Initializer& otherwise);
  Value Temporary(Dims dims, DType dtype) { return net_.Temporary(name_, std::move(dims), dtype); }
  // The same; passes no gradient on.
  Value Constant(Dims dims, DType dtype);
  // Paddle's record of an input's shape (XShape), which the op's gradient reads.
  Value ShapeRecord(const Var& input);
  // Adds a bias along dim `axis` and the activation, where there are such.
  Value AddBias(Value x, int axis, const BiasOptions& bias);
  Value Activate(Value x, absl::string_view type);

  // Error of this layer; gives no value.
  Value Fail(absl::string_view message);
  // False when it fails.
  bool Check(bool condition, absl::string_view message);
  bool Check(const absl::Status& status) { return Check(status.ok(), status.message()); }

 private:
  ProgramBuilder& net_;
  std::string name_;
};

}  // namespace interp
