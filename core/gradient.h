// GradientDef: how an op is differentiated. Part of its OpDef; append_backward (passes/) asks it.
//
// Most gradients are one op that takes some of the forward op's arguments and the gradients of its
// outputs, and gives the gradients of its inputs, under the same attributes:
//
//   .gradient = {.inputs = {"Out", "Out@GRAD"}, .outputs = {"X@GRAD"}}
//
// gives for `relu(X=x) -> (Out=y)`
//
//   relu_grad(Out=y, Out@GRAD=y@GRAD) -> (X@GRAD=x@GRAD)
//
// Slots, names and attributes are those of Paddle's gradient op makers (*GradOpMaker in
// paddle/fluid/operators/*.cc), so that the result is a program that Paddle runs, too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/edit_op.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// Paddle's suffix of gradients, of variables and of slots.
inline constexpr absl::string_view kGradientSuffix = "@GRAD";

class GradientMaker;

struct GradientDef {
  // Of the gradient op; empty: the op's type and "_grad".
  absl::string_view type = {};
  // Its input slots. A name with @GRAD behind it is the gradient of the op's output slot; any other
  // is an input or output slot of the op. Slots that the op does not have are left out.
  std::vector<absl::string_view> inputs = {};
  // Its output slots: the op's input slots with @GRAD behind the name. Arguments whose gradient
  // nobody wants are @EMPTY@, slots of such arguments alone are left out.
  std::vector<absl::string_view> outputs = {};
  // Gradients that are more than that: adds any number of ops. `inputs` and `outputs` are then
  // empty, or what is read and given where it adds ops.
  absl::Status (*make)(GradientMaker&) = nullptr;
  // The derivative is zero wherever it exists, or means nothing: no gradient passes the op
  // (comparisons, ranks, shapes, decoded paths).
  bool none = false;

  bool exists() const { return make != nullptr || !outputs.empty(); }
};

// The gradient of variable `name`.
std::string GradientName(absl::string_view name);

// The op being differentiated, as a GradientDef::make sees it, and what it adds.
class GradientMaker {
 public:
  struct Request {
    Program* program = nullptr;  // takes the names of gradients
    int32_t block = 0;           // of the op
    const Op* op = nullptr;
    // The block that append_backward has made as the gradient of the op's sub-block; -1: the op
    // runs no block.
    int32_t gradient_block = -1;
    // Whether somebody wants the gradient of an input.
    std::function<bool(VarId)> wants;
  };
  explicit GradientMaker(Request request);
  ~GradientMaker();
  GradientMaker(const GradientMaker&) = delete;
  GradientMaker& operator=(const GradientMaker&) = delete;

  const Program& program() const { return *request_.program; }
  int32_t block() const { return request_.block; }
  int32_t gradient_block() const { return request_.gradient_block; }
  const Op& op() const { return *request_.op; }

  // The arguments of an input or output slot of the op; empty when it has none.
  ArgIds Arguments(absl::string_view slot) const;
  // The gradients of the arguments of an output slot. All of them have values: append_backward
  // fills zeros in for those that nothing gives.
  ArgIds OutputGradients(absl::string_view slot);
  // The gradients of the arguments of an input slot; @EMPTY@ where nobody wants one.
  ArgIds InputGradients(absl::string_view slot);
  // Whether the gradient of an argument of the input slot is wanted.
  bool Wants(absl::string_view slot) const;
  VarId Empty();
  // The number of a name, which is made one of the program's.
  VarId Intern(absl::string_view name) { return request_.program->Intern(name); }

  // Adds an op without arguments; fill it in with AddInput and the like. The reference holds until
  // the next call.
  Op& Add(absl::string_view type);
  // The op that a table (GradientDef::inputs, outputs) gives.
  void AddByTable(const GradientDef& def);

  // What has been added.
  std::vector<Op> Take();

 private:
  Request request_;
  std::vector<Op> ops_;
};

}  // namespace interp
