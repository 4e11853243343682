// What is kept of a push: the sum of its values, over all ranks where there are several.
#include "core/array/filled.h"
#include "core/array/invoke.h"
#include "core/kvstore/add_up.h"
#include "core/kvstore/kvstore.h"
#include "core/kvstore/two_bit.h"

namespace interp {

absl::StatusOr<std::vector<Array>> KVStore::Compress(Entry& entry, absl::Span<const Array> values,
                                                     float threshold, int32_t priority) {
  std::vector<Array> codes;
  for (size_t i = 0; i < values.size(); ++i) {
    const Array& value = values[i];
    if (i == entry.residuals.size()) entry.residuals.emplace_back();
    Array& residual = entry.residuals[i];
    if (!residual) {
      INTERP_ASSIGN_OR_RETURN(residual,
                              Filled(runtime_, value.shape(), DType::kFloat32, 0, value.place()));
    }
    INTERP_ASSIGN_OR_RETURN(residual, MoveTo(residual, value.place(), priority));
    INTERP_RETURN_IF_ERROR(RenewIfSpoilt(residual, priority));
    INTERP_ASSIGN_OR_RETURN(
        codes.emplace_back(),
        First(Invoke(runtime_, CompressDef(), {{"Grad", {value}}, {"Residual", {residual}}},
                     {{.name = "threshold", .value = threshold}},
                     {.priority = priority,
                      .outputs = {{"Codes", 1}},
                      .into = {{"ResidualOut", {residual}}}})));
  }
  return codes;
}

absl::StatusOr<Array> KVStore::SumOfCodes(const Entry& entry, absl::Span<const Array> codes,
                                          float threshold, int32_t priority) {
  std::vector<Array> values;
  for (const Array& code : codes) {
    INTERP_ASSIGN_OR_RETURN(const Array here, MoveTo(code, entry.stored.place(), priority));
    INTERP_ASSIGN_OR_RETURN(values.emplace_back(),
                            ValuesOfCodes(here, entry.stored.shape(), threshold, priority));
  }
  return AddUp(values, entry.stored.place(), priority);
}

absl::StatusOr<Array> KVStore::SumOverRanks(const Entry& entry, const Array& sum,
                                            int32_t priority) const {
  INTERP_ASSIGN_OR_RETURN(const Array own, MoveTo(sum, Place{}, priority));
  INTERP_ASSIGN_OR_RETURN(const Array all, ranks_->Sum(own, entry.key, priority));
  return MoveTo(all, entry.stored.place(), priority);
}

// Codes of different ranks have no sum: all of them go to all ranks, which add up what they mean.
// That depends on the threshold, so it is a part of what ranks compare.
absl::StatusOr<Array> KVStore::SumOfAllCodes(Entry& entry, const Array& sum, float threshold,
                                             int32_t priority) {
  INTERP_ASSIGN_OR_RETURN(const auto codes, Compress(entry, {&sum, 1}, threshold, priority));
  INTERP_ASSIGN_OR_RETURN(const Array own, MoveTo(codes[0], Place{}, priority));
  INTERP_ASSIGN_OR_RETURN(
      const Array all,
      ranks_->Gather(own, absl::StrCat("threshold ", threshold, ", ", entry.key), priority));
  std::vector<Array> parts;
  for (int rank = 0; rank < size(); ++rank) {
    INTERP_ASSIGN_OR_RETURN(parts.emplace_back(), all.At(rank));
  }
  return SumOfCodes(entry, parts, threshold, priority);
}

absl::StatusOr<Array> KVStore::Sum(Entry& entry, absl::Span<const Array> values,
                                   const Settings& settings, int32_t priority) {
  INTERP_RETURN_IF_ERROR(CheckTreatment(entry, values, settings));
  if (values[0].is_rows()) {
    INTERP_ASSIGN_OR_RETURN(const Array joined, JoinRows(values, priority));
    if (ranks_ == nullptr) return joined;
    return ranks_->GatherRows(joined, entry.key, priority);
  }
  const float threshold = settings.threshold;
  const Place home = entry.stored.place();
  if (ranks_ != nullptr) {
    INTERP_ASSIGN_OR_RETURN(const Array sum, AddUp(values, home, priority));
    return threshold > 0 ? SumOfAllCodes(entry, sum, threshold, priority)
                         : SumOverRanks(entry, sum, priority);
  }
  if (threshold == 0) return AddUp(values, home, priority);
  INTERP_ASSIGN_OR_RETURN(const auto codes, Compress(entry, values, threshold, priority));
  return SumOfCodes(entry, codes, threshold, priority);
}

}  // namespace interp
