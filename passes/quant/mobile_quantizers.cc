#include "passes/quant/mobile_quantizers.h"

#include <string>

#include "absl/strings/string_view.h"
#include "core/attr_reader.h"

namespace interp {
namespace {

bool Binds(const Slot* slot) { return slot != nullptr && !slot->args.empty(); }

// Whether the op has a scale that training has kept.
bool QuantizesByKeptScale(const Op& op) {
  AttrReader attrs(op);
  const bool tests = attrs.Bool("is_test", false) && attrs.status().ok();
  const bool per_channel = op.FindAttr("quant_axis") != nullptr;
  return tests && !per_channel && Binds(op.FindInput("InScale")) &&
         Binds(op.FindOutput("OutScale"));
}

// Empty where the op keeps its name.
absl::string_view NameOf(const Op& op) {
  if (op.type == "quantize" && QuantizesByKeptScale(op)) {
    return "fake_quantize_moving_average_abs_max";
  }
  const bool per_channel = op.type == "dequantize" && Binds(op.FindInput("Scales"));
  return per_channel ? "fake_channel_wise_dequantize_max_abs" : "";
}

}  // namespace

void NameMobileQuantizers(Program& program) {
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) {
      // oneDNN's have Input and Output.
      const bool mobile =
          Binds(op.FindInput("X")) && !Binds(op.FindInput("Input")) && Binds(op.FindOutput("Out"));
      const absl::string_view name = mobile ? NameOf(op) : "";
      if (!name.empty()) op.type = std::string(name);
    }
  }
}

}  // namespace interp
