// split: X cut along `axis` into `num` equal parts, or into parts of the lengths in `sections`, of
// which one may be -1 (what is left).
//
// With sections and a negative axis the parts get the right shapes but are cut one after the other
// from the elements of X in order. This is what Paddle 2.3 to 2.6 compute; their Python front end
// makes axes positive, so only programs written by hand come here.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kAxisTensor = 1;
constexpr int kSectionsTensorList = 2;
constexpr int kOut = 0;
constexpr IntSlots kSections = {.name = "sections", .list = kSectionsTensorList};

struct SplitAttrs {
  int64_t axis = 0;
  int64_t num = 0;
  IntList sections;
};

SplitAttrs ReadSplitAttrs(AttrReader& reader) {
  SplitAttrs attrs;
  attrs.axis = reader.Long("axis", 0);
  attrs.num = reader.Long("num", 0);
  const std::vector<int64_t> sections = reader.Ints("sections");
  attrs.sections.assign(sections.begin(), sections.end());
  if (attrs.num < 0) reader.Fail("attribute 'num' is negative");
  return attrs;
}

absl::StatusOr<int> SplitAxis(const OpContext& ctx, int rank) {
  INTERP_ASSIGN_OR_RETURN(const int64_t axis, ReadInteger(ctx, kAxisTensor, "AxisTensor",
                                                          ctx.attrs<SplitAttrs>().axis));
  return ResolveAxis(axis, rank);
}

absl::StatusOr<IntList> EqualSections(int64_t length, int64_t num, size_t outputs) {
  if (num != static_cast<int64_t>(outputs)) {
    return InvalidArgument("'num' is ", num, " for ", outputs, " outputs");
  }
  if (length % num != 0) {
    return InvalidArgument("'num' is ", num, ", which does not divide the length ", length);
  }
  return IntList(outputs, length / num);
}

// The lengths of the parts, with -1 resolved; they add up to `length`.
absl::StatusOr<IntList> SplitSections(const OpContext& ctx, int64_t length, size_t outputs) {
  const SplitAttrs& attrs = ctx.attrs<SplitAttrs>();
  if (attrs.num > 0) return EqualSections(length, attrs.num, outputs);
  INTERP_ASSIGN_OR_RETURN(IntList sections, ReadIntList(ctx, kSections, attrs.sections));
  if (sections.size() != outputs) {
    return InvalidArgument("'sections' has ", sections.size(), " entries for ", outputs,
                           " outputs");
  }
  int64_t sum = 0;
  int64_t* rest = nullptr;
  for (int64_t& section : sections) {
    if (section == -1 && rest == nullptr) {
      rest = &section;
    } else if (section < 0 || section > length - sum) {
      return InvalidArgument("'sections' has the entry ", section, " for a length of ", length);
    } else {
      sum += section;
    }
  }
  if (rest != nullptr) {
    *rest = length - sum;
  } else if (sum != length) {
    return InvalidArgument("'sections' add up to ", sum, ", expected ", length);
  }
  return sections;
}

absl::Status InferSplit(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const int axis, SplitAxis(ctx, x.shape.rank()));
  const absl::Span<Tensor* const> outputs = ctx.outputs(kOut);
  INTERP_ASSIGN_OR_RETURN(const IntList sections,
                          SplitSections(ctx, x.shape[axis], outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    outputs[i]->shape = x.shape;
    outputs[i]->shape[axis] = sections[i];
    outputs[i]->lod = axis == 0 ? Lod() : x.lod;
  }
  return absl::OkStatus();
}

bool CutsFlat(const SplitAttrs& attrs) { return attrs.num == 0 && attrs.axis < 0; }

LayoutRule SplitLayout(const void* attrs, DType) {
  return CutsFlat(*static_cast<const SplitAttrs*>(attrs)) ? LayoutRule::kPlain
                                                          : LayoutRule::kFollows;
}

// Fills one output from the elements of X that begin at `start` and lie `from` apart.
absl::Status CopyPart(KernelContext& ctx, const Strides& from, int64_t start, Tensor& out) {
  const Tensor& x = ctx.input(kX);
  const Strides to = StridesOf(out);
  CopyDims dims;
  for (int i = 0; i < out.shape.rank(); ++i) dims.push_back({out.shape[i], from[i], to[i]});
  return CopyStrided(ctx, dims, {x, start}, {out});
}

absl::Status Split(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const int axis, SplitAxis(ctx, x.shape.rank()));
  const absl::Span<Tensor* const> outputs = ctx.outputs(kOut);
  INTERP_ASSIGN_OR_RETURN(const IntList sections,
                          SplitSections(ctx, x.shape[axis], outputs.size()));
  const bool flat = CutsFlat(ctx.attrs<SplitAttrs>()) && !ctx.has_input(kAxisTensor);
  const int64_t slice = x.shape[axis] == 0 ? 0 : x.numel() / x.shape[axis];
  const Strides from = StridesOf(x);
  int64_t index = 0;  // along the axis
  for (size_t i = 0; i < outputs.size(); index += sections[i++]) {
    if (outputs[i] == nullptr) continue;
    Tensor& out = *outputs[i];
    INTERP_RETURN_IF_ERROR(flat ? CopyPart(ctx, StridesOf(out), index * slice, out)
                                : CopyPart(ctx, from, index * from[axis], out));
  }
  return absl::OkStatus();
}

// The gradients of the parts, joined again.
absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "concat", {{"X", "Out@GRAD"}, {"AxisTensor", "AxisTensor"}},
                       {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "split",
    .inputs = {{"X"},
               {"AxisTensor", kOptional | kAnyDType | kValueInInfer},
               {"SectionsTensorList", kOptional | kVariadic | kAnyDType | kValueInInfer}},
    .outputs = {{"Out", kVariadic}},
    .parse = ParseAttrs<SplitAttrs, ReadSplitAttrs>,
    .infer = InferSplit,
    .kernels = MoveKernels(Split),
    .layout_rule = SplitLayout,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
