#include "core/base/near_names.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace interp {
namespace {

// Longer names are not compared by edits: a hostile file may hold names of any length.
constexpr size_t kMaxLength = 200;
// A part shorter than this is in too many names to be a hint.
constexpr size_t kMinPartLength = 3;

// Two characters that have changed places are one edit.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);  // of a's characters up to i
  std::vector<int> last(b.size() + 1);
  std::vector<int> before_last(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// How far `candidate` is from `name`, nullopt when they do not look alike.
std::optional<int> Distance(absl::string_view name, absl::string_view candidate) {
  if (name.size() > kMaxLength || candidate.size() > kMaxLength) return std::nullopt;
  const int longer = static_cast<int>(std::max(name.size(), candidate.size()));
  const int shorter = static_cast<int>(std::min(name.size(), candidate.size()));
  const int allowed = std::min(longer / 2, std::max(2, longer / 3));
  if (longer - shorter <= allowed) {
    const int edits = EditDistance(name, candidate);
    if (edits <= allowed) return edits;
  }
  const bool part = shorter >= static_cast<int>(kMinPartLength) &&
                    (absl::StrContains(candidate, name) || absl::StrContains(name, candidate));
  return part ? std::optional<int>(longer) : std::nullopt;
}

}  // namespace

std::vector<std::string> NearNames(absl::string_view name,
                                   absl::Span<const absl::string_view> candidates) {
  constexpr int kMost = 3;
  std::vector<std::pair<int, absl::string_view>> near;
  for (const absl::string_view candidate : candidates) {
    if (const std::optional<int> distance = Distance(name, candidate)) {
      near.emplace_back(*distance, candidate);
    }
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> names;
  for (const auto& [distance, candidate] : near) {
    if (std::ssize(names) == kMost) break;
    names.emplace_back(candidate);
  }
  return names;
}

std::string NearNamesHint(absl::string_view name, absl::Span<const absl::string_view> candidates) {
  const std::vector<std::string> names = NearNames(name, candidates);
  if (names.empty()) return "";
  return absl::StrCat("; nearest: '", absl::StrJoin(names, "', '"), "'");
}

}  // namespace interp
