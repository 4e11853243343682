// Tape: what was done to arrays, so that gradients can be found afterwards.
//
//   Tape tape;                                        // records from here on
//   Array loss = ...;                                 // ops on w and x
//   std::vector<Array> gradients = *tape.Backward(loss, {w});
//
// Gradients are those of programs: each op's OpDef::gradient says which ops compute them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/array/invoke.h"

namespace interp {

// Records what Invoke, copies and views do on its thread from construction to destruction, or to
// Stop; of several that record the latest does. Keeps the arrays of what it has recorded. Used by
// one thread.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  void Stop();

  // The gradients of `loss` for `sources`, in their order, pushed as operations; an array that is
  // none for a source that the loss does not depend on. May be called again, also for other
  // sources.
  // Errors: InvalidArgument for a loss that is not one float, for an array that was written to
  // after an op on the way had used it and for one that shares memory with what gradients pass
  // although the tape has seen no view being made, Unimplemented for an op on the way that has no
  // gradient, and those of Invoke.
  absl::StatusOr<std::vector<Array>> Backward(const Array& loss, absl::Span<const Array> sources);

  // For Invoke and for views. That of this thread; null when nothing is recorded.
  static Tape* Current();
  // Nothing is recorded on this thread while it lives.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  };
  // InvalidArgument when a recorded op has used the array, which is to be written.
  absl::Status CheckWrite(const Array& into) const;
  // Whether the gradient of the op may want that output.
  static bool Wants(const OpDef& def, absl::string_view output);
  // The names of slots are those of the definition, which lives longer than the caller's.
  void Note(const OpDef& def, const std::vector<Attr>& attrs, ArraySlots inputs,
            ArraySlots outputs);
  static absl::Status NoteSlice(const Array& from, const Array& view, int64_t begin, int64_t end);
  static absl::Status NoteReshape(const Array& from, const Array& view);
  static absl::Status NoteCopy(const Array& from, const Array& to);

 private:
  struct Step {
    const OpDef* def;
    std::vector<Attr> attrs;
    ArraySlots inputs;
    ArraySlots outputs;
  };
  friend class TapeBackward;
  static absl::Status NoteAs(absl::string_view type, absl::string_view slot,
                             const std::vector<Attr>& attrs, const Array& from, const Array& to);

  std::vector<Step> steps_;
  // With the number of writes (Chunk::num_writes) at the first use.
  absl::flat_hash_map<const Chunk*, uint64_t> used_;
  Tape* outer_ = nullptr;
};

}  // namespace interp
