// InstructionRewriter: a list of instructions made anew, one by one, in the memory it has.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "interpreter/plan/instruction.h"

namespace interp {

// Takes the instructions of a list in order while others are appended in their place. Those that
// have no place, as more were appended than taken, wait in a list of their own until Finish. A list
// of a million instructions that no one grows is so never held twice.
//
//   InstructionRewriter rewriter(list);
//   while (!rewriter.done()) rewriter.Append(Changed(rewriter.Take()));
//   rewriter.Finish();
//
// Until Finish the list itself is not to be read.
class InstructionRewriter {
 public:
  // `list` is borrowed.
  explicit InstructionRewriter(std::vector<Instruction>& list) : list_(list) {}

  // Whether all instructions that the list had were taken.
  bool done() const { return taken_ == list_.size(); }

  Instruction Take() { return std::move(list_[taken_++]); }

  void Append(Instruction&& instruction) {
    if (made_ < taken_ && later_.empty()) {
      list_[made_++] = std::move(instruction);
    } else {
      later_.push_back(std::move(instruction));
    }
  }

  // REQUIRES: done().
  void Finish() {
    list_.resize(made_);
    list_.insert(list_.end(), std::make_move_iterator(later_.begin()),
                 std::make_move_iterator(later_.end()));
    later_.clear();
  }

 private:
  std::vector<Instruction>& list_;
  size_t taken_ = 0;
  size_t made_ = 0;  // those at the front of `list_`
  std::vector<Instruction> later_;
};

}  // namespace interp
