#include "core/kvstore/store_listener.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/catching.h"
#include "core/kvstore/two_bit.h"

namespace interp {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 40;

StoreReply ReplyOf(const absl::Status& status) {
  StoreReply reply{.code = static_cast<int32_t>(status.code())};
  const size_t length = std::min(status.message().size(), reply.message.size() - 1);
  std::memcpy(reply.message.data(), status.message().data(), length);
  return reply;
}

}  // namespace

// One request. Lives until the server has it; the next one is listened for when that has begun.
class StoreListener::Hearing : public std::enable_shared_from_this<Hearing> {
 public:
  Hearing(StoreListener& listener, int rank) : listener_(listener), rank_(rank) {}

  // What follows runs on the thread that communicates.
  void Start() {
    const absl::Status status = Catching([&]() -> absl::Status {
      INTERP_ASSIGN_OR_RETURN(header_, BytesOf(StoreRequest{}));
      return After(Receive(kStoreRequestTag, header_, /*patient=*/true),
                   [](Hearing& self) { return self.TakeRequest(); });
    });
    if (!status.ok()) listener_.End(status);
  }

 private:
  using Step = absl::Status (*)(Hearing&);

  StartedMessage Receive(int tag, Tensor& tensor, bool patient = false) {
    return ReceiveTensor(listener_.ring_, rank_, listener_.first_tag_ + tag, tensor, patient);
  }

  absl::Status After(const StartedMessage& message, Step step) {
    INTERP_RETURN_IF_ERROR(message.status());
    if (*message == nullptr) return step(*this);
    (*message)->Then([self = shared_from_this(), step](const absl::Status& status) {
      const absl::Status next = status.ok() ? Catching([&] { return step(*self); }) : status;
      if (!next.ok()) self->listener_.End(next);
    });
    return absl::OkStatus();
  }

  absl::Status TakeRequest() {
    task_.request = MessageIn<StoreRequest>(header_);
    listener_.Count();
    if (task_.request.verb == StoreVerb::kLeave) {
      listener_.End(absl::OkStatus());
      return absl::OkStatus();
    }
    INTERP_RETURN_IF_ERROR(MakeRoom());
    return After(Receive(kStoreDataTag, rows_), [](Hearing& self) {
      return self.After(self.Receive(kStoreDataTag, self.task_.values),
                        [](Hearing& whole) { return whole.Submit(); });
    });
  }

  // For what follows the request.
  absl::Status MakeRoom() {
    const StoreRequest& request = task_.request;
    if (request.verb == StoreVerb::kFlush) return absl::OkStatus();
    INTERP_ASSIGN_OR_RETURN(const StoreServer::Key key, listener_.server_.Find(request.key));
    const bool known = request.verb >= StoreVerb::kPush && request.verb < StoreVerb::kFlush;
    if (!known || request.num_rows < 0 || request.num_rows > kMostRows) {
      return InvalidArgument("rank ", rank_, " asks for ", static_cast<int>(request.verb), " of ",
                             request.num_rows, " rows of key '", key.name, "'");
    }
    INTERP_ASSIGN_OR_RETURN(rows_, NewTensor(DType::kInt64, Shape{request.num_rows}));
    if (IsAnswered(request.verb)) return absl::OkStatus();
    const bool codes = request.verb == StoreVerb::kPushCodes;
    Shape shape = codes ? ShapeOfCodes(key.shape) : key.shape;
    if (request.verb == StoreVerb::kPushRows) shape[0] = request.num_rows;
    INTERP_ASSIGN_OR_RETURN(task_.values, NewTensor(codes ? DType::kUInt8 : key.dtype, shape));
    return absl::OkStatus();
  }

  absl::Status Submit() {
    if (rows_.numel() > 0 && rows_.has_memory()) {
      const auto* const rows = rows_.data<int64_t>();
      task_.rows.assign(rows, rows + rows_.numel());
    }
    StoreListener* const listener = &listener_;
    if (IsAnswered(task_.request.verb)) {
      task_.answer = [listener, rank = rank_](const absl::StatusOr<Tensor>& answer) {
        listener->Answer(rank, answer);
      };
    }
    task_.then = [listener, rank = rank_] { listener->Hear(rank); };
    listener_.server_.Submit(std::move(task_));
    return absl::OkStatus();
  }

  StoreListener& listener_;
  const int rank_;
  Tensor header_;
  Tensor rows_;
  StoreServer::Task task_;
};

StoreListener::StoreListener(Rings& rings, Communicator& ring, int first_tag, StoreServer& server)
    : rings_(rings),
      ring_(ring),
      first_tag_(first_tag),
      server_(server),
      num_heard_(ring.size() - 1) {
  for (int rank = 0; rank < ring.size(); ++rank) {
    if (rank != ring.rank()) Hear(rank);
  }
}

void StoreListener::Hear(int rank) {
  const absl::Status status = Catching([&] {
    std::make_shared<Hearing>(*this, rank)->Start();
    return absl::OkStatus();
  });
  if (!status.ok()) End(status);
}

void StoreListener::Count() {
  const std::scoped_lock lock(mutex_);
  ++num_requests_;
}

void StoreListener::WaitUntilAllHaveLeft() {
  std::unique_lock lock(mutex_);
  const auto all_left = [this] { return num_heard_ == 0; };
  for (int64_t before = -1; before != num_requests_;) {
    before = num_requests_;
    if (changed_.wait_for(lock, rings_.timeout(), all_left)) return;
  }
  lock.unlock();
  rings_.Fail(absl::DeadlineExceededError(
      absl::StrCat("store: rank ", ring_.rank(), " has ended its store, and for ",
                   rings_.timeout().count(), " ms nothing was heard of others who have not")));
  lock.lock();
  changed_.wait(lock, all_left);
}

void StoreListener::Answer(int rank, const absl::StatusOr<Tensor>& answer) {
  const int tag = first_tag_ + kStoreAnswerTag;
  const absl::Status sent = Catching([&]() -> absl::Status {
    INTERP_ASSIGN_OR_RETURN(const Tensor reply, BytesOf(ReplyOf(answer.status())));
    INTERP_RETURN_IF_ERROR(SendTensor(ring_, rank, tag, reply).status());
    if (!answer.ok()) return absl::OkStatus();
    return SendTensor(ring_, rank, tag, *answer).status();
  });
  if (!sent.ok()) rings_.Fail(sent);
}

void StoreListener::End(const absl::Status& status) {
  if (!status.ok()) rings_.Fail(status);
  const std::scoped_lock lock(mutex_);
  --num_heard_;
  changed_.notify_all();
}

}  // namespace interp
