#include "passes/mobile_quantizers.h"

#include <string>

#include "absl/strings/string_view.h"
#include "core/attr_reader.h"

namespace interp {
namespace {

bool Binds(const Slot* slot) { return slot != nullptr && !slot->args.empty(); }

// Empty where the op keeps its name.
absl::string_view NameOfQuantizer(const Op& op) {
  const bool writes_scale = Binds(op.FindOutput("OutScale"));
  const bool per_channel = op.FindAttr("quant_axis") != nullptr;
  if (!writes_scale || per_channel) return "";
  if (!Binds(op.FindInput("InScale"))) return "fake_quantize_abs_max";
  AttrReader attrs(op);
  return attrs.Bool("is_test", false) ? "fake_quantize_moving_average_abs_max" : "";
}

absl::string_view NameOfDequantizer(const Op& op) {
  if (Binds(op.FindInput("Scales"))) return "fake_channel_wise_dequantize_max_abs";
  const bool whole = Binds(op.FindInput("Scale")) && op.FindAttr("max_range") != nullptr;
  return whole ? "fake_dequantize_max_abs" : "";
}

}  // namespace

void NameMobileQuantizers(Program& program) {
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) {
      const bool quantizes = op.type == "quantize";
      if (!quantizes && op.type != "dequantize") continue;
      // oneDNN's have Input and Output.
      const bool mobile =
          Binds(op.FindInput("X")) && !Binds(op.FindInput("Input")) && Binds(op.FindOutput("Out"));
      if (!mobile) continue;
      const absl::string_view name = quantizes ? NameOfQuantizer(op) : NameOfDequantizer(op);
      if (!name.empty()) op.type = std::string(name);
    }
  }
}

}  // namespace interp
