// while_grad: runs the gradient of a loop's block on what each trip left, the last trip first.
//
// Out@GRAD are gradients of the loop's results; in the block they have the names that the attribute
// original_output_grad lists. One whose name is the gradient of an X is carried: what a trip makes
// of it is what the trip before starts from, and in the end X@GRAD, where that is wanted. One that
// the block leaves as it is goes to each trip, from the last one back to the first whose result has
// another shape; X@GRAD is zeros where X had another one before the loop. That of another result
// goes to the last trip, which made it. The others are the same for every trip. Gradients of
// all other X are summed over the trips. (Paddle: WhileGradOp in
// fluid/operators/controlflow/while_op.cc.)
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "core/each_argument.h"
#include "core/op_def.h"
#include "core/sub_blocks.h"
#include "kernels/control_flow/block_op.h"
#include "kernels/control_flow/gradient_values.h"

namespace interp {
namespace {

using control_flow::ArgumentOrNull;
using control_flow::FillZerosLike;
using control_flow::GradientSum;
using control_flow::HasValue;
using control_flow::ShareValue;

constexpr int kX = 0;
constexpr int kOut = 1;
constexpr int kStepScopes = 2;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

constexpr absl::string_view kInnerNames = "original_output_grad";

std::vector<std::string> NamesOf(const Program& program, const Slot* slot) {
  std::vector<std::string> names;
  for (size_t i = 0; slot != nullptr && i < slot->args.size(); ++i) {
    names.push_back(program.NameOf(slot->args[i]));
  }
  return names;
}

// Entries are the gradients Out@GRAD, results the wanted ones of X and then the other entries that
// are gradients of X; all without holes.
absl::Status FindBlock(const Program& program, const Op& op, SubBlock& block) {
  const std::vector<std::string> outside = NamesOf(program, op.FindInput("Out@GRAD"));
  AttrReader attrs(op);
  std::vector<std::string> inside = attrs.Strings(kInnerNames);
  INTERP_RETURN_IF_ERROR(attrs.status());
  if (inside.empty()) inside = outside;
  if (inside.size() != outside.size()) {
    return InvalidArgument("'Out@GRAD' has ", outside.size(), " arguments, '", kInnerNames,
                           "' has ", inside.size(), " names");
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    if (outside[i] == kEmptyVarName) continue;
    block.entries.push_back({inside[i], kOutGrad, static_cast<int>(i)});
  }
  const std::vector<std::string> x = NamesOf(program, op.FindInput("X"));
  const std::vector<std::string> x_grad = NamesOf(program, op.FindOutput("X@GRAD"));
  if (!x_grad.empty() && x_grad.size() != x.size()) {
    return InvalidArgument("'X@GRAD' has ", x_grad.size(), " arguments, 'X' has ", x.size());
  }
  absl::flat_hash_set<std::string> unwanted;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool wanted = i < x_grad.size() && x_grad[i] != kEmptyVarName;
    if (wanted) block.results.push_back(GradientName(x[i]));
    if (!wanted) unwanted.insert(GradientName(x[i]));
  }
  for (const std::string& name : block.results) unwanted.erase(name);
  for (const auto& entry : block.entries) {
    if (unwanted.erase(entry.name) > 0) block.results.push_back(entry.name);
  }
  return absl::OkStatus();
}

struct WhileGradAttrs {
  // By argument of Out@GRAD: the argument of Out that it is the gradient of, or -1.
  std::vector<int> out_of;
  std::vector<bool> written;  // whether the block's ops write it
};

bool WritesName(const Program& program, int32_t block, const std::string& name) {
  const VarId id = program.Find(name);
  if (id < 0 || block < 0 || block >= std::ssize(program.blocks)) return false;
  const std::vector<Op>& ops = program.blocks[block].ops;
  return std::any_of(ops.begin(), ops.end(),
                     [id](const Op& op) { return HasArgument(op.outputs, id); });
}

WhileGradAttrs ReadWhileGradAttrs(AttrReader& reader) {
  const std::vector<std::string> out = reader.InputNames("Out");
  WhileGradAttrs attrs;
  for (const std::string& name : reader.Strings(kInnerNames)) {
    const auto it = std::find_if(out.begin(), out.end(),
                                 [&](const std::string& o) { return GradientName(o) == name; });
    attrs.out_of.push_back(it == out.end() ? -1 : static_cast<int>(it - out.begin()));
    attrs.written.push_back(reader.program() == nullptr ||
                            WritesName(*reader.program(), SubBlockOf(reader.op()), name));
  }
  return attrs;
}

// The gradients that go into the block and come out of it, beside the variables outside.
class Trips {
 public:
  explicit Trips(KernelContext& ctx) : ctx_(ctx), block_(ctx.block()) {
    const absl::Span<Variable* const> given = ctx.input_variables(kOutGrad);
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == nullptr) continue;
      const std::vector<bool>& written = ctx.attrs<WhileGradAttrs>().written;
      given_.push_back({.outside = given[i],
                        .like = ForwardOf(i),
                        .written = i >= written.size() || written[i]});
    }
    const absl::Span<Variable* const> wanted = ctx.output_variables(kXGrad);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == nullptr) continue;
      wanted_.push_back({.x = ArgumentOrNull(ctx.input_variables(kX), i), .outside = wanted[i]});
    }
    for (size_t e = 0; e < given_.size(); ++e) {
      for (size_t r = 0; r < block_.num_results(); ++r) {
        if (&block_.entry(e) != &block_.result(r)) continue;
        given_[e].carried = true;
        if (r < wanted_.size()) wanted_[r].entry = static_cast<int>(e);
      }
    }
  }

  absl::Status Run(std::vector<StepRecord>& steps) {
    const bool ran = !steps.empty();
    for (size_t e = 0; e < given_.size(); ++e) {
      if (ran) given_[e].before = std::move(TypeBefore(steps.front(), e));
      INTERP_RETURN_IF_ERROR(Give(e, ran ? TypeAfter(steps.back(), e) : none_));
    }
    for (bool last = true; !steps.empty(); last = false) {
      for (size_t e = 0; !last && e < given_.size(); ++e) {
        INTERP_RETURN_IF_ERROR(GiveAgain(e, TypeAfter(steps.back(), e)));
      }
      INTERP_RETURN_IF_ERROR(block_.RunOn(steps.back()));
      steps.pop_back();
      for (size_t r = 0; r < wanted_.size(); ++r) INTERP_RETURN_IF_ERROR(Take(r));
    }
    for (size_t r = 0; r < wanted_.size(); ++r) INTERP_RETURN_IF_ERROR(Finish(r));
    return absl::OkStatus();
  }

 private:
  struct Given {
    const Variable* outside = nullptr;
    const Variable* like = nullptr;  // what it is the gradient of; null: not known
    bool carried = false;
    bool written = true;   // by ops of the block
    Variable value = {};   // as the next trip starts with it
    Variable before = {};  // the type of what it is the gradient of, when the loop started
  };
  struct Wanted {
    const Variable* x = nullptr;
    Variable* outside = nullptr;
    int entry = -1;  // that carries it
    GradientSum sum = {};
  };

  const Variable* ForwardOf(size_t gradient) const {
    const std::vector<int>& out_of = ctx_.attrs<WhileGradAttrs>().out_of;
    const int out = gradient < out_of.size() ? out_of[gradient] : -1;
    return out < 0 ? nullptr : ArgumentOrNull(ctx_.input_variables(kOut), static_cast<size_t>(out));
  }

  // Zeros stand for what no op has made (behind a branch that was not taken).
  absl::Status Give(size_t e, const Variable& type) {
    Given& given = given_[e];
    ShareValue(*given.outside, given.value);
    if (!HasValue(given.value)) {
      const bool known = given.like == nullptr || type.tensor.dtype != DType::kUndefined;
      INTERP_RETURN_IF_ERROR(FillZerosLike(ctx_, known ? type : *given.like, given.value));
    }
    ShareValue(given.value, block_.entry(e));
    return absl::OkStatus();
  }

  // The types of what entries are gradients of lie behind the values that the trip left: those
  // after it, then those before it.
  Variable& TypeAfter(StepRecord& step, size_t entry) {
    const size_t types = 2 * block_.num_entries();
    return step.values.size() < types ? none_ : step.values[step.values.size() - types + entry];
  }
  Variable& TypeBefore(StepRecord& step, size_t entry) {
    return TypeAfter(step, block_.num_entries() + entry);
  }

  // True also where nothing tells the shape of what the trip made.
  static bool IsOfShape(const Variable& gradient, const Variable& type) {
    return !gradient.array.empty() || gradient.selected_rows.has_value() ||
           type.tensor.dtype == DType::kUndefined || gradient.tensor.shape == type.tensor.shape;
  }

  // Before another trip, which made the result of that type: it may differ from trip to trip.
  absl::Status GiveAgain(size_t e, const Variable& type) {
    Given& given = given_[e];
    if (given.carried && (given.written || IsOfShape(block_.entry(e), type))) {
      return absl::OkStatus();
    }
    if (given.like != nullptr || type.tensor.dtype != DType::kUndefined) {
      given.value.DropValue();
      INTERP_RETURN_IF_ERROR(FillZerosLike(ctx_, type, given.value));
    }
    ShareValue(given.value, block_.entry(e));
    return absl::OkStatus();
  }

  absl::Status Take(size_t r) {
    if (wanted_[r].entry >= 0) return absl::OkStatus();
    Variable& made = block_.result(r);
    if (HasValue(made)) INTERP_RETURN_IF_ERROR(wanted_[r].sum.Add(ctx_, made));
    // A trip that makes none must not find that of another.
    made.DropValue();
    return absl::OkStatus();
  }

  absl::Status Finish(size_t r) {
    Wanted& wanted = wanted_[r];
    const Variable& made = wanted.entry >= 0 ? block_.result(r) : wanted.sum.value();
    if (HasValue(made)) {
      const Given* const given = wanted.entry < 0 ? nullptr : &given_[wanted.entry];
      if (given != nullptr && !given->written && !IsOfShape(made, given->before)) {
        return FillZerosLike(ctx_, given->before, *wanted.outside);
      }
      ShareValue(made, *wanted.outside);
    } else if (wanted.x != nullptr) {
      return FillZerosLike(ctx_, *wanted.x, *wanted.outside);
    }
    return absl::OkStatus();
  }

  KernelContext& ctx_;
  BlockRunner& block_;
  Variable none_ = {};          // the type of what is not known
  std::vector<Given> given_;    // by entry
  std::vector<Wanted> wanted_;  // by result, the first of them
};

absl::Status WhileGrad(KernelContext& ctx) {
  return Trips(ctx).Run(ctx.input_variable(kStepScopes).steps);
}

constexpr int kShapes =
    kOptional | kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout | kMayBeEmpty | kMayBeArray;
constexpr int kGradients =
    kOptional | kVariadic | kAnyDType | kMayBeEmpty | kMayBeArray | kMayBeRows;

INTERP_REGISTER_OP(OpDef{
    .type = "while_grad",
    .inputs =
        {{"X", kShapes}, {"Out", kShapes}, {"StepScopes", kTensorArray}, {"Out@GRAD", kGradients}},
    .outputs = {{"X@GRAD", kOptional | kVariadic | kMayBeArray | kMayBeRows}},
    .parse = ParseAttrs<WhileGradAttrs, ReadWhileGradAttrs>,
    .kernel_dtype = control_flow::NoKernelDType,
    .kernels = {{DType::kUndefined, WhileGrad}},
    .dynamic_outputs = true,
    .sub_block = FindBlock,
});

}  // namespace
}  // namespace interp
