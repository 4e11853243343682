// Stores of several ranks, which are threads of the test.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/array/sum_arrays.h"
#include "core/kvstore/kvstore.h"
#include "tests/testing/arrays.h"
#include "tests/testing/rank_team.h"

namespace interp::testing {

// stored += pushed.
inline absl::Status AddTo(absl::string_view /*key*/, const Array& pushed, const Array& stored) {
  return Invoke(stored.runtime(), SumArraysDef(), {{"X", {stored, pushed}}}, {},
                {.into = {{"Out", {stored}}}})
      .status();
}

// The same of float32 rows: in order, also repeatedly.
inline absl::Status AddRowsTo(absl::string_view /*key*/, const Array& pushed, const Array& stored) {
  const engine::Variable read = pushed.variable();
  const engine::Variable written = stored.variable();
  return stored.runtime().engine().Push(
      [pushed, stored](const engine::RunContext& context) -> absl::Status {
        const Variable& rows = ArrayAccess::chunk(pushed)->value;
        INTERP_ASSIGN_OR_RETURN(Tensor to,
                                ArrayAccess::Writable(stored, /*overwrites=*/false, context));
        const int64_t width = to.shape.numel(1, to.shape.rank());
        for (size_t i = 0; i < rows.selected_rows->rows.size(); ++i) {
          const float* const from = rows.tensor.data<float>() + i * width;
          float* const row = to.mutable_data<float>() + rows.selected_rows->rows[i] * width;
          for (int64_t j = 0; j < width; ++j) row[j] += from[j];
        }
        return absl::OkStatus();
      },
      {.reads = {&read, 1}, .updates = {&written, 1}});
}

inline std::unique_ptr<ArrayRuntime> NewRuntime() {
  return MakeRuntime({.engine = {.workers = 2}, .ops = &ArrayOps::Registry()});
}

// `body` on each rank, with a store of its own runtime; after one another as many `times`, with
// all stores of a rank alive.
inline void WithStores(const ThreadRanksOptions& options, const std::string& kind,
                       const std::function<absl::Status(ArrayRuntime&, KVStore&)>& body,
                       int times = 1) {
  constexpr CommOptions kChecked{.timeout = std::chrono::seconds(60), .check = true};
  const auto statuses = OnAllRanks(
      options, kChecked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& /*ranks*/) {
        const std::unique_ptr<ArrayRuntime> runtime = NewRuntime();
        std::vector<std::unique_ptr<KVStore>> stores;
        for (int i = 0; i < times; ++i) {
          INTERP_ASSIGN_OR_RETURN(auto store, KVStore::Create(*runtime, kind, rings));
          INTERP_RETURN_IF_ERROR(body(*runtime, *store));
          stores.push_back(std::move(store));
        }
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
}

}  // namespace interp::testing
