#include "worker/collective/enqueued/enqueued_communicator.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "ops/fence.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/actor/thread_name.h"
#include "worker/collective/enqueued/inquest.h"
#include "worker/collective/enqueued/under_way.h"
#include "worker/collective/watch.h"

namespace troupe {
namespace {

class EnqueuedCommunicator final : public Communicator, private Watched {
 public:
  EnqueuedCommunicator(const CommunicatorSeat& seat, EnqueuedParts parts)
      : Communicator(seat.group, seat.rank),
        device_(*seat.device),
        meeting_(std::move(parts.meeting)),
        transport_(std::move(parts.transport)) {
    CHECK(device_.asynchronous()) << device_.Describe();
    if (transport_ == nullptr) return;
    watch_ = WatchOf(seat);
    watch_->Add(*this);
  }
  ~EnqueuedCommunicator() override {
    if (watch_ == nullptr) return;
    watch_->Remove(*this);
    bool aborted = false;
    {
      absl::MutexLock lock(&mutex_);
      aborted = !aborted_.ok();
    }
    if (aborted) End();
    if (ending_.joinable()) ending_.join();
    absl::MutexLock lock(&mutex_);
    if (inquest_ != nullptr) inquest_->Over();
  }

  uint64_t sent_bytes() const override {
    return sent_bytes_.load(std::memory_order_relaxed);
  }

 private:
  using Enqueue = absl::FunctionRef<absl::Status()>;

  // What an operation of a backend is made of.
  struct Asked {
    HostMeeting::Peers peers = {};
    size_t sent = 0;  // bytes, by this rank
  };

  // Puts it into the queue.
  absl::Status Operate(const Call& call, const Asked& asked, Enqueue enqueue) {
    if (call.meet) {
      RETURN_IF_ERROR(meeting_->With(asked.peers,
                                     {.name = std::string(call.name),
                                      .timeout = call.deadline - SteadyNow()}));
    }
    Inquest::Failure failure = {
        .operation = {.what = What(call),
                      .timeout = call.deadline - call.start,
                      .peers = asked.peers}};
    UnderWay::Operation operation = {.awaited = failure.operation,
                                     .begin = device_.Record(FenceUse::kOrder),
                                     .hold = transport_->Begin()};
    {
      absl::MutexLock lock(&mutex_);
      under_way_.Add(std::move(operation));
    }
    watch_->Expect(SteadyNow() + failure.operation.timeout);
    failure.status = enqueue();
    std::unique_ptr<Fence> end;
    if (failure.status.ok()) end = device_.Record(FenceUse::kOrder);
    {
      absl::MutexLock lock(&mutex_);
      under_way_.Enqueued(std::move(end));
      if (!aborted_.ok()) return Aborted();
      if (!failed() && failure.status.ok()) {
        sent_bytes_.fetch_add(asked.sent, std::memory_order_relaxed);
        return absl::OkStatus();
      }
      if (!failed()) Fail(std::move(failure));
    }
    const Failed why = Why();
    return why.what == What(call) || why.what.empty()
               ? why.status
               : Annotate(why.status, absl::StrCat("behind ", why.what));
  }

  // The watch's.
  absl::Time Look() override {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return absl::InfiniteFuture();
      if (aborted_.ok() && !failed()) {
        if (under_way_.empty()) return absl::InfiniteFuture();
        Examine();
      }
      if (aborted_.ok() && !failed()) {
        if (under_way_.empty()) return absl::InfiniteFuture();
        // Whose turn has not come is looked at as often as the watch looks.
        return std::min(under_way_.due(), SteadyNow() + absl::Hours(1));
      }
    }
    End();
    return absl::InfiniteFuture();
  }
  void EndToo(const Cause& cause) override {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
      if (!failed()) beside_ = cause;
    }
    End();
  }

