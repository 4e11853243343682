#include "interpreter/train/checkpoint_state.h"

#include <xxhash.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace interp {
namespace {

constexpr absl::string_view kAnyVersion = "interp checkpoint ";
constexpr int64_t kVersion = 3;  // kHeader names it
constexpr absl::string_view kHeader = "interp checkpoint 3";
constexpr absl::string_view kHeaderWithoutChecksum = "interp checkpoint 2";
constexpr absl::string_view kChecksum = "checksum ";
constexpr int64_t kMost = int64_t{1} << 62;  // leaves room to count on

// Calls visit(name, field) for each line between the header and the variables.
template <typename State, typename Visit>
void ForEachField(State& state, const Visit& visit) {
  visit("step", state.step);
  visit("epoch", state.next.epoch);
  visit("batch", state.next.batch);
  visit("samples", state.order.num_samples);
  visit("batch_size", state.order.batches.batch_size);
  visit("drop_last", state.order.batches.drop_last);
  visit("shuffle", state.order.batches.shuffle);
  visit("shuffle_seed", state.order.batches.seed);
  visit("seed", state.random.seed);
  visit("stream", state.random.stream);
  visit("random_step", state.random.step);
}

// The same for lines that are there where the value is not `usual`.
template <typename State, typename Visit>
void ForEachRareField(State& state, const Visit& visit) {
  visit("shuffle_block", state.order.batches.shuffle_block, 0);
  visit("shuffle_buffer", state.order.batches.shuffle_buffer, 0);
  visit("num_parts", state.order.batches.num_parts, 1);
  visit("part_index", state.order.batches.part_index, 0);
}

bool ReadNumber(absl::string_view text, uint64_t& value) { return absl::SimpleAtoi(text, &value); }
bool ReadNumber(absl::string_view text, int64_t& value) {
  return absl::SimpleAtoi(text, &value) && value >= 0 && value < kMost;
}
bool ReadNumber(absl::string_view text, bool& value) {
  value = text == "1";
  return value || text == "0";
}

bool ReadChecksum(absl::string_view line, std::optional<uint64_t>& checksum) {
  constexpr size_t kDigits = 16;
  uint64_t sum = 0;
  if (!absl::ConsumePrefix(&line, kChecksum) || line.size() != kDigits ||
      absl::c_any_of(line, absl::ascii_isupper) || !absl::SimpleHexAtoi(line, &sum)) {
    return false;
  }
  checksum = sum;
  return true;
}

// A version of any length.
bool IsNewer(absl::string_view header) {
  if (!absl::ConsumePrefix(&header, kAnyVersion)) return false;
  if (header.empty() || !absl::c_all_of(header, absl::ascii_isdigit)) return false;
  int64_t version = 0;
  return !absl::SimpleAtoi(header, &version) || version > kVersion;
}

absl::string_view YesOrNo(bool value) { return value ? "yes" : "no"; }

// All but the checksum, under the header of its version.
std::string TextWithoutChecksum(const CheckpointState& state, absl::string_view header) {
  std::string text = absl::StrCat(header, "\n");
  ForEachField(state, [&](absl::string_view name, auto value) {
    absl::StrAppend(&text, name, " ", value, "\n");
  });
  ForEachRareField(state, [&](absl::string_view name, int64_t value, int64_t usual) {
    if (value != usual) absl::StrAppend(&text, name, " ", value, "\n");
  });
  // Escaped where they hold what would end the line.
  for (const std::string& name : state.names) {
    absl::StrAppend(&text, "variable ", absl::Utf8SafeCHexEscape(name), "\n");
  }
  return text;
}

// With what the elements do not tell: [1, 3] has those of [3].
uint64_t AddTensor(const Tensor& tensor, uint64_t sum) {
  std::string type(Name(tensor.dtype));
  absl::StrAppend(&type, " ", ToString(tensor.shape));
  for (const auto& level : tensor.lod) absl::StrAppend(&type, " ", absl::StrJoin(level, ","));
  sum = XXH64(type.data(), type.size(), sum);
  return XXH64(tensor.raw_data(), tensor.size_bytes(), sum);
}

}  // namespace

