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

// Lets the first work on a device wait for the last record of the run before.
void WaitForPreviousRun(Plan& plan) {
  for (Instruction& instruction : plan.instructions) {
    if (instruction.stream == 0 || plan.events.empty()) continue;
    const auto last = static_cast<int32_t>(plan.events.size() - 1);
    return instruction.waits.push_back({.event = last, .previous_run = true});
  }
}

absl::Status Write(const std::string& path, const Program& program, const PlanOptions& options) {
  INTERP_ASSIGN_OR_RETURN(std::vector<Plan> plans, BuildPlans(program, options, ProbeOps()));
  WaitForPreviousRun(plans[0]);
  std::ofstream(path) << ToHtml(plans, program, path.substr(path.rfind('/') + 1));
  return absl::OkStatus();
}

absl::Status WritePages(const std::string& folder) {
  INTERP_ASSIGN_OR_RETURN(const Program streams, ParseProgram(kStreams));
  const PlanOptions device{.place = {PlaceKind::kSim, 0}};
  INTERP_RETURN_IF_ERROR(Write(folder + "/streams.html", streams, device));
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
