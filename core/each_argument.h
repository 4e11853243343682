// EachArgument, HasArgument: the arguments of an op's inputs or outputs as one range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/program.h"

namespace interp {

// The arguments of `slots`, a std::vector<Slot>, const or not, which keep(id) is true of. Borrows
// the slots; iterators borrow the range.
template <typename Slots, typename Keep>
class ArgumentRange {
 public:
  ArgumentRange(Slots& slots, Keep keep) : slots_(&slots), keep_(std::move(keep)) {}

  class Iterator {
   public:
    // The names that the standard library looks for.
    // NOLINTBEGIN(readability-identifier-naming)
    using iterator_category = std::forward_iterator_tag;
    using value_type = VarId;
    using difference_type = std::ptrdiff_t;
    using reference = decltype((std::declval<Slots&>()[0].args[0]));
    using pointer = std::remove_reference_t<reference>*;
    // NOLINTEND(readability-identifier-naming)

    Iterator() = default;
    Iterator(const ArgumentRange& range, size_t slot) : range_(&range), slot_(slot) { Settle(); }

    reference operator*() const { return (*range_->slots_)[slot_].args[arg_]; }
    Iterator& operator++() {
      ++arg_;
      Settle();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const {
      return slot_ == other.slot_ && arg_ == other.arg_;
    }

   private:
    // Goes on to the next argument that is kept, unless this one is.
    void Settle() {
      const Slots& slots = *range_->slots_;
      for (; slot_ < slots.size(); ++slot_, arg_ = 0) {
        for (; arg_ < slots[slot_].args.size(); ++arg_) {
          if (range_->keep_(slots[slot_].args[arg_])) return;
        }
      }
    }

    const ArgumentRange* range_ = nullptr;
    size_t slot_ = 0;
    size_t arg_ = 0;
  };

  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, slots_->size()}; }

 private:
  Slots* slots_;
  Keep keep_;
};

// The arguments of all slots, in their order; they can be changed where the slots can:
//
//   for (const VarId id : EachArgument(op.inputs)) ++reads[id];
//   for (VarId& id : EachArgument(op.outputs)) id = renamed[id];
template <typename Slots>
auto EachArgument(Slots& slots) {
  return ArgumentRange(slots, [](VarId) { return true; });
}

// Those that are variables: without the empty name.
inline auto EachNamedArgument(const Program& program, const std::vector<Slot>& slots) {
  return ArgumentRange(slots, [&program](VarId id) { return program.NameOf(id) != kEmptyVarName; });
}

// Whether `id` is an argument in one of the slots.
inline bool HasArgument(const std::vector<Slot>& slots, VarId id) {
  return std::any_of(slots.begin(), slots.end(), [id](const Slot& slot) {
    return std::find(slot.args.begin(), slot.args.end(), id) != slot.args.end();
  });
}

}  // namespace interp
