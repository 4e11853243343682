#include "passes/import/detached_values.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/any_op.h"
#include "core/each_argument.h"
#include "core/sub_blocks.h"
#include "passes/copy_beside.h"
#include "passes/inserted_ops.h"
#include "passes/op_effects.h"
#include "passes/var_uses.h"

namespace interp {
namespace {

bool Shares(const Op& op) {
  const Slot* const x = op.FindInput("X");
  const Slot* const out = op.FindOutput("Out");
  return op.type == "share_data" && x != nullptr && x->args.size() == 1 && out != nullptr &&
         out->args.size() == 1;
}

class Follower {
 public:
  Follower(Program& program, const OpRegistry& ops)
      : program_(program),
        ops_(ops),
        names_(program.names.size()),
        callers_(program.blocks.size()),
        added_(program.blocks.size()) {
    for (size_t id = 0; id < names_.size(); ++id) names_[id].root = static_cast<VarId>(id);
    for (size_t b = 0; b < program.blocks.size(); ++b) NoteBlock(static_cast<int32_t>(b));
  }

  absl::Status Run() {
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      const std::vector<Op>& ops = program_.blocks[b].ops;
      for (size_t i = 0; i < ops.size(); ++i) {
        if (Shares(ops[i])) Follow({static_cast<int32_t>(b), static_cast<int64_t>(i)});
      }
    }
    if (repeated_ > kMostRepeated) {
      return InvalidArgument("share_data is to be repeated more than ", kMostRepeated,
                             " times for what is written behind it");
    }
    for (size_t b = 0; b < program_.blocks.size(); ++b) added_[b].PutInto(program_.blocks[b]);
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  // Loops that write many variables, each shared many times, multiply.
  static constexpr int64_t kMostRepeated = int64_t{1} << 20;

  struct Place {
    int32_t block = VarUse::kNowhere;
    int64_t position = -1;
  };
  struct Write {
    Place place;
    bool rebinds = false;  // gives the variable the memory of another one
  };
  struct Name {
    int32_t declared = VarUse::kNowhere;  // the block that does
    bool persistable = false;
    bool named = false;  // in an attribute of an op that runs a block
    VarId root = -1;     // the variable whose memory it shares
    std::vector<Write> writes = {};
    std::vector<Place> reads = {};
  };

  void NoteBlock(int32_t block) {
    for (const Var& var : program_.blocks[block].vars) {
      int32_t& declared = names_[var.id].declared;
      declared = declared == VarUse::kNowhere ? block : VarUse::kSeveralBlocks;
      names_[var.id].persistable |= var.persistable;
    }
    const std::vector<Op>& ops = program_.blocks[block].ops;
    for (size_t i = 0; i < ops.size(); ++i) NoteOp(ops[i], {block, static_cast<int64_t>(i)});
  }

  // What a block reads and writes counts there, not where it is run.
  void NoteOp(const Op& op, Place place) {
    if (HasSubBlock(op)) {
      NoteNames(op);
      ForEachSubBlock(op, [&](int32_t inner) {
        Place& caller = callers_[inner];
        caller = caller.block == VarUse::kNowhere ? place : Place{VarUse::kSeveralBlocks, -1};
      });
      return;
    }
    for (const VarId id : EachArgument(op.inputs)) names_[id].reads.push_back(place);
    const OpDef* const def = ops_.Find(op.type);
    const bool rebinds = op.type == "share_data" || (def != nullptr && !def->view.empty());
    for (const VarId id : EachArgument(op.outputs)) {
      if (!LeavesUntouched(op, id)) names_[id].writes.push_back({place, rebinds});
    }
  }

  // recurrent names its states so.
  void NoteNames(const Op& op) {
    for (const Attr& attr : op.attrs) {
      const auto* const names = std::get_if<std::vector<std::string>>(&attr.value);
      if (names == nullptr || attr.name == "skip_eager_deletion_vars") continue;
      if (attr.name == "op_role_var") continue;
      for (const std::string& name : *names) {
        if (const VarId id = program_.Find(name); id >= 0) names_[id].named = true;
      }
    }
  }

  // The position of the op of `block` that is at `place`, or runs the block that is. Nothing where
  // several ops do.
  std::optional<int64_t> PositionIn(int32_t block, Place place) const {
    for (size_t depth = 0; depth <= callers_.size() && place.block >= 0; ++depth) {
      if (place.block == block) return place.position;
      place = callers_[place.block];
    }
    return std::nullopt;
  }

