#include "core/array/tape.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/array/array_runtime.h"

namespace interp {
namespace {

// The latest of those that record, each with the one before it.
thread_local Tape* latest_tape = nullptr;
thread_local int num_pauses = 0;

}  // namespace

Tape::Tape() : outer_(std::exchange(latest_tape, this)) {}
Tape::~Tape() { Stop(); }

// Tapes end in any order.
void Tape::Stop() {
  for (Tape** at = &latest_tape; *at != nullptr; at = &(*at)->outer_) {
    if (*at != this) continue;
    *at = outer_;
    return;
  }
}

Tape* Tape::Current() { return num_pauses == 0 ? latest_tape : nullptr; }
Tape::Pause::Pause() { ++num_pauses; }
Tape::Pause::~Pause() { --num_pauses; }

absl::Status Tape::CheckWrite(const Array& into) const {
  if (!used_.contains(ArrayAccess::chunk(into).get())) return absl::OkStatus();
  return InvalidArgument("writes into an array ", DescribeArray(into),
                         " that a recorded op uses: its gradient would see other values");
}

bool Tape::Wants(const OpDef& def, absl::string_view output) {
  if (Current() == nullptr) return false;
  return def.gradient.make != nullptr || absl::c_linear_search(def.gradient.inputs, output);
}

void Tape::Note(const OpDef& def, const std::vector<Attr>& attrs, ArraySlots inputs,
                ArraySlots outputs) {
  for (const ArraySlots* slots : {&inputs, &outputs}) {
    for (const auto& [slot, arrays] : *slots) {
      for (const Array& array : arrays) {
        if (array) used_.emplace(ArrayAccess::chunk(array).get(), ArrayAccess::num_writes(array));
      }
    }
  }
  steps_.push_back({&def, attrs, std::move(inputs), std::move(outputs)});
}

absl::Status Tape::NoteAs(absl::string_view type, absl::string_view slot,
                          const std::vector<Attr>& attrs, const Array& from, const Array& to) {
  Tape* const tape = Current();
  if (tape == nullptr) return absl::OkStatus();
  const OpDef* def = from.runtime().ops().Find(type);
  if (def == nullptr) {
    return NotFound("no op named '", type,
                    "' is registered, which a view or a copy in a recording needs");
  }
  tape->Note(*def, attrs, {{slot, {from}}}, {{"Out", {to}}});
  return absl::OkStatus();
}

absl::Status Tape::NoteSlice(const Array& from, const Array& view, int64_t begin, int64_t end) {
  return NoteAs("slice", "Input",
                {{"axes", std::vector<int64_t>{0}},
                 {"starts", std::vector<int64_t>{begin}},
                 {"ends", std::vector<int64_t>{end}}},
                from, view);
}

absl::Status Tape::NoteReshape(const Array& from, const Array& view) {
  const absl::Span<const int64_t> dims = view.shape().dims();
  return NoteAs("reshape", "X", {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}}, from,
                view);
}

absl::Status Tape::NoteCopy(const Array& from, const Array& to) {
  return NoteAs("assign", "X", {}, from, to);
}

}  // namespace interp
