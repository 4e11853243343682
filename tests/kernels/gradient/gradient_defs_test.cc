// The gradients that op definitions name: that they are there and fit.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/op_def.h"
#include "core/program_parse.h"
#include "gtest/gtest.h"
#include "passes/train/append_backward.h"
#include "tests/testing/matchers.h"

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

// Of a sparse op only the gradients of its tables are rows.
TEST(GradientDefsTest, ASparseOpsInputHasATensorForGradient) {
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var w float64[2,3] persistable param\n  var h float64[2,3]\n"
      "  var table float64[4,3] persistable param\n  var label int64[2,1] stop_gradient\n"
      "  var cost float64[2,1]\n  var pre float64[2,2]\n  var loss float64[1]\n"
      "  tanh(X=w) -> (Out=h)\n"
      "  hierarchical_sigmoid(X=h, W=table, Label=label) -> (Out=cost, PreOut=pre) "
      "{num_classes=5, is_sparse=true}\n"
      "  mean(X=cost) -> (Out=loss)\n");
  ASSERT_THAT(program, testing::IsOk());
  const auto backward = AppendBackward(*program, {.loss = "loss"}, OpRegistry::Global());
  ASSERT_THAT(backward, testing::IsOk());
  const auto kind = [&](absl::string_view name) {
    const std::vector<Var>& vars = backward->program.blocks[0].vars;
    const auto at = std::find_if(vars.begin(), vars.end(), [&](const Var& var) {
      return backward->program.NameOf(var.id) == name;
    });
    return at == vars.end() ? VarKind::kRaw : at->kind;
  };
  EXPECT_EQ(kind("h@GRAD"), VarKind::kLodTensor);
  EXPECT_EQ(kind("table@GRAD"), VarKind::kSelectedRows);
}

}  // namespace
}  // namespace interp
