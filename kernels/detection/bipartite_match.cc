// bipartite_match: matches columns (priors) to rows (true boxes) of a distance matrix, greedily by
// falling distance, each row and column once. With match_type "per_prediction", columns left over
// then take their best row that reaches the threshold.
//
// DistMat [K, M], its LoD separating images -> ColToRowMatchIndices and ColToRowMatchDist [N, M];
// rows count from the start of their image, -1 and 0 where nothing matches.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/roi_batches.h"
#include "kernels/util/read_choice.h"

namespace interp {
namespace {

constexpr int kDistMat = 0;
constexpr int kIndices = 0;
constexpr int kDist = 1;

// Paddle's two algorithms settle ties differently, so their border is part of the result.
constexpr int64_t kSortFromRows = 130;

struct MatchAttrs {
  bool per_prediction;
  float threshold;
};

MatchAttrs ReadAttrs(AttrReader& reader) {
  return {.per_prediction = ReadChoice<bool>(reader, "match_type",
                                             {{"bipartite", false}, {"per_prediction", true}}),
          .threshold = reader.Float("dist_threshold", 0.5)};
}

absl::Status Infer(InferContext& ctx) {
  const Tensor& dist = ctx.input(kDistMat);
  if (dist.shape.rank() != 2) {
    return InvalidArgument("input 'DistMat' has shape ", ToString(dist.shape), ", expected [K,M]");
  }
  if (dist.lod.size() > 1) {
    return InvalidArgument("input 'DistMat' has a LoD of ", dist.lod.size(),
                           " levels, expected at most one");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, LodOffsets(dist));
  const Shape shape = {std::ssize(offsets) - 1, dist.shape[1]};
  ctx.SetShape(kIndices, shape);
  ctx.SetShape(kDist, shape);
  return absl::OkStatus();
}

// The distances of one image and where its matches go, by column.
template <typename T>
struct Image {
  const T* dist;
  int64_t rows, columns;
  int32_t* match;
  T* match_dist;

  T at(int64_t row, int64_t column) const { return dist[row * columns + column]; }
  void Match(int64_t row, int64_t column) const {
    match[column] = static_cast<int32_t>(row);
    match_dist[column] = at(row, column);
  }
};

template <typename T>
void MatchBySorting(const Image<T>& image) {
  using Pair = std::tuple<int32_t, int32_t, T>;
  std::vector<Pair> pairs;
  pairs.reserve(image.rows * image.columns);
  for (int64_t row = 0; row < image.rows; ++row) {
    for (int64_t column = 0; column < image.columns; ++column) {
      // NaN would never match, and there is no order with it.
      if (std::isnan(image.at(row, column))) continue;
      pairs.emplace_back(row, column, image.at(row, column));
    }
  }
  // Not stable: the algorithm settles ties, and Paddle uses this one.
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return std::get<2>(a) > std::get<2>(b); });
  std::vector<bool> row_taken(image.rows, false);
  for (const auto& [row, column, dist] : pairs) {
    if (!(dist > 0)) break;
    if (image.match[column] != -1 || row_taken[row]) continue;
    image.Match(row, column);
    row_taken[row] = true;
  }
}

// A row's best free column: the first among equal ones, -1 when none is near enough.
template <typename T>
int64_t BestColumn(const Image<T>& image, int64_t row) {
  int64_t best = -1;
  T best_dist = -1;
  for (int64_t column = 0; column < image.columns; ++column) {
    const T dist = image.at(row, column);
    if (image.match[column] != -1 || dist < static_cast<T>(1e-6) || !(dist > best_dist)) continue;
    best = column;
    best_dist = dist;
  }
  return best;
}

// Takes the largest distance of all free rows and columns until none is left; among equal ones the
// first column, then the first row. A row's best column is looked for anew only once it is taken.
template <typename T>
void MatchBySearching(const Image<T>& image) {
  std::vector<int64_t> best(image.rows);
  for (int64_t row = 0; row < image.rows; ++row) best[row] = BestColumn(image, row);
  while (true) {
    int64_t chosen = -1;
    for (int64_t row = 0; row < image.rows; ++row) {
      if (best[row] < 0) continue;
      if (image.match[best[row]] != -1) best[row] = BestColumn(image, row);
      if (best[row] < 0) continue;
      const T dist = image.at(row, best[row]);
      if (chosen >= 0) {
        const T chosen_dist = image.at(chosen, best[chosen]);
        if (dist < chosen_dist || (dist == chosen_dist && best[row] >= best[chosen])) continue;
      }
      chosen = row;
    }
    if (chosen < 0) return;
    image.Match(chosen, best[chosen]);
    best[chosen] = -1;  // the row is used up
  }
}

// Gives columns without a match their largest distance of at least `threshold`.
template <typename T>
void MatchLeftOver(const Image<T>& image, T threshold) {
  for (int64_t column = 0; column < image.columns; ++column) {
    if (image.match[column] != -1) continue;
    int64_t best = -1;
    T best_dist = -1;
    for (int64_t row = 0; row < image.rows; ++row) {
      const T dist = image.at(row, column);
      if (dist < static_cast<T>(1e-6) || !(dist >= threshold) || !(dist > best_dist)) continue;
      best = row;
      best_dist = dist;
    }
    if (best >= 0) image.Match(best, column);
  }
}

template <typename T>
absl::Status BipartiteMatch(KernelContext& ctx) {
  const Tensor& dist = ctx.input(kDistMat);
  const MatchAttrs& attrs = ctx.attrs<MatchAttrs>();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, LodOffsets(dist));
  Tensor& match = ctx.output(kIndices);
  Tensor& match_dist = ctx.output(kDist);
  std::fill_n(match.mutable_data<int32_t>(), match.numel(), -1);
  std::fill_n(match_dist.mutable_data<T>(), match_dist.numel(), T{0});
  const int64_t columns = dist.shape[1];
  for (int64_t i = 0; i + 1 < std::ssize(offsets); ++i) {
    const Image<T> image = {.dist = dist.data<T>() + offsets[i] * columns,
                            .rows = offsets[i + 1] - offsets[i],
                            .columns = columns,
                            .match = match.mutable_data<int32_t>() + i * columns,
                            .match_dist = match_dist.mutable_data<T>() + i * columns};
    if (image.rows >= kSortFromRows) {
      MatchBySorting(image);
    } else {
      MatchBySearching(image);
    }
    if (attrs.per_prediction) MatchLeftOver(image, static_cast<T>(attrs.threshold));
  }
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kIndices, DType::kInt32); }

INTERP_REGISTER_OP(OpDef{
    .type = "bipartite_match",
    .inputs = {{"DistMat"}},
    .outputs = {{"ColToRowMatchIndices"}, {"ColToRowMatchDist"}},
    .parse = ParseAttrs<MatchAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, BipartiteMatch<float>},
                {DType::kFloat64, BipartiteMatch<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
