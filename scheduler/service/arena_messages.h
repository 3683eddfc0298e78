// The messages of one RPC's calls, each call's on an arena of its own: a reply
// of ten thousand parts, such as the description of a thousand workers, is made
// and given back in a few large pieces, which takes half the time.
//
//   ArenaMessages<ListJobsRequest, ListJobsResponse> list_jobs_;
//   SetMessageAllocatorFor_ListJobs(&list_jobs_);
#ifndef TROUPE_SCHEDULER_SERVICE_ARENA_MESSAGES_H_
#define TROUPE_SCHEDULER_SERVICE_ARENA_MESSAGES_H_

#include <google/protobuf/arena.h>

#include <functional>
#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/message_allocator.h"

namespace troupe {

// Thread-safe. Outlives the server.
template <typename Request, typename Response>
class ArenaMessages final : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override {
    return new Messages();
  }
  // Has it called when gRPC has sent the response of the call, or given it up.
  // REQUIRES: the call's messages are of this kind; before its end.
  static void OnRelease(grpc::CallbackServerContext* context,
                        std::function<void()> released) {
    static_cast<Messages*>(context->GetRpcAllocatorState())->released =
        std::move(released);
  }

 private:
  class Messages final : public grpc::MessageHolder<Request, Response> {
   public:
    Messages() {
      using google::protobuf::Arena;
      this->set_request(Arena::CreateMessage<Request>(&arena_));
      this->set_response(Arena::CreateMessage<Response>(&arena_));
    }
    void Release() override {  // gRPC has sent the response
      const std::function<void()> then = std::move(released);
      delete this;
      if (then != nullptr) then();
    }

    std::function<void()> released;

   private:
    google::protobuf::Arena arena_;
  };
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_ARENA_MESSAGES_H_
