// Reading a server's stream, or its only answer, on the caller's own thread,
// with a say every tenth of a second: so a program can notice Ctrl-C or redraw
// while no message comes. The essay: a completion queue hands back one tag for
// each operation that we start; there is never more than one under way (start,
// then reads one after another, then finish), so tags need no names and nothing
// is shared between threads.
#ifndef TROUPE_CLIENTS_CPP_RPC_STREAM_H_
#define TROUPE_CLIENTS_CPP_RPC_STREAM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/call_context.h"
#include "clients/cpp/rpc_status.h"
#include "grpcpp/grpcpp.h"

namespace troupe {

// Runs the queue until the operation under way has ended; cancels the call once
// `keep_going` says no. Returns the operation's ok.
bool NextCompletion(grpc::CompletionQueue& queue, grpc::ClientContext& context,
                    const std::function<bool()>& keep_going, bool& cancelled);

// Opens a stream with `prepare(context, queue)`, hands each message to
// `on_message`, and returns how the stream ended: Cancelled where `keep_going`
// ended it, DeadlineExceeded after `deadline`.
template <typename Response, typename Prepare>
absl::Status ReadStream(const std::string& address, absl::Duration deadline,
                        const Prepare& prepare,
                        const std::function<void(const Response&)>& on_message,
                        const std::function<bool()>& keep_going) {
  grpc::ClientContext context;
  PrepareCall(context, deadline);
  grpc::CompletionQueue queue;
  bool cancelled = false;
  std::unique_ptr<grpc::ClientAsyncReader<Response>> reader =
      prepare(&context, &queue);
  reader->StartCall(nullptr);
  Response message;
  bool ok = NextCompletion(queue, context, keep_going, cancelled);
  while (ok) {
    reader->Read(&message, nullptr);
    ok = NextCompletion(queue, context, keep_going, cancelled);
    if (ok && !cancelled) on_message(message);
  }
  grpc::Status status;
  reader->Finish(&status, nullptr);
  NextCompletion(queue, context, keep_going, cancelled);
  queue.Shutdown();
  if (cancelled) return absl::CancelledError("the call was ended here");
  return RpcStatus(status, address);
}

// The answer to a call made with `prepare(context, queue)`; errors as above.
// One that came although `keep_going` had ended the call is an answer all the
// same.
template <typename Response, typename Prepare>
absl::StatusOr<Response> ReadAnswer(const std::string& address,
                                    absl::Duration deadline,
                                    const Prepare& prepare,
                                    const std::function<bool()>& keep_going) {
  grpc::ClientContext context;
  PrepareCall(context, deadline);
  grpc::CompletionQueue queue;
  bool cancelled = false;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader =
      prepare(&context, &queue);
  reader->StartCall();
  Response answer;
  grpc::Status status;
  reader->Finish(&answer, &status, nullptr);
  NextCompletion(queue, context, keep_going, cancelled);
  queue.Shutdown();
  if (status.ok()) return answer;
  if (cancelled) return absl::CancelledError("the call was ended here");
  return RpcStatus(status, address);
}

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_RPC_STREAM_H_
