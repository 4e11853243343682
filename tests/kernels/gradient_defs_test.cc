// The gradients that op definitions name: that they are there and fit.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/op_def.h"
#include "gtest/gtest.h"

namespace interp {
namespace {

bool HasSlot(const std::vector<SlotDef>& slots, absl::string_view name) {
  for (const SlotDef& slot : slots) {
    if (slot.name == name) return true;
  }
  return false;
}

// What does not fit between an op and the gradient its table names.
std::vector<std::string> Mistakes(const OpDef& def) {
  const GradientDef& table = def.gradient;
  const std::string type =
      table.type.empty() ? absl::StrCat(def.type, "_grad") : std::string(table.type);
  const OpDef* gradient = OpRegistry::Global().Find(type);
  if (gradient == nullptr) return {absl::StrCat(def.type, ": there is no ", type)};
  std::vector<std::string> mistakes;
  const auto check = [&](bool right, absl::string_view slot, absl::string_view what) {
    if (!right) mistakes.push_back(absl::StrCat(def.type, ": slot ", slot, " ", what));
  };
  for (absl::string_view slot : table.inputs) {
    check(HasSlot(gradient->inputs, slot), slot, "is no input of the gradient");
    absl::string_view of = slot;
    if (absl::ConsumeSuffix(&of, kGradientSuffix)) {
      check(HasSlot(def.outputs, of), slot, "is the gradient of no output");
    } else {
      check(HasSlot(def.inputs, of) || HasSlot(def.outputs, of), slot, "is none of the op");
    }
  }
  for (absl::string_view slot : table.outputs) {
    check(HasSlot(gradient->outputs, slot), slot, "is no output of the gradient");
    check(HasSlot(def.inputs, absl::StripSuffix(slot, kGradientSuffix)), slot,
          "is the gradient of no input");
  }
  for (const SlotDef& slot : gradient->inputs) {
    const bool given =
        (slot.flags & kOptional) != 0 ||
        std::find(table.inputs.begin(), table.inputs.end(), slot.name) != table.inputs.end();
    check(given, slot.name, "is needed by the gradient");
  }
  return mistakes;
}

TEST(GradientDefsTest, TablesNameOpsThatTakeTheirSlots) {
  std::vector<std::string> mistakes;
  int tables = 0;
  for (absl::string_view type : OpRegistry::Global().Types()) {
    const OpDef& def = *OpRegistry::Global().Find(type);
    if (def.gradient.outputs.empty()) continue;
    ++tables;
    for (std::string& mistake : Mistakes(def)) mistakes.push_back(std::move(mistake));
  }
  EXPECT_GT(tables, 0);
  EXPECT_TRUE(mistakes.empty()) << absl::StrJoin(mistakes, "\n");
}

// What Paddle gives no gradient: losses may pass through metrics and chosen boxes.
TEST(GradientDefsTest, MetricsAndDetectionsHaveNone) {
  for (const absl::string_view type :
       {"accuracy", "auc", "bernoulli", "chunk_eval", "multinomial", "prior_box", "yolo_box"}) {
    const OpDef* const def = OpRegistry::Global().Find(type);
    ASSERT_NE(def, nullptr) << type;
    EXPECT_TRUE(def->gradient.none) << type;
  }
}

// A gradient op is run for any subset of what it gives.
TEST(GradientDefsTest, GradientsMayBeLeftOut) {
  for (absl::string_view type : OpRegistry::Global().Types()) {
    const OpDef& def = *OpRegistry::Global().Find(type);
    if (def.gradient.outputs.size() < 2) continue;
    const OpDef* gradient =
        OpRegistry::Global().Find(def.gradient.type.empty() ? absl::StrCat(def.type, "_grad")
                                                            : std::string(def.gradient.type));
    if (gradient == nullptr) continue;
    for (const SlotDef& slot : gradient->outputs) {
      EXPECT_NE(slot.flags & kOptional, 0) << gradient->type << ": " << slot.name;
    }
  }
}

}  // namespace
}  // namespace interp
