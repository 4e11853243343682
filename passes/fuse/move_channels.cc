#include "passes/fuse/move_channels.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/uncertain_ranks.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr absl::string_view kToLast = "move_channels_last";
constexpr absl::string_view kToFirst = "move_channels_first";
constexpr absl::string_view kTransposes[] = {"transpose2", "transpose"};
constexpr absl::string_view kFlatten = "flatten_contiguous_range";
constexpr absl::string_view kShapes = "ShapeTensor";

std::vector<int64_t> IntsOf(const Op& op, absl::string_view name) {
  AttrReader attrs(op);
  std::vector<int64_t> values = attrs.Ints(name);
  return attrs.status().ok() ? values : std::vector<int64_t>();
}

bool IsImageRank(size_t rank) { return rank == 4 || rank == 5; }

std::vector<int64_t> AxesToLast(size_t rank) {
  return rank == 4 ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 3, 4, 1};
}
std::vector<int64_t> AxesToFirst(size_t rank) {
  return rank == 4 ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 4, 1, 2, 3};
}

// N, C, spatial as N, spatial, C.
template <typename Dims>
Dims ChannelsLast(Dims dims) {
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

// The product of the dims behind N and C, nullopt where one is unknown.
std::optional<int64_t> PixelsOf(const std::vector<int64_t>& image) {
  int64_t pixels = 1;
  for (size_t i = 2; i < image.size(); ++i) {
    if (image[i] <= 0 || __builtin_mul_overflow(pixels, image[i], &pixels)) return std::nullopt;
  }
  return pixels;
}

// Whether `dim`, as a reshape asks for it, is the dimension in front of it, declared as `before`.
bool Keeps(int64_t dim, int64_t before) { return dim == 0 || (dim > 0 && dim == before); }

// Whether a reshape between an image and N, C, L keeps batch and channels: two of batch, channels
// and pixels by themselves, the third by the number of elements. `asked` begins with the first two
// entries of its shape, `before` with the dims they take the place of.
bool KeepsRows(const std::vector<int64_t>& asked, const std::vector<int64_t>& image,
               const std::vector<int64_t>& before, int64_t pixels_of_rows) {
  const std::optional<int64_t> pixels = PixelsOf(image);
  const bool same_pixels = pixels.has_value() && *pixels == pixels_of_rows;
  const bool same_batch = Keeps(asked[0], before[0]);
  const bool same_channels = Keeps(asked[1], before[1]);
  return (same_batch && same_channels) || (same_pixels && (same_batch || same_channels));
}

class ChannelMover {
 public:
  ChannelMover(Program program, const OpRegistry& ops)
      : fuser_(std::move(program), ops), uncertain_(FindUncertainRanks(fuser_.program())) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (!fuser_.IsGone(i) && absl::c_linear_search(kTransposes, op(i).type)) TryTranspose(i);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  void TryTranspose(int index) {
    const std::vector<int64_t> axes = IntsOf(op(index), "axis");
    if (!ReadsOnly(op(index), {"X"}) || !fuser_.GivesOutAlone(index)) return;
    if (IsImageRank(axes.size())) {
      if (axes == AxesToLast(axes.size())) Rename(index, kToLast);
      if (axes == AxesToFirst(axes.size())) Rename(index, kToFirst);
    } else if (axes == std::vector<int64_t>{0, 2, 1}) {
      if (!TryToRows(index)) TryToImage(index);
    }
  }

  void Rename(int index, absl::string_view type) {
    const std::optional<VarId> x = Fuser::Argument(op(index).inputs, "X");
    const std::optional<VarId> out = Fuser::Argument(op(index).outputs, "Out");
    if (!x.has_value() || !out.has_value()) return;
    const std::vector<int64_t>* const dims = DimsOf(*x);
    if (dims == nullptr || !IsImageRank(dims->size())) return;
    fuser_.Replace({index}, Move(index, type, *x, *out));
  }

  Op Move(int index, absl::string_view type, VarId x, VarId out) {
    Op move = fuser_.TakeAs(type, index);
    AddInput(move, "X", {x});
    AddOutput(move, "Out", {out});
    return move;
  }

  // A flattened image and the transpose that alone reads it.
  bool TryToRows(int transpose) {
    const std::optional<VarId> flat = Fuser::Argument(op(transpose).inputs, "X");
    const std::optional<VarId> out = Fuser::Argument(op(transpose).outputs, "Out");
    if (!flat.has_value() || !out.has_value() || fuser_.uses()[*flat].writes != 1) return false;
    const int flatten = fuser_.uses()[*flat].first;
    if (flatten < 0 || flatten >= transpose || fuser_.IsGone(flatten)) return false;
    if (fuser_.OnlyReader(flatten, "Out") != transpose || !fuser_.GivesOutAlone(flatten))
      return false;
    const std::optional<VarId> x = Fuser::Argument(op(flatten).inputs, "X");
    if (!x.has_value() || !Flattens(op(flatten), *x, *flat)) return false;
    const VarId moved = DeclareMoved(*x);
    const bool flattens = op(flatten).type == kFlatten;
    Op rows;
    if (flattens) {
      rows = fuser_.TakeAs(kFlatten, transpose);
      SetAttr(rows, "start_axis", int32_t{1});
      SetAttr(rows, "stop_axis", static_cast<int32_t>(DimsOf(*x)->size()) - 2);
      AddInput(rows, "X", {moved});
    } else {
      rows = Turned(flatten, moved, (*DimsOf(*x))[1]);
    }
    AddOutput(rows, "Out", {*out});
    fuser_.PutBehind(flatten, Move(flattens ? flatten : transpose, kToLast, *x, moved));
    fuser_.Replace({flatten, transpose}, std::move(rows));
    return true;
  }

  // The reshape at that position for an X whose channels, as many as declared, come last.
  Op Turned(int reshape, VarId x, int64_t channels) {
    std::vector<int64_t> shape = ShapeOf(op(reshape));
    if (shape[1] == 0) shape[1] = channels;
    Op turned = fuser_.TakeForFusion(reshape);
    SetAttr(turned, "shape", Narrowed(ChannelsLast(std::move(shape))));
    AddInput(turned, "X", {x});
    for (const Slot& slot : op(reshape).inputs) {
      if (slot.name == kShapes && !slot.args.empty()) {
        AddInput(turned, slot.name, ChannelsLast(slot.args));
      }
    }
    return turned;
  }

  // The shape that a reshape asks for, -1 where a tensor gives what nobody knows. Empty: it is no
  // reshape, or one tensor gives all.
  std::vector<int64_t> ShapeOf(const Op& op) const {
    std::vector<int64_t> shape = IntsOf(op, "shape");
    if (op.type != "reshape2" && op.type != "reshape") return {};
    for (const Slot& slot : op.inputs) {
      if (slot.name == "X" || slot.args.empty()) continue;
      if (slot.name != kShapes || slot.args.size() != shape.size()) return {};
      for (size_t i = 0; i < shape.size(); ++i) {
        const VarUse& use = fuser_.uses()[slot.args[i]];
        if (use.block != 0 || use.writes > 1) return {};
        // A zero says which dimension of X is meant by where it stands.
        if (shape[i] != -1 && (shape[i] == 0 || !IsNumber(slot.args[i], shape[i]))) return {};
      }
    }
    return shape;
  }

  // Whether a fill_constant, and nothing else, makes the variable that number.
  bool IsNumber(VarId id, int64_t number) const {
    const VarUse& use = fuser_.uses()[id];
    if (use.block != 0 || use.writes != 1 || use.read_first || use.pinned()) return false;
    const Op& fill = op(use.first);
    AttrReader attrs(fill);
    const std::string text = attrs.String("str_value", "");
    const bool is_number = text.empty() ? attrs.Float("value", -1) == static_cast<float>(number)
                                        : text == absl::StrCat(number);
    const auto is_empty = [](const Slot& slot) { return slot.args.empty(); };
    return fill.type == "fill_constant" && absl::c_all_of(fill.inputs, is_empty) && is_number &&
           attrs.status().ok();
  }

  // A variable for an image whose channels were moved.
  VarId DeclareMoved(VarId image) {
    Var like = *fuser_.uses()[image].var;
    like.dims = ChannelsLast(std::move(like.dims));
    return fuser_.Declare(absl::StrCat(fuser_.program().NameOf(image), "_rows"), like);
  }

  // Whether the op makes N, C, L of image `x`.
  bool Flattens(const Op& op, VarId x, VarId flat) const {
    const std::vector<int64_t>* const image = DimsOf(x);
    const std::vector<int64_t>* const rows = DimsOf(flat);
    if (image == nullptr || !IsImageRank(image->size())) return false;
    if (op.type == kFlatten) {
      AttrReader attrs(op);
      const int64_t rank = std::ssize(*image);
      const int64_t start = attrs.Int("start_axis", 1);
      const int64_t stop = attrs.Int("stop_axis", 1);
      return attrs.status().ok() && start == 2 && (stop == -1 || stop == rank - 1);
    }
    const std::vector<int64_t> shape = ShapeOf(op);
    if (shape.size() != 3 || rows == nullptr || rows->size() != 3 || shape[2] == 0) return false;
    if (shape[1] == 0 && (*image)[1] <= 0) return false;
    return KeepsRows(shape, *image, *image, shape[2] > 0 ? shape[2] : (*rows)[2]);
  }

  // Transposed rows and the reshape to an image that alone reads them.
  bool TryToImage(int transpose) {
    const std::optional<VarId> x = Fuser::Argument(op(transpose).inputs, "X");
    const std::optional<int> reshape = fuser_.OnlyReader(transpose, "Out");
    if (!x.has_value() || !reshape.has_value() || fuser_.IsGone(*reshape)) return false;
    if (!fuser_.GivesOutAlone(*reshape)) return false;
    const std::optional<VarId> out = Fuser::Argument(op(*reshape).outputs, "Out");
    if (!out.has_value() || !fuser_.IsStable(*x, transpose) || !MakesImage(*reshape, *x, *out)) {
      return false;
    }
    const VarId rows = DeclareMoved(*out);
    Op cut = Turned(*reshape, *x, DimsOf(*x)->back());
    AddOutput(cut, "Out", {rows});
    fuser_.PutBehind(*reshape, Move(transpose, kToFirst, rows, *out));
    fuser_.Replace({transpose, *reshape}, std::move(cut));
    return true;
  }

  static std::vector<int32_t> Narrowed(const std::vector<int64_t>& dims) {
    return {dims.begin(), dims.end()};
  }

  // Whether the reshape makes an image of N, C, L, which is `x` transposed.
  bool MakesImage(int reshape, VarId x, VarId out) const {
    const std::vector<int64_t>* const rows = DimsOf(x);
    const std::vector<int64_t>* const image = DimsOf(out);
    const std::vector<int64_t> shape = ShapeOf(op(reshape));
    if (rows == nullptr || image == nullptr || rows->size() != 3 || !IsImageRank(shape.size()) ||
        image->size() != shape.size()) {
      return false;
    }
    if (absl::c_linear_search(absl::MakeConstSpan(shape).subspan(2), 0)) return false;
    if (shape[1] == 0 && rows->back() <= 0) return false;
    std::vector<int64_t> known = shape;
    for (size_t i = 2; i < known.size(); ++i) {
      if (known[i] < 0) known[i] = (*image)[i];
    }
    const std::vector<int64_t> before = {(*rows)[0], (*rows)[2], (*rows)[1]};
    return KeepsRows(shape, known, before, before[2]);
  }

  // Declared dims; null where a name is used for several values, as it declares one of them, and
  // where a run may find another rank.
  const std::vector<int64_t>* DimsOf(VarId id) const {
    const VarUse& use = fuser_.uses()[id];
    const bool known = use.var != nullptr && use.writes <= 1 && !uncertain_[id];
    return known ? &use.var->dims : nullptr;
  }

  Fuser fuser_;
  const std::vector<bool> uncertain_;  // by VarId
};

}  // namespace

absl::StatusOr<Program> MoveChannels(Program program, const PassContext& context) {
  if (!HasOpOf(program, kTransposes) || !CanMake(kToLast, context)) return program;
  return ChannelMover(std::move(program), context.ops).Run();
}

}  // namespace interp
