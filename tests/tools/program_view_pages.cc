// Writes pages of programs for program_view_test.py:
//   program_view_pages FOLDER
#include <fstream>
#include <iostream>
#include <limits>

#include "core/program_parse.h"
#include "core/status.h"
#include "interpreter/inspect/program_html.h"
#include "tests/testing/random_graph.h"

namespace interp::testing {
namespace {

// One step of training; `skip` passes over two layers.
constexpr absl::string_view kTraining = R"(block 0
  var feed feed_minibatch persistable
  var fetch fetch_list persistable
  var x float32[-1,4] check_feed
  var w float32[4,4] param
  var h float32[-1,4]
  var a float32[-1,4]
  var skip float32[-1,4]
  var loss float32[1]
  var unused float32[3]
  feed(X=feed) -> (Out=x) {col=0}
  mul(X=x, Y=w) -> (Out=h) {x_num_col_dims=1, big=long:9007199254740993, odd=nan}
  relu(X=h) -> (Out=a)
  elementwise_add(X=a, Y=h) -> (Out=skip) {axis=-1}
  mean(X=skip) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {value=1.0, op_role=257}
  mul_grad(X=x, Y=w, Out@GRAD=loss@GRAD) -> (Y@GRAD=w@GRAD) {op_role=1}
  sgd(Param=w, Grad=w@GRAD) -> (ParamOut=w) {op_role=2}
  fetch(X=loss) -> (Out=fetch) {col=0}
  fill_constant() -> (Out=alone)
)";

// Names and attributes that would do harm if they were read as HTML or as a script.
constexpr absl::string_view kHostile = R"(block 0
  var "</script><img onerror=alert(1)>" int64[2]
  var __proto__ float32[2] param
  "<b>op</b>"("<i>X</i>"="</script><img onerror=alert(1)>") -> (Out="<img src=x onerror=alert(2)>") {"<u>attr</u>"="</script><script>alert(3)</script>"}
  mix(X="<img src=x onerror=alert(2)>", W=__proto__) -> (Out="\" onclick=\"alert(3)' <!-- &lt;\xe2\x80\xa8")
  mix(X="\" onclick=\"alert(3)' <!-- &lt;\xe2\x80\xa8") -> (Out=constructor)
)";

// Block 1 uses `x` and `state` of block 0 without a slot that says so; block 2 is in block 1.
constexpr absl::string_view kNested = R"(block 0
  var x float32[2]
  var state float32[2]
  var go bool[1]
  fill_constant() -> (Out=state) {value=0.0}
  less_than(X=state, Y=x) -> (Out=go)
  while(Condition=go) -> () {sub_block=block:1}
  scale(X=state) -> (Out=y) {scale=2.0}
block 1 parent=0
  var next float32[2]
  elementwise_add(X=state, Y=x) -> (Out=next)
  conditional_block(Cond=go) -> () {sub_block=block:2}
  assign(X=next) -> (Out=state)
block 2 parent=1
  relu(X=next) -> (Out=next)
block 3 parent=0
  relu(X=x) -> (Out=x)
)";

// Blocks that run themselves or do not exist, names that nobody declares.
Program Damaged() {
  Program program;
  program.blocks.resize(2);
  program.blocks[0].parent_idx = 1;
  program.blocks[1].parent_idx = 1;
  program.blocks[1].forward_block_idx = 55;
  for (const int32_t block : {0, 1}) {
    Op op;
    op.type = "odd";
    op.inputs = {{"X", {-1, 99, program.Intern("nobody")}}};
    op.attrs = {{"blocks", BlockIndices{{0, 1, -7, 1000}}}};
    program.blocks[block].ops = {op, op};
  }
  return program;
}

// A chain of layers with its gradient: every edge into the second half leads far.
Program Chain(int num_layers) {
  Program program;
  program.blocks.resize(1);
  std::vector<Op>& ops = program.blocks[0].ops;
  const auto add = [&](absl::string_view type, const std::vector<std::string>& inputs,
                       const std::string& output) {
    Op op;
    op.type = std::string(type);
    op.inputs = {{"X", {}}};
    for (const std::string& input : inputs) op.inputs[0].args.push_back(program.Intern(input));
    op.outputs = {{"Out", {program.Intern(output)}}};
    ops.push_back(std::move(op));
  };
  for (int i = 0; i < num_layers; ++i) {
    add("relu", {absl::StrCat("t", i)}, absl::StrCat("t", i + 1));
  }
  for (int i = num_layers; i > 0; --i) {
    add("relu_grad", {absl::StrCat("t", i), absl::StrCat("g", i)}, absl::StrCat("g", i - 1));
  }
  return program;
}

std::vector<std::pair<std::string, TensorStatistics>> WeightStatistics() {
  return {{"w",
           {.type = "float32[4,4]",
            .count = 16,
            .num_zero = 4,
            .num_nan = 2,
            .num_infinite = 1,
            .min = -1.5,
            .max = 2,
            .mean = 0.25,
            .deviation = std::numeric_limits<double>::infinity(),
            .histogram = {3, 0, 9, 1}}}};
}

absl::Status Write(const std::string& path, const absl::StatusOr<Program>& program) {
  if (!program.ok()) return program.status();
  std::ofstream(path) << ToHtml(*program, {.title = path.substr(path.rfind('/') + 1),
                                           .facts = {{"Paddle", "<b>2.6.2</b>"}},
                                           .statistics = WeightStatistics()});
  return absl::OkStatus();
}

absl::Status WritePages(const std::string& folder) {
  INTERP_RETURN_IF_ERROR(Write(folder + "/training.html", ParseProgram(kTraining)));
  INTERP_RETURN_IF_ERROR(Write(folder + "/hostile.html", ParseProgram(kHostile)));
  INTERP_RETURN_IF_ERROR(Write(folder + "/nested.html", ParseProgram(kNested)));
  INTERP_RETURN_IF_ERROR(Write(folder + "/damaged.html", Damaged()));
  INTERP_RETURN_IF_ERROR(Write(folder + "/nothing.html", Program()));
  INTERP_RETURN_IF_ERROR(Write(folder + "/empty.html", ParseProgram("block 0\n")));
  INTERP_RETURN_IF_ERROR(Write(folder + "/chain.html", Chain(15'000)));
  return Write(folder + "/large.html", MakeRandomGraph(1, {.num_ops = 5000}).program);
}

}  // namespace
}  // namespace interp::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: program_view_pages FOLDER\n";
    return 2;
  }
  const absl::Status status = interp::testing::WritePages(argv[1]);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
