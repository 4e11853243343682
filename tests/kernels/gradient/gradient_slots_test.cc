// Gradient ops have the slots that Paddle's gradient op makers give them: the definitions
// (OpDef::gradient) against the gradient ops of the golden cases, which those makers made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/op_def.h"
#include "core/program_load.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::IsEmpty;

// Op types by the type of their gradient op, for gradients that are a table.
std::map<std::string, std::string> TypesByGradient() {
  std::map<std::string, std::string> types;
  for (const absl::string_view type : OpRegistry::Global().Types()) {
    const GradientDef& gradient = OpRegistry::Global().Find(type)->gradient;
    if (gradient.make != nullptr || gradient.outputs.empty()) continue;
    types[gradient.type.empty() ? absl::StrCat(type, "_grad") : std::string(gradient.type)] =
        std::string(type);
  }
  return types;
}

// Slots with arguments, by gradient op type, of all golden cases.
struct Slots {
  std::set<std::string> inputs;
  std::set<std::string> outputs;
};

void AddSlots(const std::vector<Slot>& slots, const Program& program, std::set<std::string>& to) {
  for (const Slot& slot : slots) {
    const bool has_argument = std::any_of(slot.args.begin(), slot.args.end(), [&](VarId id) {
      return program.NameOf(id) != kEmptyVarName;
    });
    if (has_argument) to.insert(slot.name);
  }
}

std::map<std::string, Slots> SlotsOfPaddle() {
  std::map<std::string, Slots> slots;
  for (const std::string& set : GoldenSets()) {
    for (const std::string& folder : GoldenCaseFolders(set)) {
      const std::string type = std::filesystem::path(folder).parent_path().filename().string();
      if (!absl::StrContains(type, "_grad")) continue;
      const absl::StatusOr<GoldenCase> golden = ReadGoldenCase(folder);
      if (!golden.ok()) continue;
      const absl::StatusOr<Program> program = LoadProgram(golden->program);
      if (!program.ok()) continue;
      for (const Op& op : program->blocks[0].ops) {
        if (op.type != type) continue;
        AddSlots(op.inputs, *program, slots[type].inputs);
        AddSlots(op.outputs, *program, slots[type].outputs);
      }
    }
  }
  return slots;
}

std::vector<std::string> Missing(const std::set<std::string>& of,
                                 const std::vector<absl::string_view>& in) {
  std::vector<std::string> missing;
  for (const std::string& slot : of) {
    if (std::find(in.begin(), in.end(), slot) == in.end()) missing.push_back(slot);
  }
  return missing;
}

// Slots of the definition that no case of Paddle has, but for those that are the op's own and
// optional.
std::vector<std::string> Unseen(const GradientDef& gradient, const OpDef& def,
                                const std::set<std::string>& seen) {
  std::vector<std::string> unseen;
  for (const absl::string_view slot : gradient.inputs) {
    if (seen.contains(std::string(slot))) continue;
    const int input = def.InputIndex(slot);
    if (input >= 0 && (def.inputs[input].flags & kOptional) != 0) continue;
    unseen.emplace_back(slot);
  }
  return unseen;
}

TEST(GradientSlotsTest, AreThoseOfPaddle) {
  if (GoldenSetIsForeign()) GTEST_SKIP() << "not the sets of this repository";
  const std::map<std::string, std::string> types = TypesByGradient();
  for (const auto& [gradient_type, slots] : SlotsOfPaddle()) {
    const auto type = types.find(gradient_type);
    if (type == types.end()) continue;
    SCOPED_TRACE(gradient_type);
    const OpDef& def = *OpRegistry::Global().Find(type->second);
    EXPECT_THAT(Missing(slots.inputs, def.gradient.inputs), IsEmpty());
    EXPECT_THAT(Missing(slots.outputs, def.gradient.outputs), IsEmpty());
    EXPECT_THAT(Unseen(def.gradient, def, slots.inputs), IsEmpty());
  }
}

// Names by slot, but for slots without arguments. Gradients that are fed have a name of their own.
std::map<std::string, std::vector<std::string>> NamesBySlot(const std::vector<Slot>& slots,
                                                            const Program& program) {
  std::map<std::string, std::vector<std::string>> names;
  for (const Slot& slot : slots) {
    for (const VarId id : slot.args) {
      std::string name = program.NameOf(id);
      if (absl::EndsWith(name, "_GRAD")) name = GradientName(name.substr(0, name.size() - 5));
      names[slot.name].push_back(name);
    }
  }
  return names;
}

// What the definition makes of the first op of a program whose second one Paddle made of it.
void ExpectSameGradientOp(Program& program, const Op& op, const Op& expected) {
  const GradientDef& gradient = OpRegistry::Global().Find(op.type)->gradient;
  const auto wanted = NamesBySlot(expected.outputs, program);
  GradientMaker maker({&program, 0, &op, -1, [&](VarId id) {
                         const std::string name = GradientName(program.NameOf(id));
                         return std::any_of(wanted.begin(), wanted.end(), [&](const auto& slot) {
                           return std::count(slot.second.begin(), slot.second.end(), name) > 0;
                         });
                       }});
  if (gradient.make == nullptr) {
    maker.AddByTable(gradient);
  } else {
    ASSERT_THAT(gradient.make(maker), IsOk());
  }
  const std::vector<Op> made = maker.Take();
  ASSERT_EQ(made.size(), 1);
  EXPECT_EQ(made[0].type, expected.type);
  EXPECT_EQ(NamesBySlot(made[0].inputs, program), NamesBySlot(expected.inputs, program));
  EXPECT_EQ(NamesBySlot(made[0].outputs, program), wanted);
  for (const Attr& attr : op.attrs) {
    const Attr* const same = expected.FindAttr(attr.name);
    if (absl::StartsWith(attr.name, "op_") || same == nullptr) continue;
    EXPECT_TRUE(same->value == attr.value) << attr.name;
  }
}

TEST(GradientSlotsTest, HaveTheArgumentsOfPaddle) {
  if (GoldenSetIsForeign()) GTEST_SKIP() << "not the sets of this repository";
  for (const std::string& folder :
       GoldenCaseFolders(INTERP_BINARY_DIR "/goldens/gradient_sequence")) {
    SCOPED_TRACE(folder);
    const absl::StatusOr<GoldenCase> golden = ReadGoldenCase(folder);
    ASSERT_THAT(golden, IsOk());
    absl::StatusOr<Program> program = LoadProgram(golden->program);
    ASSERT_THAT(program, IsOk());
    std::vector<Op> ops = program->blocks[0].ops;
    std::erase_if(ops, [](const Op& op) { return op.type == "feed" || op.type == "fetch"; });
    ASSERT_EQ(ops.size(), 2);
    ExpectSameGradientOp(*program, ops[0], ops[1]);
  }
}

}  // namespace
}  // namespace interp::testing
