#include "core/array/tape.h"

#include <algorithm>
#include <utility>

#include "core/array/array_runtime.h"

namespace interp {
namespace {

thread_local Tape* current_tape = nullptr;

}  // namespace

Tape::Tape() : outer_(std::exchange(current_tape, this)) {}
Tape::~Tape() { Stop(); }

void Tape::Stop() {
  if (records_ && current_tape == this) current_tape = outer_;
  records_ = false;
}

Tape* Tape::Current() { return current_tape; }
Tape::Pause::Pause() : paused_(std::exchange(current_tape, nullptr)) {}
Tape::Pause::~Pause() { current_tape = paused_; }

absl::Status Tape::CheckWrites(const ArraySlots& into) const {
  for (const auto& [slot, arrays] : into) {
    for (const Array& array : arrays) {
      if (!array || !used_.contains(ArrayAccess::chunk(array).get())) continue;
      return InvalidArgument("writes into an array ", DescribeArray(array),
                             " that a recorded op uses: its gradient would see other values");
    }
  }
  return absl::OkStatus();
}

bool Tape::Wants(const OpDef& def, absl::string_view output) {
  if (current_tape == nullptr) return false;
  return def.gradient.make != nullptr ||
         std::find(def.gradient.inputs.begin(), def.gradient.inputs.end(), output) !=
             def.gradient.inputs.end();
}

void Tape::Note(const OpDef& def, const std::vector<Attr>& attrs, const ArraySlots& inputs,
                const ArraySlots& outputs) {
  steps_.push_back({&def, attrs, inputs, outputs});
  for (const ArraySlots* slots : {&inputs, &outputs}) {
    for (const auto& [slot, arrays] : *slots) {
      for (const Array& array : arrays) {
        if (array) used_.insert(ArrayAccess::chunk(array).get());
      }
    }
  }
}

absl::Status Tape::NoteView(absl::string_view type, absl::string_view slot,
                            const std::vector<Attr>& attrs, const Array& from, const Array& view) {
  if (current_tape == nullptr) return absl::OkStatus();
  const OpDef* def = from.runtime().ops().Find(type);
  if (def == nullptr) {
    return NotFound("no op named '", type, "' is registered, which a view of a recording needs");
  }
  current_tape->Note(*def, attrs, {{slot, {from}}}, {{"Out", {view}}});
  return absl::OkStatus();
}

absl::Status Tape::NoteSlice(const Array& from, const Array& view, int64_t begin, int64_t end) {
  return NoteView("slice", "Input",
                  {{"axes", std::vector<int64_t>{0}},
                   {"starts", std::vector<int64_t>{begin}},
                   {"ends", std::vector<int64_t>{end}}},
                  from, view);
}

absl::Status Tape::NoteReshape(const Array& from, const Array& view) {
  const absl::Span<const int64_t> dims = view.shape().dims();
  return NoteView("reshape", "X", {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}}, from,
                  view);
}

}  // namespace interp
