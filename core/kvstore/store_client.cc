#include "core/kvstore/store_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/array/array_runtime.h"
#include "core/base/catching.h"

namespace interp {
namespace {

absl::StatusOr<Tensor> NumbersOf(const std::vector<int64_t>& rows) {
  INTERP_ASSIGN_OR_RETURN(Tensor numbers, NewTensor(DType::kInt64, Shape{std::ssize(rows)}));
  std::copy(rows.begin(), rows.end(), numbers.mutable_data<int64_t>());
  return numbers;
}

absl::Status StatusOf(StoreReply reply, int rank) {
  if (reply.code == 0) return absl::OkStatus();
  reply.message.back() = 0;
  return Annotate(absl::Status(static_cast<absl::StatusCode>(reply.code), reply.message.data()),
                  absl::StrCat("rank ", rank, " of the store"));
}

}  // namespace

// One request on its way. Lives until it is answered, or has gone out where there is no answer.
class StoreClient::Asking : public std::enable_shared_from_this<Asking> {
 public:
  Asking(StoreClient& client, int home, const StoreRequest& request, Array in,
         std::vector<int64_t> rows, Array out)
      : client_(client),
        home_(home),
        request_(request),
        in_(std::move(in)),
        rows_(std::move(rows)),
        out_(std::move(out)) {}

  void Run(engine::Completion done) {
    const absl::Status ready = Catching([&] { return Prepare(done); });
    done_ = std::make_unique<engine::Completion>(std::move(done));
    if (!ready.ok()) return Finish(ready);
    const bool here = home_ == client_.ring_.rank();
    const absl::Status status = Catching([&] { return here ? AskHere() : AskThere(); });
    if (status.ok()) return;
    // A server may have heard a part.
    if (!here) client_.rings_->Fail(status);
    Finish(status);
  }

 private:
  absl::Status Prepare(engine::Completion& done) {
    // Of the errors that it returns, those of what was asked before are no reason not to ask.
    done.Start().IgnoreError();
    if (in_) {
      if (const engine::ErrorRef spoilt = client_.runtime_.engine().ErrorOf(in_.variable())) {
        return Annotate(spoilt->status, absl::StrCat("operation '", spoilt->operation, "'"));
      }
    }
    if (in_ && in_.is_rows()) {
      const Variable& value = ArrayAccess::chunk(in_)->value;
      rows_ = value.selected_rows->rows;
      request_.num_rows = std::ssize(rows_);
      values_ = value.tensor;
      values_.shape = in_.shape();
      values_.shape[0] = request_.num_rows;
    } else if (in_) {
      INTERP_ASSIGN_OR_RETURN(values_, ArrayAccess::Readable(in_));
    }
    if (out_ && out_.is_rows()) {
      Shape shape = out_.shape();
      shape[0] = request_.num_rows;
      INTERP_ASSIGN_OR_RETURN(result_, NewTensor(out_.dtype(), shape));
    } else if (out_) {
      INTERP_ASSIGN_OR_RETURN(result_,
                              ArrayAccess::Writable(out_, /*overwrites=*/true, done.context()));
    }
    return absl::OkStatus();
  }

  absl::Status AskHere() {
    StoreServer::Task task{.request = request_, .values = values_, .rows = rows_};
    if (!IsAnswered(request_.verb)) {
      task.then = [self = shared_from_this()] { self->Finish(absl::OkStatus()); };
    } else {
      task.answer = [self = shared_from_this()](const absl::StatusOr<Tensor>& answer) {
        if (answer.ok() && answer->size_bytes() > 0) {
          std::memcpy(self->result_.mutable_raw_data(), answer->raw_data(), answer->size_bytes());
        }
        self->Finish(answer.status());
      };
    }
    client_.server_->Submit(std::move(task));
    return absl::OkStatus();
  }

