#include "core/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"

namespace interp {
namespace {

using ::testing::ElementsAre;

TEST(ScopeTest, NamesAreLookedUpInTheAncestors) {
  auto root = std::make_shared<Scope>();
  auto middle = std::make_shared<Scope>(root);
  Scope leaf(middle);
  Variable* x = root->FindOrCreate("x");
  EXPECT_EQ(leaf.Find("x"), x);
  EXPECT_EQ(leaf.FindLocal("x"), nullptr);
  EXPECT_EQ(leaf.Find("y"), nullptr);
  EXPECT_EQ(&leaf.root(), root.get());
  EXPECT_EQ(&root->root(), root.get());
}

TEST(ScopeTest, ChildrenHideTheirParentsVariables) {
  auto root = std::make_shared<Scope>();
  Scope child(root);
  Variable* outer = root->FindOrCreate("x");
  Variable* inner = child.FindOrCreate("x");
  EXPECT_NE(inner, outer);
  EXPECT_EQ(child.Find("x"), inner);
  EXPECT_TRUE(child.Erase("x"));
  EXPECT_FALSE(child.Erase("x"));
  EXPECT_EQ(child.Find("x"), outer);
}

TEST(ScopeTest, PointersOutliveOtherInsertions) {
  Scope scope;
  Variable* x = scope.FindOrCreate("x");
  for (int i = 0; i < 1000; ++i) scope.FindOrCreate(absl::StrCat("v", i));
  EXPECT_EQ(scope.FindOrCreate("x"), x);
}

// Under tsan this also shows that nothing of it races.
TEST(ScopeTest, ThreadsCreateAndFindAtTheSameTime) {
  constexpr int kThreads = 4;
  constexpr int kNames = 500;
  const auto scope = std::make_shared<Scope>();
  std::vector<std::vector<Variable*>> shared(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&scope, &found = shared[t], t] {
      const Scope child(scope);
      for (int i = 0; i < kNames; ++i) {
        const std::string own = absl::StrCat("thread ", t, " ", i);
        Variable* const made = scope->FindOrCreate(own);
        EXPECT_EQ(child.Find(own), made);
        found.push_back(scope->FindOrCreate(absl::StrCat("v", i)));
        const bool erased = i % 2 == 0 && scope->Erase(own);
        EXPECT_EQ(erased, i % 2 == 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Variable*>& found : shared) EXPECT_EQ(found, shared[0]);
  EXPECT_EQ(scope->LocalNames().size(), kNames + kThreads * kNames / 2);
}

TEST(ScopeTest, ChildrenKeepTheirParentAlive) {
  auto root = std::make_shared<Scope>();
  root->FindOrCreate("x")->tensor = Tensor::Of<float>({1}, {3.0f});
  Scope child(root);
  root.reset();
  EXPECT_EQ(child.Find("x")->tensor.data<float>()[0], 3.0f);
}

TEST(ScopeTest, IdsAreNeverReused) {
  const uint64_t first = Scope().id();
  EXPECT_NE(Scope().id(), first);
  EXPECT_GT(Scope().id(), first);
}

TEST(ScopeTest, NamesAreSorted) {
  Scope scope;
  for (const char* name : {"b", "c", "a"}) scope.FindOrCreate(name);
  EXPECT_THAT(scope.LocalNames(), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace interp
