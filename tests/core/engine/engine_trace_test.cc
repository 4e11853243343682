#include "core/engine/engine_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/testing/engines.h"

namespace interp::engine {
namespace {

using nlohmann::json;
using testing::IsOk;
using testing::MakeEngine;

TEST(EngineTrace, HoldsEveryOperationInAThreadOfItsQueue) {
  auto engine = MakeEngine({.policy = PolicyKind::kPerDevice, .workers = 2});
  EngineTrace trace(engine->policy());
  engine->SetObserver(&trace);
  const Variable v = engine->NewVariable();
  ASSERT_THAT(engine->Push([] {}, {.writes = {v}}, {.name = "load \"x\""}), IsOk());
  ASSERT_THAT(
      engine->Push([] {}, {.reads = {v}}, {.name = "soon", .property = Property::kHostUrgent}),
      IsOk());
  ASSERT_THAT(engine->WaitForAll(), IsOk());
  ASSERT_THAT(engine->Push([] {}, {.reads = {v}}, {.name = "start", .property = Property::kAsync}),
              IsOk());
  ASSERT_THAT(engine->Push([] { return absl::InternalError("no"); }, {.writes = {v}}), IsOk());
  ASSERT_THAT(engine->Push([] {}, {.reads = {v}}, {.name = "after it"}), IsOk());
  ASSERT_FALSE(engine->WaitForAll().ok());
  engine->SetObserver(nullptr);

  const json document = json::parse(trace.ToChromeTrace());
  std::map<int, std::string> process_names;
  std::map<std::string, std::string> process_of;
  std::map<std::string, std::string> category_of;
  double last_end = 0;
  for (const json& event : document.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "process_name") {
      process_names[event.at("pid")] = event.at("args").at("name");
    }
    if (event.at("ph") != "X") continue;
    process_of[event.at("name")] = process_names.at(event.at("pid"));
    category_of[event.at("name")] = event.at("cat");
    EXPECT_GE(event.at("dur"), 0);
    EXPECT_EQ(event.at("args").at("place"), "cpu");
    last_end = std::max(last_end, double{event.at("ts")} + double{event.at("dur")});
  }
  EXPECT_EQ(process_of.at("load \"x\""), "cpu");
  EXPECT_EQ(process_of.at("soon"), "cpu-urgent");
  EXPECT_EQ(process_of.at("start"), "threads that push");
  EXPECT_EQ(category_of.at("start"), "operation");
  EXPECT_EQ(category_of.at("after it"), "skipped");
  EXPECT_GT(last_end, 0);
}

}  // namespace
}  // namespace interp::engine
