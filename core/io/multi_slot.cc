#include "core/io/multi_slot.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/quoted.h"

namespace interp {
namespace {

// The words of a line, one after another.
class Words {
 public:
  explicit Words(absl::string_view line) : left_(line) {}

  // Empty at the end of the line.
  absl::string_view Next() {
    left_ = absl::StripLeadingAsciiWhitespace(left_);
    size_t size = 0;
    while (size < left_.size() && !absl::ascii_isspace(static_cast<unsigned char>(left_[size]))) {
      ++size;
    }
    const absl::string_view word = left_.substr(0, size);
    left_.remove_prefix(size);
    return word;
  }
  // Of so many letters no more words can be.
  size_t num_letters() const { return left_.size(); }

 private:
  absl::string_view left_;
};

std::string QuotedWord(absl::string_view word) { return Quoted(word.substr(0, 40)); }

absl::Status NoNumber(absl::string_view word, absl::string_view expected) {
  if (word.empty()) return InvalidArgument("the line ends, expected ", expected);
  return InvalidArgument(QuotedWord(word), " is no ", expected);
}

absl::Status AppendValue(absl::string_view word, const DataSlot& slot, SlotColumn& column) {
  if (slot.is_unused) return word.empty() ? NoNumber(word, "value") : absl::OkStatus();
  if (slot.is_float) {
    float value = 0;
    if (!absl::SimpleAtof(word, &value)) return NoNumber(word, "number");
    // Too large for float32, or written as nan or inf: one of these would spoil all parameters.
    if (!std::isfinite(value)) return NoNumber(word, "finite number of 32 bits");
    column.floats.push_back(value);
    return absl::OkStatus();
  }
  int64_t id = 0;
  uint64_t wide = 0;
  if (!absl::SimpleAtoi(word, &id)) {
    if (!absl::SimpleAtoi(word, &wide)) return NoNumber(word, "whole number of 64 bits");
    id = static_cast<int64_t>(wide);
  }
  column.ids.push_back(id);
  return absl::OkStatus();
}

absl::Status ParseSlot(const DataSlot& slot, Words& words, SlotColumn& column) {
  const absl::string_view word = words.Next();
  int64_t count = 0;
  if (!absl::SimpleAtoi(word, &count) || count < 0) return NoNumber(word, "number of values");
  if (slot.width > 0 && count != slot.width) {
    return InvalidArgument("has ", count, " values, expected ", slot.width);
  }
  if (count == 0) {
    return InvalidArgument(
        "has no values; a sample without any needs one for padding, as in '1 0'");
  }
  if (count > static_cast<int64_t>(words.num_letters())) {
    return InvalidArgument("says ", count, " values, which the line does not have");
  }
  for (int64_t i = 0; i < count; ++i) {
    INTERP_RETURN_IF_ERROR(AppendValue(words.Next(), slot, column));
  }
  column.begins.push_back(column.begins.back() + (slot.is_unused ? 0 : count));
  return absl::OkStatus();
}

// Returns the bytes of what was appended.
absl::StatusOr<size_t> ParseLine(absl::string_view line, absl::Span<const DataSlot> slots,
                                 SlotTable& table) {
  Words words(line);
  size_t bytes = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t before = table[i].begins.back();
    const absl::Status parsed = ParseSlot(slots[i], words, table[i]);
    if (!parsed.ok()) return Annotate(parsed, absl::StrCat("slot '", slots[i].name, "'"));
    const auto added = static_cast<size_t>(table[i].begins.back() - before);
    bytes += sizeof(int64_t) + added * (slots[i].is_float ? sizeof(float) : sizeof(int64_t));
  }
  const absl::string_view more = words.Next();
  if (more.empty()) return bytes;
  return InvalidArgument(QuotedWord(more), " follows the last slot, '", slots.back().name, "'");
}

}  // namespace

int64_t NumSamples(const SlotTable& table) {
  return table.empty() ? 0 : std::ssize(table[0].begins) - 1;
}

absl::Status ParseMultiSlot(absl::string_view text, absl::Span<const DataSlot> slots,
                            size_t max_bytes, SlotTable& table) {
  size_t number = 0;
  size_t bytes = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const absl::StatusOr<size_t> added = ParseLine(line, slots, table);
    if (!added.ok()) return Annotate(added.status(), absl::StrCat("line ", number));
    bytes += *added;
    if (bytes > max_bytes) {
      return ResourceExhausted("line ", number, ": the values take more than ", max_bytes,
                               " bytes");
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
