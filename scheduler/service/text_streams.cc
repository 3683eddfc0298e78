#include "scheduler/service/text_streams.h"

#include "scheduler/service/grpc_status.h"
#include "scheduler/service/queued_stream.h"

namespace troupe {

class QueuedText final
    : public QueuedStream<grpc::ServerWriteReactor<GenerateResponse>,
                          GenerateResponse> {
 public:
  QueuedText(TextStreams& table, grpc::CallbackServerContext* context)
      : QueuedStream(context, TextStreams::kQueueMax), table_(table) {}

  void set_request(int64_t request) { request_ = request; }

  void OnDone() override {
    table_.Done(request_, this);
    delete this;
  }

 protected:
  GenerateResponse Outgoing(GenerateResponse piece) const override {
    return piece;
  }

 private:
  TextStreams& table_;
  int64_t request_ = 0;
};

grpc::ServerWriteReactor<GenerateResponse>* TextStreams::Generate(
    grpc::CallbackServerContext* context, const GenerateRequest& request) {
  auto* stream = new QueuedText(*this, context);
  const absl::Status started =
      host_
          .Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
            auto id = cluster.Generate(request, now, out);
            if (id.ok()) {
              stream->set_request(*id);
              absl::MutexLock lock(&mutex_);
              streams_[*id] = stream;
            }
            return id;
          })
          .status();
  if (!started.ok()) stream->Close(ToGrpc(started));
  return stream;
}

void TextStreams::Carry(const Actions& actions) {
  for (const Action& action : actions) {
    const auto* reply = std::get_if<GenerateReply>(&action);
    if (reply == nullptr) continue;
    absl::MutexLock lock(&mutex_);
    const auto it = streams_.find(reply->request);
    if (it == streams_.end()) continue;
    if (!reply->response.text().empty() || reply->response.tokens() > 0) {
      it->second->Push(reply->response);
    }
    if (reply->done) it->second->Close(ToGrpc(reply->status));
  }
}

void TextStreams::Done(int64_t request, QueuedText* stream) {
  if (request == 0) return;
  {
    absl::MutexLock lock(&mutex_);
    streams_.erase(request);
  }
  host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
    cluster.AbandonText(request, now, out);
  });
}

}  // namespace troupe