  absl::Status AskThere() {
    Communicator& ring = client_.ring_;
    INTERP_ASSIGN_OR_RETURN(const Tensor request, BytesOf(request_));
    INTERP_ASSIGN_OR_RETURN(const Tensor rows, NumbersOf(rows_));
    INTERP_ASSIGN_OR_RETURN(reply_, BytesOf(StoreReply{}));
    std::shared_ptr<CommRequest> last;
    const auto send = [&](int tag, const Tensor& tensor) -> absl::Status {
      INTERP_ASSIGN_OR_RETURN(std::shared_ptr<CommRequest> sent,
                              SendTensor(ring, home_, client_.first_tag_ + tag, tensor));
      if (sent != nullptr) last = std::move(sent);
      return absl::OkStatus();
    };
    INTERP_RETURN_IF_ERROR(send(kStoreRequestTag, request));
    INTERP_RETURN_IF_ERROR(send(kStoreDataTag, rows));
    INTERP_RETURN_IF_ERROR(send(kStoreDataTag, values_));
    if (!IsAnswered(request_.verb)) {
      last->Then([self = shared_from_this()](const absl::Status& status) { self->Finish(status); });
      return absl::OkStatus();
    }
    INTERP_ASSIGN_OR_RETURN(
        last, ReceiveTensor(ring, home_, client_.first_tag_ + kStoreAnswerTag, reply_));
    last->Then([self = shared_from_this()](const absl::Status& status) {
      const absl::Status next = status.ok() ? Catching([&] { return self->TakeAnswer(); }) : status;
      if (!next.ok()) self->Finish(next);
    });
    return absl::OkStatus();
  }

  absl::Status TakeAnswer() {
    INTERP_RETURN_IF_ERROR(StatusOf(MessageIn<StoreReply>(reply_), home_));
    INTERP_ASSIGN_OR_RETURN(
        const std::shared_ptr<CommRequest> values,
        ReceiveTensor(client_.ring_, home_, client_.first_tag_ + kStoreAnswerTag, result_));
    if (values == nullptr) {
      Finish(absl::OkStatus());
      return absl::OkStatus();
    }
    values->Then([self = shared_from_this()](const absl::Status& status) { self->Finish(status); });
    return absl::OkStatus();
  }

  // Arrays end before the operation: their runtime may end after it.
  void Finish(const absl::Status& status) {
    if (!status.ok()) client_.Note(status);
    if (status.ok() && out_ && out_.is_rows()) {
      Variable& value = ArrayAccess::chunk(out_)->value;
      value.tensor = std::move(result_);
      value.selected_rows = RowIndex{.rows = rows_, .height = out_.shape()[0]};
    }
    const std::unique_ptr<engine::Completion> done = std::move(done_);
    in_ = {};
    out_ = {};
    static_cast<void>(done->Done(status));
  }

