// Traces of whole runs on a GPU.
#include "interpreter/inspect/trace.h"

#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/test_program.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

TEST(CudaTrace, HasEachCopyAndKernelOnceWithItsKindAndBytes) {
  const auto machine = Machine::Start({});
  ASSERT_THAT(machine, IsOk());
  CoreOptions options;
  options.plan.place = {PlaceKind::kCuda, 0};
  const auto core = InterpreterCore::Create(
      testing::TestProgram().Feed("x", {4, 8}).Call("relu", {"x"}, "y").Fetch("y").Build(), {}, {},
      nullptr, options);
  ASSERT_THAT(core, IsOk());
  TraceRecorder recorder(**core);
  const Tensor x = Tensor::Of<float>(Shape({4, 8}), std::vector<float>(32, 1.0f));
  ASSERT_THAT((*core)->Run({x}, {.observer = &recorder}), IsOk());

  const std::map<std::string, WorkKind> kinds = {{"memcpy_h2d", WorkKind::kHostToDevice},
                                                 {"relu", WorkKind::kKernel},
                                                 {"memcpy_d2h", WorkKind::kDeviceToHost}};
  std::map<std::string, int> spans;
  ASSERT_EQ(recorder.trace().devices.size(), 1u);
  for (const DeviceSpan& span : recorder.trace().devices[0].spans) {
    const std::string op((*core)->plan().instructions[span.tag].op_type);
    ++spans[op];
    ASSERT_TRUE(kinds.contains(op)) << op;
    EXPECT_EQ(span.kind, kinds.at(op)) << op;
    if (op != "relu") {
      EXPECT_EQ(span.bytes, 4 * 8 * 4) << op;
    }
    EXPECT_LE(span.start_ns, span.end_ns) << op;
  }
  EXPECT_THAT(spans,
              ::testing::ElementsAre(::testing::Pair("memcpy_d2h", 1),
                                     ::testing::Pair("memcpy_h2d", 1), ::testing::Pair("relu", 1)));
  EXPECT_THAT((*machine)->TakeFindings(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace interp::cuda_test
