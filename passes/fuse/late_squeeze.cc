#include "passes/fuse/late_squeeze.h"

#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/symbolic_shapes.h"
#include "passes/fuse/unread_ops.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr size_t kImageRank = 4;

// Ops that compute each element by itself, and read nothing else.
constexpr absl::string_view kByElement[] = {
    "abs",        "clip",       "cos",   "elu",        "exp",     "gelu", "hard_sigmoid",
    "hard_swish", "leaky_relu", "log",   "logsigmoid", "mish",    "pow",  "relu",
    "relu6",      "rsqrt",      "scale", "selu",       "sigmoid", "silu", "sin",
    "softplus",   "softsign",   "sqrt",  "square",     "swish",   "tanh"};
constexpr absl::string_view kOfTwo[] = {"elementwise_add", "elementwise_sub", "elementwise_mul",
                                        "elementwise_div", "elementwise_max", "elementwise_min",
                                        "elementwise_pow"};

constexpr absl::string_view kTurnRow = "turn_row";
constexpr int64_t kColumnAxis = 3;
constexpr int64_t kRowAxis = 2;  // of channels-first images; 1 of others

// The image that a sequence was squeezed from. One of one column is turned.
struct OneRow {
  VarId image = 0;
  int64_t axis = 0;    // of the row, in the image
  size_t squeeze = 0;  // the op that says how
};

