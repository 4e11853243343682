#include "core/array/op_cache.h"

#include <utility>

#include "core/attr_reader.h"

namespace interp {

absl::Status CachedOp::Parse() {
  if (def_.parse == nullptr) return absl::OkStatus();
  AttrReader reader(op_);
  INTERP_ASSIGN_OR_RETURN(attrs_, def_.parse(reader));
  return absl::OkStatus();
}

std::unique_ptr<KernelState> CachedOp::TakeState() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (states_.empty()) return nullptr;
  std::unique_ptr<KernelState> state = std::move(states_.back());
  states_.pop_back();
  return state;
}

void CachedOp::ReturnState(std::unique_ptr<KernelState> state) {
  if (state == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  states_.push_back(std::move(state));
}

CachedOp::OfStream& CachedOp::StateOf(const Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return of_streams_[&stream];
}

absl::StatusOr<std::shared_ptr<CachedOp>> OpCache::Get(const OpDef& def, Op op) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const std::shared_ptr<CachedOp>& known : ops_[&def]) {
      if (known->op().inputs == op.inputs && known->op().attrs == op.attrs) return known;
    }
  }
  auto made = std::make_shared<CachedOp>(def, std::move(op));
  INTERP_RETURN_IF_ERROR(made->Parse());
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<CachedOp>>& of_type = ops_[&def];
  if (of_type.size() < kMaxOfType) {
    made->Keep();
    of_type.push_back(made);
  }
  return made;
}

}  // namespace interp