  // Whether what is under way can still end well. An operation that failed has
  // run, too: so errors first. REQUIRES that nothing has failed, nor was
  // aborted: then the transport may be about to be.
  void Examine() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Notice(transport_->Error());
    const absl::Time now = SteadyNow();
    under_way_.Sweep(now);
    if (now < under_way_.due()) return;
    Notice(absl::DeadlineExceededError("it did not end in time"));
  }
  void Notice(const absl::Status& status, bool of_device = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (status.ok() || failed()) return;
    Inquest::Failure failure = {.status = status, .of_device = of_device};
    if (!under_way_.empty()) failure.operation = under_way_.oldest();
    Fail(std::move(failure));
  }
  void Fail(Inquest::Failure failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    inquest_ = std::make_shared<Inquest>(std::move(failure), meeting_);
  }
  bool failed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return inquest_ != nullptr || beside_;
  }

  absl::Status DoOutcome(const absl::Status& queue) override {
    if (transport_ == nullptr) return queue;
    {
      absl::MutexLock lock(&mutex_);
      if (!aborted_.ok()) return Aborted();
      Notice(queue, /*of_device=*/true);
      if (!failed()) Examine();
      if (!failed()) return absl::OkStatus();
    }
    const Failed why = Why();
    return why.status == queue || why.what.empty()
               ? why.status
               : Annotate(why.status, why.what);
  }

  // What has failed, as people see it, and the verdict. REQUIRES that something
  // has.
  struct Failed {
    std::string what;  // empty: nobody's operation
    absl::Status status;
  };
  Failed Why() {
    End();
    std::shared_ptr<Inquest> inquest;
    Cause beside;
    {
      absl::MutexLock lock(&mutex_);
      inquest = inquest_;
      beside = beside_;
    }
    if (inquest == nullptr) {
      // This one's members may all be well: they hear why from here.
      const absl::Status why = beside();
      meeting_->Abort(why);
      return {.status = why};
    }
    return {inquest->failure().operation.what, inquest->Verdict()};
  }

  absl::Status Aborted() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return absl::CancelledError(absl::StrCat("aborted: ", aborted_.message()));
  }

  // What to tell those that end because this one does.
  Cause CauseOfEnd() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    if (!aborted_.ok()) return [why = Aborted()] { return why; };
    if (inquest_ == nullptr) return beside_;
    return [inquest = inquest_, name = group().name]() -> absl::Status {
      const Inquest::Failure& failure = inquest->failure();
      const absl::Status verdict = inquest->Verdict();
      if (failure.of_device && verdict == failure.status) return verdict;
      return Annotate(verdict, absl::StrCat("ended with group ", name, ", ",
                                            failure.operation.what));
    };
  }

  // Lets the queue go on, and those of the rank's other communicators. On a
  // thread of its own: it may take until theirs have.
  void End() {
    Cause cause;
    {
      absl::MutexLock lock(&mutex_);
      if (std::exchange(ended_, true)) return;
      cause = CauseOfEnd();
      ending_ = std::thread([this] {
        NameThisThread("comm abort");
        transport_->Abort();
        absl::MutexLock lock(&mutex_);
        under_way_.LetGo();
      });
    }
    watch_->EndAll(std::move(cause));
  }

  absl::Status DoAllReduce(const CommBlocks& blocks, ReduceOp op,
                           const Call& call) override {
    const size_t sent = OfOthers(blocks) + ToOthers(blocks.Of(rank()));
    return Operate(call, {.sent = sent},
                   [&] { return transport_->AllReduce(blocks.whole, op); });
  }

  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    return Operate(call, {.sent = OfOthers(send)}, [&] {
      return transport_->ReduceScatter(send, receive, op);
    });
  }

  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    return Operate(call, {.sent = rank() == root ? 0 : data.whole.bytes()},
                   [&] { return transport_->Reduce(data.whole, root, op); });
  }

  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    return Operate(call, {.sent = ToOthers(send)},
                   [&] { return transport_->AllGather(send, receive); });
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    return Operate(call, {.sent = rank() == root ? ToOthers(data) : 0},
                   [&] { return transport_->Broadcast(data, root); });
  }

  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    return Operate(call, {.sent = OfOthers(send)},
                   [&] { return transport_->AllToAll(send, receive); });
  }

  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    return Operate(call, {.peers = {.to = peer}, .sent = data.bytes()},
                   [&] { return transport_->Send(data, peer); });
  }

  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    return Operate(call, {.peers = {.from = peer}},
                   [&] { return transport_->Recv(data, peer); });
  }

  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    return Operate(
        call,
        {.peers = {buffers.to, buffers.from}, .sent = buffers.send.bytes()},
        [&] { return transport_->Shift(buffers); });
  }

  absl::Status DoBarrier(const Call& call) override {
    return meeting_->With({}, {.name = std::string(call.name),
                               .timeout = call.deadline - SteadyNow()});
  }

  absl::Status CopyToSelf(const CommBuffer& from,
                          const CommBuffer& to) override {
    if (to.data != from.data) {
      device_.CopyWithin(to.data, from.data, from.bytes());
    }
    return absl::OkStatus();
  }

  void DoAbort(const absl::Status& why) override {
    if (transport_ == nullptr) return;
    {
      absl::MutexLock lock(&mutex_);
      aborted_ = why;
    }
    meeting_->Abort(why);
    watch_->Expect(SteadyNow());
  }

  size_t OfOthers(const CommBlocks& blocks) const {
    const int64_t elements = blocks.ranged() - blocks.ranges[rank()].size();
    return elements * DTypeBytes(blocks.whole.element);
  }
  size_t ToOthers(const CommBuffer& data) const {
    return (size() - 1) * data.bytes();
  }

  Device& device_;
  const std::shared_ptr<HostMeeting> meeting_;
  const std::unique_ptr<Transport> transport_;
  std::shared_ptr<Watch> watch_;
  std::atomic<uint64_t> sent_bytes_{0};
  absl::Mutex mutex_;
  UnderWay under_way_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  // What failed first: here, or where another one did.
  std::shared_ptr<Inquest> inquest_ ABSL_GUARDED_BY(mutex_);
  Cause beside_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the transport is aborted
  std::thread ending_;  // aborts it; made once, and joined when all is over
};

}  // namespace

std::unique_ptr<Communicator> NewEnqueuedCommunicator(
    const CommunicatorSeat& seat, EnqueuedParts parts) {
  return std::make_unique<EnqueuedCommunicator>(seat, std::move(parts));
}

}  // namespace troupe