std::string ToText(const CheckpointState& state) {
  if (!state.checksum.has_value()) return TextWithoutChecksum(state, kHeaderWithoutChecksum);
  std::string text = TextWithoutChecksum(state, kHeader);
  absl::StrAppendFormat(&text, "%s%016x\n", kChecksum, *state.checksum);
  return text;
}

uint64_t ChecksumOf(const CheckpointState& state, absl::Span<const NamedTensor> values) {
  const std::string text = TextWithoutChecksum(state, kHeader);
  uint64_t sum = XXH64(text.data(), text.size(), /*seed=*/1);
  for (const auto& [name, tensor] : values) sum = AddTensor(tensor, sum);
  return sum;
}

// Long because it reads the format from its first line to its last.
absl::StatusOr<CheckpointState> ParseCheckpointState(const std::string& text) {
  std::vector<absl::string_view> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const bool summed = lines[0] == kHeader;
  const bool known = summed || lines[0] == kHeaderWithoutChecksum;
  if (lines.size() > 1 && IsNewer(lines[0])) {
    return Unimplemented("was written by a newer interp: found '", lines[0], "', expected '",
                         kHeader, "'; use that interp, or another folder");
  }
  CheckpointState state;
  size_t at = 1;
  bool whole = known && absl::EndsWith(text, "\n");
  if (whole && summed) {
    whole = ReadChecksum(lines.back(), state.checksum);
    lines.pop_back();
  }
  ForEachField(state, [&](absl::string_view name, auto& value) {
    absl::string_view line = at < lines.size() ? lines[at] : "";
    ++at;
    whole = whole && absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ") &&
            ReadNumber(line, value);
  });
  ForEachRareField(state, [&](absl::string_view name, int64_t& value, int64_t /*usual*/) {
    absl::string_view line = at < lines.size() ? lines[at] : "";
    if (!absl::ConsumePrefix(&line, name) || !absl::ConsumePrefix(&line, " ")) return;
    ++at;
    whole = whole && ReadNumber(line, value);
  });
  whole = whole && state.order.batches.batch_size > 0 &&
          state.order.batches.part_index < state.order.batches.num_parts &&
          state.next.batch < BatchesPerEpoch(state.order.num_samples, state.order.batches);
  if (!whole) {
    return DataLoss("no state of a checkpoint, or a damaged one");
  }
  for (; at < lines.size(); ++at) {
    absl::string_view name = lines[at];
    if (!absl::ConsumePrefix(&name, "variable ")) {
      return DataLoss("line ", at + 1, " is '", lines[at], "', expected 'variable NAME'");
    }
    std::string plain;
    state.names.push_back(absl::CUnescape(name, &plain) ? std::move(plain) : std::string(name));
  }
  return state;
}

absl::Status CheckSameOrder(const DataOrder& saved, const DataOrder& now) {
  const auto differ = [](absl::string_view what, const auto& was, const auto& is) {
    return InvalidArgument("was written with ", what, " ", was, ", and now ", what, " is ", is,
                           ": its position in the data would mean other samples; go on with ", was,
                           ", or train anew from its values (--params)");
  };
  if (saved.num_samples != now.num_samples) {
    return differ("number of samples", saved.num_samples, now.num_samples);
  }
  const BatchOptions& was = saved.batches;
  const BatchOptions& is = now.batches;
  if (was.batch_size != is.batch_size) return differ("batch size", was.batch_size, is.batch_size);
  if (was.num_parts != is.num_parts) return differ("number of parts", was.num_parts, is.num_parts);
  if (was.part_index != is.part_index) return differ("part", was.part_index, is.part_index);
  // A last batch that is full stays, with and without.
  if (BatchesPerEpoch(saved.num_samples, was) != BatchesPerEpoch(now.num_samples, is)) {
    return differ("drop_last", YesOrNo(was.drop_last), YesOrNo(is.drop_last));
  }
  if (was.shuffle != is.shuffle)
    return differ("shuffle", YesOrNo(was.shuffle), YesOrNo(is.shuffle));
  if (was.seed != is.seed) return differ("seed", was.seed, is.seed);
  if (was.shuffle_block != is.shuffle_block) {
    return differ("shuffle block", was.shuffle_block, is.shuffle_block);
  }
  if (was.shuffle_buffer != is.shuffle_buffer) {
    return differ("shuffle buffer", was.shuffle_buffer, is.shuffle_buffer);
  }
  return absl::OkStatus();
}

}  // namespace interp
