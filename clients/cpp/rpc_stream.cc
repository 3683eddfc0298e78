#include "clients/cpp/rpc_stream.h"

#include "absl/time/clock.h"

namespace troupe {

bool NextCompletion(grpc::CompletionQueue& queue, grpc::ClientContext& context,
                    const std::function<bool()>& keep_going, bool& cancelled) {
  constexpr absl::Duration kAskEvery = absl::Milliseconds(100);
  void* tag = nullptr;
  bool ok = false;
  while (true) {
    const auto next =
        queue.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + kAskEvery));
    if (!cancelled && !keep_going()) {
      cancelled = true;
      context.TryCancel();
    }
    if (next == grpc::CompletionQueue::GOT_EVENT) return ok;
    if (next == grpc::CompletionQueue::SHUTDOWN) return false;
  }
}

}  // namespace troupe
