#include "passes/train/optimizer.h"

#include <algorithm>

#include "core/edit_op.h"
#include "core/op_role.h"
#include "passes/make_op.h"
#include "passes/train/learning_rate.h"
#include "passes/train/optimizer_kind.h"
#include "passes/train/state_writer.h"

namespace interp {
namespace {

bool Is16Bit(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// A parameter and its gradient, which changes on the way to the optimizer.
struct Item {
  Var param;
  Var grad;
};

class Appender {
 public:
  Appender(Program& main, Program& startup, OptimizerValues values)
      : writer_(main, startup), values_(std::move(values)) {}

  absl::Status Run(const std::vector<SourceGradient>& gradients) {
    INTERP_RETURN_IF_ERROR(Collect(gradients));
    INTERP_RETURN_IF_ERROR(MakeLearningRate());
    Clip();
    for (Item& item : items_) AddDecay(item);
    for (const Item& item : items_) Update(item);
    for (Op& op : finish_) writer_.Add(std::move(op));
    return absl::OkStatus();
  }

 private:
  absl::Status Collect(const std::vector<SourceGradient>& gradients) {
    for (const SourceGradient& pair : gradients) {
      const Var* param = writer_.Find(pair.source);
      if (param == nullptr || !IsFloating(param->dtype)) {
        return InvalidArgument("parameter '", writer_.NameOf(pair.source),
                               "' is not declared as a tensor of floats in block 0");
      }
      if (std::any_of(param->dims.begin(), param->dims.end(), [](int64_t d) { return d < 0; })) {
        return InvalidArgument("parameter '", writer_.NameOf(pair.source),
                               "' has no fixed shape, which its states would take");
      }
      Item item{.param = *param, .grad = {}};
      const Var* grad = writer_.Find(pair.gradient);
      if (grad == nullptr) {
        return InvalidArgument("gradient '", writer_.NameOf(pair.gradient),
                               "' is not declared in block 0");
      }
      item.grad = *grad;
      items_.push_back(std::move(item));
    }
    std::sort(items_.begin(), items_.end(), [this](const Item& a, const Item& b) {
      return writer_.NameOf(a.param.id) < writer_.NameOf(b.param.id);
    });
    if (items_.empty()) return InvalidArgument("there is no parameter to update");
    return absl::OkStatus();
  }

  static Var TensorLike(Var like) {
    like.kind = VarKind::kLodTensor;
    return like;
  }

  // The op as one of the update of `item`.
  Op Marked(Op op, const Item& item) const {
    SetRole(op, kOptimizeRole);
    SetAttr(op, "op_role_var",
            std::vector<std::string>{writer_.NameOf(item.param.id), writer_.NameOf(item.grad.id)});
    return op;
  }
  void Add(const Item& item, Op op) { writer_.Add(Marked(std::move(op), item)); }
  void AddSum(const Item& item, const ArgIds& x, VarId out) {
    Add(item, MakeOp("sum", {{"X", x}}, {{"Out", {out}}}));
  }

  absl::Status MakeLearningRate() {
    const bool wide = items_[0].param.dtype == DType::kFloat64;
    const Var like{.dtype = wide ? DType::kFloat64 : DType::kFloat32, .dims = {}};
    if (HasSchedule(values_)) {
      INTERP_ASSIGN_OR_RETURN(rate_, AppendSchedule(writer_, values_, like.dtype));
      return absl::OkStatus();
    }
    const std::string name = writer_.FreshName("learning_rate");
    rate_ = writer_.DeclareState(name, like, values_["learning_rate"]).id;
    return absl::OkStatus();
  }

  void Clip() {
    if (values_.Has("grad_clip_value")) {
      const float bound = static_cast<float>(values_["grad_clip_value"]);
      for (Item& item : items_) ClipEach("clip", {{"max", bound}, {"min", -bound}}, item);
    } else if (values_.Has("grad_clip_norm")) {
      const float norm = static_cast<float>(values_["grad_clip_norm"]);
      for (Item& item : items_) ClipEach("clip_by_norm", {{"max_norm", norm}}, item);
    } else if (values_.Has("grad_clip_global_norm")) {
      ClipTogether(values_["grad_clip_global_norm"]);
    }
  }

  void ClipEach(absl::string_view type, std::vector<Attr> attrs, Item& item) {
    const VarId unclipped = item.grad.id;
    item.grad = writer_.DeclareTemporary(type, ".tmp_0", item.grad);
    Op clip = MakeUnaryOp(type, unclipped, item.grad.id);
    clip.attrs = std::move(attrs);
    Add(item, std::move(clip));
  }

  // gradient *= limit / max(limit, norm of all gradients)
  void ClipTogether(double limit) {
    ArgIds squares;
    for (const Item& item : items_) squares.push_back(AddSquaredNorm(item));
    const Item& last = items_.back();
    const Var one{.dtype = last.grad.dtype, .dims = {1}};
    const VarId sum = writer_.DeclareTemporary("add_n", ".tmp_0", one).id;
    AddSum(last, squares, sum);
    const VarId norm = writer_.DeclareTemporary("sqrt", ".tmp_0", one).id;
    Add(last, MakeUnaryOp("sqrt", sum, norm));
    const VarId bound = writer_.DeclareTemporary("fill_constant", ".tmp_0", one).id;
    Add(last, FillConstant(bound, one, limit));
    const VarId larger = writer_.DeclareTemporary("elementwise_max", "", one).id;
    Add(last, MakeBinaryOp("elementwise_max", bound, norm, larger));
    const VarId factor = writer_.DeclareTemporary("elementwise_div", "", one).id;
    Add(last, MakeBinaryOp("elementwise_div", bound, larger, factor));
    for (const Item& item : items_) {
      Add(item, MakeBinaryOp("elementwise_mul", item.grad.id, factor, item.grad.id));
    }
  }

  VarId AddSquaredNorm(const Item& item) {
    VarId values = item.grad.id;
    if (item.grad.kind == VarKind::kSelectedRows) {
      const VarId merged = writer_.DeclareTemporary("merge_selected_rows", ".tmp_0", item.grad).id;
      Add(item, MakeUnaryOp("merge_selected_rows", values, merged));
      values =
          writer_.DeclareTemporary("get_tensor_from_selected_rows", ".tmp_0", TensorLike(item.grad))
              .id;
      Add(item, MakeUnaryOp("get_tensor_from_selected_rows", merged, values));
    }
    const Var one{.dtype = item.grad.dtype, .dims = {1}};
    const VarId square = writer_.DeclareTemporary("squared_l2_norm", ".tmp_0", one).id;
    Add(item, MakeUnaryOp("squared_l2_norm", values, square));
    return square;
  }

  // gradient += coefficient * parameter, or its sign. momentum does the former itself.
  void AddDecay(Item& item) {
    const bool l1 = values_.Has("l1_decay");
    const bool l2 = !values_.kind->own_decay && values_.Has("weight_decay");
    if (!l1 && (!l2 || values_.kind->type == "momentum")) return;
    VarId term = item.param.id;
    if (l1) {
      const VarId sign = writer_.DeclareTemporary("_generated_var", "", item.param).id;
      Add(item, MakeUnaryOp("sign", term, sign));
      term = sign;
    }
    const VarId scaled = writer_.DeclareTemporary("_generated_var", "", item.param).id;
    Add(item, MakeScaleOp(term, scaled, values_[l1 ? "l1_decay" : "weight_decay"], 0));
    const VarId before = item.grad.id;
    VarId sum = before;
    Var grad = item.grad;
    if (item.grad.kind == VarKind::kSelectedRows) {
      grad =
          writer_.Declare(absl::StrCat(writer_.NameOf(before), "@NEWGRAD@"), TensorLike(item.grad));
      sum = grad.id;
    }
    AddSum(item, {before, scaled}, sum);
    item.grad = std::move(grad);
  }

  void Update(const Item& item) {
    Op op =
        MakeOp(values_.kind->type,
               {{"Param", {item.param.id}}, {"Grad", {item.grad.id}}, {"LearningRate", {rate_}}},
               {{"ParamOut", {item.param.id}}});
    VarId named = item.param.id;
    if (Is16Bit(item.param.dtype) && values_.kind->multi_precision &&
        values_["multi_precision"] != 0) {
      named = writer_.DeclareMaster(item.param).id;
      AddInput(op, "MasterParam", {named});
      AddOutput(op, "MasterParamOut", {named});
    }
    for (const OptimizerState& state : values_.kind->states) AddState(item, named, state, op);
    SetOptions(op);
    Add(item, std::move(op));
  }

  void AddState(const Item& item, VarId named, const OptimizerState& state, Op& op) {
    const Var like{.dtype = Is16Bit(item.param.dtype) ? DType::kFloat32 : item.param.dtype,
                   .dims = state.scalar ? std::vector<int64_t>{1} : item.param.dims};
    const double initial = state.initial.empty() ? 0.0 : values_[state.initial];
    const std::string name =
        writer_.FreshName(absl::StrCat(writer_.NameOf(named), "_", state.suffix));
    const Var var = writer_.DeclareState(name, like, initial);
    AddInput(op, state.in, {var.id});
    if (!state.out.empty()) {
      AddOutput(op, state.out, {var.id});
      return;
    }
    finish_.push_back(Marked(MakeScaleOp(var.id, var.id, initial, 0), item));
  }

  void SetOptions(Op& op) const {
    for (const OptimizerOption& option : values_.kind->options) {
      if (option.attr.empty()) continue;
      if (option.form == OptionForm::kFlag) {
        SetAttr(op, option.attr, values_[option.name] != 0);
      } else if (option.attr == "lars_weight_decay") {
        SetAttr(op, option.attr, std::vector<float>{static_cast<float>(values_[option.name])});
      } else {
        SetAttr(op, option.attr, static_cast<float>(values_[option.name]));
      }
    }
    if (values_.kind->multi_precision) {
      SetAttr(op, "multi_precision", values_["multi_precision"] != 0);
    }
    if (values_.kind->type == "adamw") SetAttr(op, "with_decay", true);
    if (values_.kind->type != "momentum") return;
    const bool decays = values_.Has("weight_decay");
    SetAttr(op, "regularization_method", std::string(decays ? "l2_decay" : ""));
    SetAttr(op, "regularization_coeff",
            decays ? static_cast<float>(values_["weight_decay"]) : 0.0F);
  }

  StateWriter writer_;
  const OptimizerValues values_;
  std::vector<Item> items_;
  VarId rate_ = -1;
  std::vector<Op> finish_;  // after all updates
};

}  // namespace

absl::Status AppendOptimizer(Program& main, Program& startup,
                             const std::vector<SourceGradient>& gradients,
                             const OptimizerSpec& spec) {
  INTERP_ASSIGN_OR_RETURN(OptimizerValues values, ReadOptimizer(spec));
  if (main.blocks.empty() || startup.blocks.empty()) {
    return InvalidArgument("a program without blocks has no place for an optimizer");
  }
  return Appender(main, startup, std::move(values)).Run(gradients);
}

}  // namespace interp
