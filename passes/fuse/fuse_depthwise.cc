#include "passes/fuse/fuse_depthwise.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/fused_forms.h"
#include "core/program_print.h"
#include "passes/fuse/fuse_conv.h"
#include "passes/fuse/fusion.h"

namespace interp {
namespace {

constexpr absl::string_view kPair = "fused_pointwise_depthwise";
constexpr absl::string_view kPairConvs[] = {"conv2d", "depthwise_conv2d", kFusedConv2d};
constexpr int64_t kFewestChannels = 16;  // the widest vector

// The attributes of a convolution that say how its window slides.
struct Slides {
  std::vector<int64_t> strides;
  std::vector<int64_t> paddings;
  std::vector<int64_t> dilations;
  int64_t groups = 1;
  std::string format;
  std::string device;
  bool ok = false;
};

Slides SlidesOf(const Op& op) {
  AttrReader attrs(op);
  Slides slides;
  slides.strides = attrs.Ints("strides");
  slides.paddings = attrs.Ints("paddings");
  slides.dilations = attrs.Ints("dilations");
  slides.groups = attrs.Int("groups", 1);
  slides.format = attrs.String("data_format", "NCHW") == "NHWC" ? "NHWC" : "NCHW";
  slides.device = attrs.String("op_device", "");
  slides.ok = attrs.status().ok();
  return slides;
}

bool AllAre(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [=](int64_t v) { return v == wanted; });
}

class DepthwiseFuser {
 public:
  DepthwiseFuser(Program program, const OpRegistry& ops) : fuser_(std::move(program), ops) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (fuser_.IsGone(i) || !IsPointwise(i)) continue;
      const std::optional<int> next = fuser_.OnlyReader(i, "Output");
      if (next.has_value() && !fuser_.IsGone(*next) && IsDepthwise(*next) &&
          Fuser::Argument(op(*next).inputs, "Input") == Fuser::Argument(op(i).outputs, "Output") &&
          AreAlike(i, *next)) {
        fuser_.Replace({i, *next}, MakePair(i, *next));
      }
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  bool AreAlike(int first, int second) const {
    const Slides a = SlidesOf(op(first));
    const Slides b = SlidesOf(op(second));
    return a.format == b.format && a.device == b.device;
  }

  // A convolution of float32 whose other inputs are parameters; the dims of its filter.
  const std::vector<int64_t>* FilterOf(int index) const {
    const Op& conv = op(index);
    const bool known = absl::c_linear_search(kPairConvs, conv.type);
    if (!known || (conv.type != kFusedConv2d && IsFusedConv(conv))) return nullptr;
    const std::optional<VarId> output = Fuser::Argument(conv.outputs, "Output");
    if (!output.has_value() || !Fuser::Argument(conv.inputs, "Input").has_value()) return nullptr;
    const Var* const image = fuser_.uses()[*output].var;
    if (image == nullptr || image->dtype != DType::kFloat32) return nullptr;
    for (const Slot& slot : conv.inputs) {
      if (slot.name == "Input" || slot.args.empty()) continue;
      if (slot.name == "ResidualData") return nullptr;
      const Var* const parameter = fuser_.Constant(Fuser::Argument(conv.inputs, slot.name));
      if (parameter == nullptr || parameter->dtype != DType::kFloat32) return nullptr;
    }
    const Var* const filter = fuser_.Constant(Fuser::Argument(conv.inputs, "Filter"));
    return filter != nullptr && filter->dims.size() == 4 ? &filter->dims : nullptr;
  }

  bool IsPointwise(int index) const {
    const std::vector<int64_t>* const filter = FilterOf(index);
    if (filter == nullptr || (*filter)[2] != 1 || (*filter)[3] != 1) return false;
    const Slides slides = SlidesOf(op(index));
    return slides.ok && slides.groups == 1 && AllAre(slides.strides, 1) &&
           AllAre(slides.paddings, 0) &&
           fuser_.IsStable(*Fuser::Argument(op(index).inputs, "Input"), index);
  }

  bool IsDepthwise(int index) const {
    const std::vector<int64_t>* const filter = FilterOf(index);
    if (filter == nullptr || (*filter)[1] != 1 || (*filter)[2] != (*filter)[3]) return false;
    if ((*filter)[0] < kFewestChannels || ((*filter)[2] != 3 && (*filter)[2] != 5)) return false;
    const Slides slides = SlidesOf(op(index));
    const bool strides = AllAre(slides.strides, 1) || AllAre(slides.strides, 2);
    return slides.ok && slides.groups == (*filter)[0] && strides && AllAre(slides.dilations, 1);
  }

  Op MakePair(int pointwise, int depthwise) {
    Op pair = fuser_.TakeForFusion(pointwise);
    pair.type = std::string(kPair);
    for (const Slot& slot : op(pointwise).inputs) {
      if (!slot.args.empty()) AddInput(pair, slot.name, slot.args);
    }
    for (const Slot& slot : op(depthwise).inputs) {
      if (slot.name == "Input" || slot.args.empty()) continue;
      AddInput(pair, absl::StrCat("Depthwise", slot.name), slot.args);
    }
    AddOutput(pair, "Output", {*Fuser::Argument(op(depthwise).outputs, "Output")});
    for (const Attr& attr : op(depthwise).attrs) {
      if (IsProvenanceAttr(attr)) continue;
      SetAttr(pair, absl::StrCat("depthwise_", attr.name), attr.value);
    }
    return pair;
  }

  Fuser fuser_;
};

}  // namespace

absl::StatusOr<Program> FuseDepthwise(Program program, const PassContext& context) {
  if (!CanMake(kPair, context) || !HasOpOf(program, kPairConvs)) return program;
  return DepthwiseFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