  // Notes where the share_data at `place` is to be repeated.
  void Follow(Place place) {
    const Op& op = program_.blocks[place.block].ops[place.position];
    const VarId x = names_[op.FindInput("X")->args[0]].root;
    const VarId out = op.FindOutput("Out")->args[0];
    const bool one_place = names_[out].declared == place.block && names_[x].declared == place.block;
    if (x == out || !one_place || names_[out].writes.size() != 1) return;
    if (names_[x].named || names_[out].named) return;
    names_[out].root = x;
    const Timeline& timeline = TimelineOf(x, place.block);
    Sharing sharing = {.x = x,
                       .out = out,
                       .block = place.block,
                       .begin = place.position,
                       .end = timeline.EndOf(place.position)};
    for (const int64_t read : ReadsOf(out, place.block)) Feed(timeline, read, sharing);
  }

  // What changes a variable, by the position of an op in the block that declares it. Either the op
  // writes, or blocks that it runs do.
  struct Timeline {
    std::vector<int64_t> positions = {};          // ascending, no two alike
    std::vector<std::vector<Place>> writes = {};  // by index into `positions`
    std::vector<int64_t> rebinds = {};            // positions, ascending

    int64_t EndOf(int64_t begin) const {
      const auto it = std::upper_bound(rebinds.begin(), rebinds.end(), begin);
      return it == rebinds.end() ? kNever : *it;
    }
  };
  struct Sharing {
    VarId x = -1;
    VarId out = -1;
    int32_t block = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t seen = -1;  // index of the last writes that a read has seen
  };

  const Timeline& TimelineOf(VarId x, int32_t block) {
    const auto [it, is_new] = timelines_.try_emplace(x);
    Timeline& timeline = it->second;
    if (!is_new) return timeline;
    std::map<int64_t, std::vector<Place>> writes;
    for (const Write& write : names_[x].writes) {
      const std::optional<int64_t> position = PositionIn(block, write.place);
      if (!position.has_value()) continue;
      writes[*position].push_back(write.place);
      if (write.rebinds) timeline.rebinds.push_back(*position);
    }
    std::sort(timeline.rebinds.begin(), timeline.rebinds.end());
    for (auto& [position, places] : writes) {
      timeline.positions.push_back(position);
      timeline.writes.push_back(std::move(places));
    }
    return timeline;
  }

  // Positions, ascending. What is persistable is read in the end.
  std::vector<int64_t> ReadsOf(VarId out, int32_t block) const {
    std::vector<int64_t> reads;
    for (const Place read : names_[out].reads) {
      if (const std::optional<int64_t> position = PositionIn(block, read)) {
        reads.push_back(*position);
      }
    }
    if (names_[out].persistable) reads.push_back(kNever - 1);
    std::sort(reads.begin(), reads.end());
    return reads;
  }

  // Repeats the share_data behind what a read may see: the last write of the block itself, and the
  // later ones of blocks that ops run, which may not run. A block that reads may see what its trip
  // before has written.
  void Feed(const Timeline& timeline, int64_t read, Sharing& sharing) {
    const std::vector<int64_t>& positions = timeline.positions;
    const int64_t last = std::min(read, sharing.end - 1);
    int64_t i = std::upper_bound(positions.begin(), positions.end(), last) - positions.begin() - 1;
    for (const int64_t seen = sharing.seen; i > seen && positions[i] > sharing.begin; --i) {
      if (repeated_ > kMostRepeated) return;
      const bool within = timeline.writes[i].front().block != sharing.block;
      if (positions[i] == read && !within) continue;
      for (const Place write : timeline.writes[i]) RepeatBehind(write, sharing);
      sharing.seen = std::max(sharing.seen, i);
      if (!within) return;
    }
  }

  void RepeatBehind(Place write, const Sharing& sharing) {
    if (++repeated_ > kMostRepeated || IsGradient(write.block)) return;
    const Op& writer = program_.blocks[write.block].ops[write.position];
    added_[write.block].AddBefore(static_cast<size_t>(write.position) + 1,
                                  CopyBeside(writer, "share_data", sharing.x, sharing.out));
  }

  bool IsGradient(int32_t block) const { return program_.blocks[block].forward_block_idx > 0; }

  Program& program_;
  const OpRegistry& ops_;
  std::vector<Name> names_;         // by VarId
  std::vector<Place> callers_;      // by block: the op that runs it
  std::vector<InsertedOps> added_;  // by block
  absl::flat_hash_map<VarId, Timeline> timelines_;
  int64_t repeated_ = 0;
};

}  // namespace

absl::StatusOr<Program> FollowDetachedValues(Program program, const PassContext& context) {
  if (AnyOp(program, Shares)) INTERP_RETURN_IF_ERROR(Follower(program, context.ops).Run());
  return program;
}

}  // namespace interp