  StoreClient& client_;
  const int home_;
  StoreRequest request_;
  Array in_;
  std::vector<int64_t> rows_;
  Array out_;
  Tensor values_;
  Tensor reply_;
  Tensor result_;
  std::unique_ptr<engine::Completion> done_;
};

StoreClient::StoreClient(ArrayRuntime& runtime, std::shared_ptr<Rings> rings, Communicator& ring,
                         int first_tag)
    : runtime_(runtime), rings_(std::move(rings)), ring_(ring), first_tag_(first_tag) {
  for (int rank = 0; rank < ring_.size(); ++rank) {
    orders_.push_back(std::make_unique<CallOrder>(runtime_.engine(), "order of a server"));
  }
}

absl::StatusOr<std::unique_ptr<StoreClient>> StoreClient::Make(ArrayRuntime& runtime,
                                                               std::shared_ptr<Rings> rings) {
  INTERP_ASSIGN_OR_RETURN(const int tag, rings->TakeTags(kNumStoreTags));
  absl::StatusOr<std::unique_ptr<StoreServer>> server = StoreServer::Make(runtime);
  if (!server.ok()) {
    rings->Fail(server.status());  // the others come to ask
    return server.status();
  }
  // Starts no collectives there, and its messages have tags of their own.
  Communicator& all = rings->World();
  std::unique_ptr<StoreClient> client(new StoreClient(runtime, std::move(rings), all, tag));
  client->server_ = *std::move(server);
  client->listener_ =
      std::make_unique<StoreListener>(*client->rings_, client->ring_, tag, *client->server_);
  return client;
}

StoreClient::~StoreClient() {
  for (const auto& order : orders_) order->Finish();
  for (int rank = 0; rank < ring_.size(); ++rank) {
    if (rank != ring_.rank()) SayGoodbye(rank);
  }
  if (listener_ != nullptr) listener_->WaitUntilAllHaveLeft();
  rings_->GiveTags(first_tag_);  // the last message of each rank has come
}

void StoreClient::SayGoodbye(int rank) {
  const absl::StatusOr<Tensor> goodbye = BytesOf(StoreRequest{.verb = StoreVerb::kLeave});
  const StartedMessage sent = goodbye.ok()
                                  ? SendTensor(ring_, rank, first_tag_ + kStoreRequestTag, *goodbye)
                                  : goodbye.status();
  if (sent.ok()) {
    (*sent)->Wait().IgnoreError();
  } else {
    rings_->Fail(sent.status());
  }
}

void StoreClient::Note(const absl::Status& error) {
  const std::scoped_lock lock(mutex_);
  error_.Update(error);
}

absl::StatusOr<int> StoreClient::Init(const std::string& name, const Tensor& value) {
  const int number = num_keys_++;
  if (HomeOf(number) == ring_.rank()) {
    const absl::Status kept = Catching([&] { return server_->Init(number, name, value); });
    if (!kept.ok()) rings_->Fail(kept);  // the others come to ask for it
    INTERP_RETURN_IF_ERROR(kept);
  }
  return number;
}

absl::Status StoreClient::Ask(int home, const StoreRequest& request, const Array& in,
                              std::vector<int64_t> rows, const Array& out) {
  const auto asking = std::make_shared<Asking>(*this, home, request, in, std::move(rows), out);
  std::vector<engine::Variable> reads;
  std::vector<engine::Variable> writes;
  if (in) reads.push_back(in.variable());
  if (out) {
    writes.push_back(out.variable());
    ArrayAccess::CountWrite(out);
  }
  return orders_[static_cast<size_t>(home)]->Push(
      [asking](engine::Completion done) { asking->Run(std::move(done)); }, reads, writes,
      {.name = "ask a server",
       .property = engine::Property::kNoSkip,
       .priority = request.priority});
}

absl::Status StoreClient::Push(int key, const Array& values, float threshold, int32_t priority) {
  const StoreVerb verb = values.is_rows() ? StoreVerb::kPushRows
                         : threshold > 0  ? StoreVerb::kPushCodes
                                          : StoreVerb::kPush;
  return Ask(HomeOf(key), {.verb = verb, .key = key, .priority = priority, .threshold = threshold},
             values, {}, {});
}

absl::Status StoreClient::Pull(int key, const Array& out, int32_t priority) {
  return Ask(HomeOf(key), {.verb = StoreVerb::kPull, .key = key, .priority = priority}, {}, {},
             out);
}

absl::Status StoreClient::PullRows(int key, const std::vector<int64_t>& rows, const Array& out,
                                   int32_t priority) {
  return Ask(HomeOf(key),
             {.verb = StoreVerb::kPullRows,
              .key = key,
              .priority = priority,
              .num_rows = std::ssize(rows)},
             {}, rows, out);
}

absl::Status StoreClient::Flush() {
  for (int rank = 0; rank < ring_.size(); ++rank) {
    INTERP_RETURN_IF_ERROR(Ask(rank, {.verb = StoreVerb::kFlush}, {}, {}, {}));
  }
  for (const auto& order : orders_) order->Wait().IgnoreError();
  const std::scoped_lock lock(mutex_);
  return error_;
}

}  // namespace interp