// An attribute that counts dims of a tensor, from the end where it is negative.
std::optional<int64_t> AxisOf(const Op& op, int64_t rank) {
  AttrReader attrs(op);
  const int64_t axis = attrs.Long("axis", 0);
  if (!attrs.status().ok() || axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

class Squeezer {
 public:
  Squeezer(Program program, const PassContext& context)
      : fuser_(std::move(program), context.ops),
        registry_(context.ops),
        turns_(CanMake(kTurnRow, context)),
        shapes_(FindSymbolicShapes(fuser_.program(), fuser_.uses())) {}

  Program Run() && {
    const int count = static_cast<int>(fuser_.ops().size());
    for (int i = 0; i < count; ++i) Visit(i);
    return WithoutUnread(std::move(fuser_).TakeProgram(), registry_, squeezed_);
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }
  const VarUse& use(VarId id) const { return fuser_.uses()[id]; }

  void Visit(int index) {
    if (op(index).type == "squeeze2") Note(index);
    if (op(index).type == "unsqueeze2" && Undo(index)) return;
    const std::optional<int64_t> axis = AxisInImages(index);
    if (axis.has_value()) return Move(index, *axis);
    if (absl::c_any_of(EachArgument(op(index).inputs),
                       [this](VarId id) { return images_.contains(id); })) {
      fuser_.Replace({index}, WithImages(index));
    }
  }

  // The place of the row in images of rank 4 that `squeeze`, or its opposite, says.
  std::optional<int64_t> RowOf(const Op& squeeze) const {
    AttrReader attrs(squeeze);
    const std::vector<int64_t> axes = attrs.Ints("axes");
    if (axes.size() != 1 || !attrs.status().ok() || !OnlyInput(squeeze).has_value()) {
      return std::nullopt;
    }
    const int64_t axis = axes[0] < 0 ? axes[0] + int64_t{kImageRank} : axes[0];
    const int64_t last = turns_ ? kColumnAxis : kRowAxis;
    return axis >= 1 && axis <= last ? std::optional(axis) : std::nullopt;
  }

  void Note(int index) {
    const std::optional<int64_t> axis = RowOf(op(index));
    const std::optional<VarId> out = Fuser::Argument(op(index).outputs, "Out");
    if (!axis.has_value() || !out.has_value() || use(*out).writes != 1) return;
    const VarId x = *OnlyInput(op(index));
    const Var* const var = use(x).var;
    const std::optional<SymbolicShape>& shape = shapes_[x];
    const bool one_row = shape.has_value() && shape->size() == kImageRank && (*shape)[*axis] == 1;
    const bool declared = var != nullptr && var->dims.size() == kImageRank;
    if (!one_row || !declared || use(x).writes > 1 || !fuser_.IsStable(x, index)) return;
    const auto renamed = images_.find(x);
    OneRow row = {renamed == images_.end() ? x : renamed->second, *axis, squeezes_.size()};
    Op squeeze = op(index);
    squeeze.inputs.clear();
    squeeze.outputs.clear();
    if (*axis == kColumnAxis) {
      Var like = *var;
      std::swap(like.dims[kRowAxis], like.dims[kColumnAxis]);
      const VarId image = fuser_.Declare(fuser_.program().NameOf(x) + ".row", like);
      fuser_.PutBehind(index, MakeTurn(squeeze, row.image, image));
      squeezed_.push_back(image);
      row.image = image;
      row.axis = kRowAxis;
      SetAttr(squeeze, "axes", std::vector<int32_t>{static_cast<int32_t>(kRowAxis)});
    }
    squeezes_.push_back(std::move(squeeze));
    rows_[*out] = row;
    squeezed_.push_back(*out);
  }

  // Of the same part as `like`, which has no arguments.
  static Op MakeTurn(Op like, VarId x, VarId out) {
    like.type = std::string(kTurnRow);
    std::erase_if(like.attrs, [](const Attr& attr) { return attr.name == "axes"; });
    AddInput(like, "X", {x});
    AddOutput(like, "Out", {out});
    return like;
  }

  // Whether an unsqueeze2 gives the image again. Then that is read in its place from then on.
  bool Undo(int index) {
    const std::optional<int64_t> axis = RowOf(op(index));
    const std::optional<VarId> out = Fuser::Argument(op(index).outputs, "Out");
    if (!axis.has_value() || !out.has_value()) return false;
    const auto row = rows_.find(*OnlyInput(op(index)));
    const bool turned = *axis == kColumnAxis;
    if (row == rows_.end() || row->second.axis != (turned ? kRowAxis : *axis) ||
        !IsOfPartOf(index, row->second) || !fuser_.OthersAreUnused(index, "Out")) {
      return false;
    }
    if (use(*out).writes != 1 || use(*out).pinned() || !StaysFrom(row->second.image, index)) {
      return false;
    }
    if (turned) {
      fuser_.Replace({index}, MakeTurn(squeezes_[row->second.squeeze], row->second.image, *out));
    } else {
      images_[*out] = row->second.image;
      fuser_.Drop(index);
    }
    return true;
  }

  // True when the image, which may be one that this pass has made, keeps its value.
  bool StaysFrom(VarId image, int index) const {
    return image >= static_cast<VarId>(fuser_.uses().size()) || fuser_.IsStable(image, index);
  }

  bool IsOfPartOf(int index, const OneRow& row) const {
    return IsOfSamePart(op(index), squeezes_[row.squeeze]);
  }

  // The row that all of these are squeezed from images at; null where one is not.
  template <typename Ids>
  const OneRow* CommonRow(int index, const Ids& ids) const {
    const OneRow* common = nullptr;
    for (const VarId id : ids) {
      const auto row = rows_.find(id);
      if (row == rows_.end() || !IsOfPartOf(index, row->second) ||
          !StaysFrom(row->second.image, index)) {
        return nullptr;
      }
      if (common != nullptr && common->axis != row->second.axis) return nullptr;
      common = &row->second;
    }
    return common;
  }

  // The place of the row in the images that the op could compute on instead of sequences; nullopt
  // for an op that is not to.
  std::optional<int64_t> AxisInImages(int index) const {
    const OneRow* const row = RowOfOperands(index);
    if (row == nullptr) return std::nullopt;
    for (const Slot& slot : op(index).outputs) {
      for (const VarId id : slot.args) {
        if (!IsSequence(slot.name)) continue;
        const Var* const var = use(id).var;
        const bool known = var != nullptr && var->kind == VarKind::kLodTensor &&
                           var->dims.size() == kImageRank - 1 && use(id).writes == 1 &&
                           !use(id).persistable && !use(id).fed;
        if (!known) return std::nullopt;
      }
    }
    return row->axis;
  }

  static bool IsSequence(absl::string_view slot) {
    return slot == "X" || slot == "Out" || slot == "Y";
  }

  const OneRow* RowOfOperands(int index) const {
    const Op& o = op(index);
    if (!CheckNothingFused(o).ok()) return nullptr;
    const std::optional<VarId> x = Fuser::Argument(o.inputs, "X");
    if (absl::c_linear_search(kByElement, o.type)) {
      return OnlyInput(o).has_value() ? CommonRow(index, ArgIds{*x}) : nullptr;
    }
    if (absl::c_linear_search(kOfTwo, o.type)) return RowOfTwo(index);
    if (o.type == "batch_norm") {
      const OneRow* const row = x.has_value() ? CommonRow(index, ArgIds{*x}) : nullptr;
      const bool first = AttrReader(o).String("data_layout", "NCHW") == "NCHW";
      return row != nullptr && row->axis == kRowAxis && first && OnlyNormalizes(fuser_, o)
                 ? row
                 : nullptr;
    }
    const bool joins = o.type == "concat" || o.type == "split";
    if (!joins || !AxisOf(o, kImageRank - 1).has_value()) return nullptr;
    const Slot* const operands = o.FindInput("X");
    const bool cuts_at_negative = o.type == "split" && AttrReader(o).Long("axis", 0) < 0;
    return ReadsOnly(o, {"X"}) && operands != nullptr && !cuts_at_negative
               ? CommonRow(index, operands->args)
               : nullptr;
  }

  const OneRow* RowOfTwo(int index) const {
    const Op& o = op(index);
    const std::optional<VarId> x = Fuser::Argument(o.inputs, "X");
    const std::optional<VarId> y = Fuser::Argument(o.inputs, "Y");
    if (!x.has_value() || !y.has_value()) return nullptr;
    AttrReader attrs(o);
    const int64_t axis = attrs.Int("axis", -1);
    if (!attrs.status().ok()) return nullptr;
    if (rows_.contains(*y)) return axis <= 0 ? CommonRow(index, ArgIds{*x, *y}) : nullptr;
    const OneRow* const row = CommonRow(index, ArgIds{*x});
    const Var* const other = fuser_.Parameter(y);
    if (row == nullptr || other == nullptr) return nullptr;
    const bool number = other->dims == std::vector<int64_t>{1};
    const bool by_channel = other->dims.size() == 1 && axis == 1 && row->axis == kRowAxis;
    return (number && axis == -1) || by_channel ? row : nullptr;
  }

  // Puts the op that computes on images in the place of the one at `index`, and behind it what
  // squeezes its results.
  void Move(int index, int64_t axis) {
    const std::vector<Slot> inputs = op(index).inputs;
    const std::vector<Slot> outputs = op(index).outputs;
    const bool joins = op(index).type == "concat" || op(index).type == "split";
    const int64_t along = joins ? *AxisOf(op(index), kImageRank - 1) : 0;
    size_t squeeze = 0;
    Op moved = fuser_.TakeForFusion(index);
    for (const Slot& slot : inputs) {
      ArgIds args = slot.args;
      for (VarId& id : args) {
        const auto row = rows_.find(id);
        if (row == rows_.end() || !IsSequence(slot.name)) continue;
        id = row->second.image;
        squeeze = row->second.squeeze;
      }
      AddInput(moved, slot.name, args);
    }
    for (const Slot& slot : outputs) {
      ArgIds args = slot.args;
      for (VarId& id : args) {
        if (IsSequence(slot.name)) id = ImageBehind(index, id, {.axis = axis, .squeeze = squeeze});
      }
      AddOutput(moved, slot.name, args);
    }
    if (joins) SetAttr(moved, "axis", static_cast<int32_t>(along >= axis ? along + 1 : along));
    fuser_.Replace({index}, std::move(moved));
  }

  // Declares the image of a sequence that the op at `index` gives, and squeezes it there.
  VarId ImageBehind(int index, VarId sequence, OneRow row) {
    Var like = *use(sequence).var;
    like.dims.insert(like.dims.begin() + row.axis, 1);
    row.image = fuser_.Declare(fuser_.program().NameOf(sequence) + ".image", like);
    Op squeeze = squeezes_[row.squeeze];
    AddInput(squeeze, "X", {row.image});
    AddOutput(squeeze, "Out", {sequence});
    fuser_.PutBehind(index, std::move(squeeze));
    rows_[sequence] = row;
    squeezed_.push_back(sequence);
    return row.image;
  }

  // The op at `index`, reading images in place of what unsqueezes them.
  Op WithImages(int index) {
    std::vector<Slot> inputs = op(index).inputs;
    std::vector<Slot> outputs = op(index).outputs;
    Op renamed = fuser_.TakeForFusion(index);
    for (VarId& id : EachArgument(inputs)) {
      const auto image = images_.find(id);
      if (image != images_.end()) id = image->second;
    }
    renamed.inputs = std::move(inputs);
    renamed.outputs = std::move(outputs);
    return renamed;
  }

  Fuser fuser_;
  const OpRegistry& registry_;
  const bool turns_;
  const std::vector<std::optional<SymbolicShape>> shapes_;
  std::vector<Op> squeezes_;                  // without arguments
  absl::flat_hash_map<VarId, OneRow> rows_;   // by sequence
  absl::flat_hash_map<VarId, VarId> images_;  // by what an unsqueeze2 that is gone gave
  std::vector<VarId> squeezed_;
};

}  // namespace

absl::StatusOr<Program> LateSqueeze(Program program, const PassContext& context) {
  if (!HasOpOf(program, {"squeeze2"})) return program;
  const bool trains = absl::c_any_of(program.blocks[0].ops,
                                     [](const Op& op) { return absl::EndsWith(op.type, "_grad"); });
  if (trains) return program;
  return Squeezer(std::move(program), context).Run();
}

}  // namespace interp
