// print: Out = In, and In is shown on standard error (Paddle: standard output) the first `first_n`
// times, always when that is not positive. `print_phase` "BACKWARD" keeps the op of the forward
// pass silent, "FORWARD" that of the gradient.
#include <cstdio>

#include "absl/strings/str_join.h"
#include "core/base/terminal_text.h"
#include "core/op_def.h"
#include "kernels/util/copy.h"
#include "kernels/util/infer_like.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/tensor_text.h"

namespace interp {
namespace {

constexpr int kIn = 0;
constexpr int kOut = 0;

struct PrintAttrs {
  std::string name;  // empty: not shown
  std::string message;
  int64_t first_n = -1;
  int64_t summarize = -1;  // values shown; negative: all
  bool silent = false;
  bool type = true;
  bool shape = true;
  bool layout = true;
  bool lod = true;
};

bool IsSilent(AttrReader& reader) {
  const bool forward = reader.Bool("is_forward", true);
  return ReadChoice<bool>(reader, "print_phase",
                          {{"BOTH", false}, {"FORWARD", !forward}, {"BACKWARD", forward}});
}

PrintAttrs ReadPrintAttrs(AttrReader& reader) {
  PrintAttrs attrs;
  const std::vector<std::string> names = reader.InputNames("In");
  if (reader.Bool("print_tensor_name", true) && !names.empty()) attrs.name = names[0];
  attrs.message = reader.String("message", "");
  attrs.first_n = reader.Int("first_n", -1);
  attrs.summarize = reader.Int("summarize", -1);
  attrs.silent = IsSilent(reader);
  attrs.type = reader.Bool("print_tensor_type", true);
  attrs.shape = reader.Bool("print_tensor_shape", true);
  attrs.layout = reader.Bool("print_tensor_layout", true);
  attrs.lod = reader.Bool("print_tensor_lod", true);
  return attrs;
}

std::string TensorText(const PrintAttrs& attrs, const Tensor& in) {
  std::string text;
  const auto line = [&text](bool wanted, absl::string_view what, absl::string_view value) {
    if (wanted) absl::StrAppend(&text, what, value, "\n");
  };
  line(!attrs.name.empty(), "Variable: ", attrs.name);
  line(!attrs.message.empty(), "  - message: ", attrs.message);
  line(attrs.lod, "  - lod: ", BracedLodText(in.lod));
  line(true, "  - place: ", "Place(cpu)");
  line(attrs.shape, "  - shape: ", absl::StrCat("[", absl::StrJoin(in.shape.dims(), ", "), "]"));
  line(attrs.layout, "  - layout: ", "NCHW");
  line(attrs.type, "  - dtype: ", Name(in.dtype));
  line(true, "  - data: ", ValuesText(in, attrs.summarize));
  return text;
}

struct PrintState : KernelState {
  int64_t times = 0;
};

absl::Status Print(KernelContext& ctx) {
  const PrintAttrs& attrs = ctx.attrs<PrintAttrs>();
  const Tensor& in = ctx.input(kIn);
  CopyUnlessShared(in, ctx.output(kOut));
  if (attrs.silent) return absl::OkStatus();
  if (attrs.first_n > 0) {
    int64_t& times = ctx.state<PrintState>().times;
    if (times >= attrs.first_n) return absl::OkStatus();
    ++times;
  }
  // In one piece: other cores may print at the same time.
  const std::string text = TerminalText(TensorText(attrs, in));
  std::fwrite(text.data(), 1, text.size(), stderr);
  return absl::OkStatus();
}

// The gradient is printed, too, if print_phase says so.
absl::Status MakeGradient(GradientMaker& maker) {
  if (!maker.Wants("In")) return absl::OkStatus();
  Op& gradient = maker.Add("print");
  AddInput(gradient, "In", maker.OutputGradients("Out"));
  AddOutput(gradient, "Out", maker.InputGradients("In"));
  gradient.attrs = maker.op().attrs;
  SetAttr(gradient, "is_forward", false);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "print",
    .inputs = {{"In"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PrintAttrs, ReadPrintAttrs>,
    .infer = InferLike<kIn, kOut>,
    .kernels = {{DType::kUndefined, Print}},
    .view = {{kIn, kOut}},
    .side_effect = true,
    .host_only = true,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
