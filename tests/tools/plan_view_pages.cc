// Writes pages of `interp dump --format=html` for plan_view_test.py, of plans that need no kernels:
//   plan_view_pages FOLDER
#include <fstream>
#include <iostream>

#include "interpreter/compile/build_plan.h"
#include "interpreter/inspect/plan_print_html.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"

namespace interp::testing {
namespace {

// Two branches on streams of their own, so that events lead to, between and from them.
constexpr absl::string_view kStreams = R"(block 0
  var feed feed_minibatch persistable
  var fetch fetch_list persistable
  var w int64[4] param
  var x int64[-1,4]
  feed(X=feed) -> (Out=x) {col=0}
  mix(X=[x, w]) -> (Out=stem) {tag=1}
  mix(X=stem) -> (Out=left) {tag=2, execution_stream="left"}
  mix(X=stem) -> (Out=right) {tag=3, execution_stream="right"}
  mix(X=left) -> (Out=left) {tag=4, execution_stream="left"} inplace(X->Out)
  mix(X=[left, right, stem]) -> (Out=sum) {tag=5}
  dynamic(X=sum) -> (Out=few)
  mix(X=few) -> (Out=y) {tag=6}
  fetch(X=y) -> (Out=fetch) {col=0}
)";

// Names and attributes that would do harm if they were read as HTML or as a script.
constexpr absl::string_view kHostile = R"(block 0
  var "</script><script>alert(1)</script>" int64[2]
  mix(X="</script><script>alert(1)</script>") -> (Out="<img src=x onerror=alert(2)>")
  mix(X="<img src=x onerror=alert(2)>") -> (Out="\" onclick=\"alert(3)' <!-- &lt;\xe2\x80\xa8 __proto__") {note="</script>", big=long:9007199254740993}
  mix(X="\" onclick=\"alert(3)' <!-- &lt;\xe2\x80\xa8 __proto__") -> (Out=__proto__)
  mix(X=__proto__) -> (Out=constructor)
)";

// Blocks in blocks, one of them without any op; `x` is captured twice on its way into block 2.
constexpr absl::string_view kNested = R"(block 0
  var feed feed_minibatch persistable
  var fetch fetch_list persistable
  var w int64[4] param
  var x int64[-1,4]
  var more int64[2]
  feed(X=feed) -> (Out=x) {col=0}
  mix(X=[x, w]) -> (Out=state) {tag=1}
  shape_of(X=x) -> (Out=more)
  while(Condition=more) -> () {sub_block=block:1}
  mix(X=state) -> (Out=rest) {tag=2}
  recurrent(Inputs=x) -> (Outputs=steps) {sub_block=block:4}
  mix(X=[rest, steps]) -> (Out=y) {tag=3}
  fetch(X=y) -> (Out=fetch) {col=0}
block 1 parent=0
  var next int64[-1,4]
  mix(X=[state, w]) -> (Out=next) {tag=4}
  conditional_block(Cond=more) -> () {sub_block=block:2}
  conditional_block(Cond=more) -> () {sub_block=block:3}
  assign(X=next) -> (Out=state)
  shape_of(X=state) -> (Out=more)
block 2 parent=1
  var doubled int64[-1,4]
  mix(X=[next, x]) -> (Out=doubled) {tag=5}
  assign(X=doubled) -> (Out=next)
block 3 parent=1
block 4 parent=0
  var part int64[-1,4]
  var made int64[-1,4]
  mix(X=[part, w]) -> (Out=made) {tag=6}
)";

absl::Status NoInterface(const Program&, const Op&, SubBlock&) { return absl::OkStatus(); }

absl::Status StepInterface(const Program&, const Op&, SubBlock& block) {
  block = {.entries = {{"part", 0, 0}}, .results = {"made"}};
  return absl::OkStatus();
}

// An op that runs a block, in plans that are only looked at.
OpDef RunsBlock(absl::string_view type, SlotDef input, std::vector<SlotDef> outputs,
                decltype(OpDef::sub_block) interface) {
  return {.type = type,
          .inputs = {input},
          .outputs = std::move(outputs),
          .infer = [](InferContext&) { return absl::OkStatus(); },
          .kernels = {{DType::kUndefined, [](KernelContext&) { return absl::OkStatus(); }}},
          .side_effect = true,
          .sub_block = interface};
}

const OpRegistry& NestingOps() {
  static const OpRegistry& ops = *[] {
    auto* all = new OpRegistry;
    for (const absl::string_view type : ProbeOps().Types()) all->Add(*ProbeOps().Find(type));
    all->Add(RunsBlock("while", {"Condition", kAnyDType}, {}, NoInterface));
    all->Add(RunsBlock("conditional_block", {"Cond", kAnyDType}, {}, NoInterface));
    all->Add(RunsBlock("recurrent", {"Inputs"}, {{"Outputs"}}, StepInterface));
    return all;
  }();
  return ops;
}

// Lets the first work on a device wait for the last record of the run before.
void WaitForPreviousRun(Plan& plan) {
  for (Instruction& instruction : plan.instructions) {
    if (instruction.stream == 0 || plan.events.empty()) continue;
    const auto last = static_cast<int32_t>(plan.events.size() - 1);
    return instruction.waits.push_back({.event = last, .previous_run = true});
  }
}

absl::Status Write(const std::string& path, const Program& program, const PlanOptions& options) {
  INTERP_ASSIGN_OR_RETURN(std::vector<Plan> plans, BuildPlans(program, options, NestingOps()));
  WaitForPreviousRun(plans[0]);
  std::ofstream(path) << ToHtml(plans, program, path.substr(path.rfind('/') + 1));
  return absl::OkStatus();
}

absl::Status WritePages(const std::string& folder) {
  INTERP_ASSIGN_OR_RETURN(const Program streams, ParseProgram(kStreams));
  const PlanOptions device{.place = {PlaceKind::kSim, 0}};
  INTERP_RETURN_IF_ERROR(Write(folder + "/streams.html", streams, device));
  INTERP_ASSIGN_OR_RETURN(const Program nested, ParseProgram(kNested));
  INTERP_RETURN_IF_ERROR(Write(folder + "/nested.html", nested, {}));
  INTERP_RETURN_IF_ERROR(Write(folder + "/nested_device.html", nested, device));
  INTERP_ASSIGN_OR_RETURN(const Program hostile, ParseProgram(kHostile));
  INTERP_RETURN_IF_ERROR(Write(folder + "/hostile.html", hostile, {}));
  const RandomGraph large = MakeRandomGraph(1, {.num_ops = 2000});
  return Write(folder + "/large.html", large.program, {});
}

}  // namespace
}  // namespace interp::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: plan_view_pages FOLDER\n";
    return 2;
  }
  const absl::Status status = interp::testing::WritePages(argv[1]);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
