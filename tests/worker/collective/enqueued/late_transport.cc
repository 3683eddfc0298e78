#include "tests/worker/collective/enqueued/late_transport.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/base/status.h"
#include "tests/ops/split_memory_device.h"
#include "worker/collective/enqueued/enqueued_communicator.h"
#include "worker/collective/in_process/in_process_communicator.h"

namespace troupe {
namespace {

std::vector<ElementRange> Copy(absl::Span<const ElementRange> ranges) {
  return {ranges.begin(), ranges.end()};
}

class LateTransport final : public Transport {
 public:
  LateTransport(std::unique_ptr<Communicator> members,
                SplitMemoryDevice& device, bool deaf)
      : members_(std::move(members)), device_(device), deaf_(deaf) {}
  // Nothing of it may be in a queue any more.
  ~LateTransport() override { device_.Synchronize().IgnoreError(); }

  static std::vector<ElementRange> GivenOf(const CommBlocks& blocks) {
    return {blocks.given_ranges().begin(), blocks.given_ranges().end()};
  }

  absl::Status AllReduce(const CommBuffer& data, ReduceOp op) override {
    return Enqueue([this, there = There(data), op] {
      return members_->AllReduce(there, op, kForEver);
    });
  }
  absl::Status ReduceScatter(const CommBlocks& send, const CommBuffer& receive,
                             ReduceOp op) override {
    return Enqueue([this, op, out = There(send.whole), in = There(receive),
                    row = send.row_elements, given = GivenOf(send)] {
      return members_->ReduceScatter(
          {.send = out, .receive = in, .row_elements = row, .ranges = given},
          op, kForEver);
    });
  }
  absl::Status AllGather(const CommBuffer& send,
                         const CommBlocks& receive) override {
    return Enqueue([this, out = There(send), in = There(receive.whole),
                    row = receive.row_elements, given = GivenOf(receive)] {
      return members_->AllGather(
          {.send = out, .receive = in, .row_elements = row, .ranges = given},
          kForEver);
    });
  }
  absl::Status Reduce(const CommBuffer& data, int root, ReduceOp op) override {
    return Enqueue([this, there = There(data), root, op] {
      return members_->Reduce(there, root, op, kForEver);
    });
  }
  absl::Status Broadcast(const CommBuffer& data, int root) override {
    return Enqueue([this, there = There(data), root] {
      return members_->Broadcast(there, root, kForEver);
    });
  }
  absl::Status AllToAll(const CommBlocks& send,
                        const CommBlocks& receive) override {
    return Enqueue([this, out = There(send.whole), in = There(receive.whole),
                    sent = Copy(send.ranges), received = Copy(receive.ranges)] {
      return members_->AllToAll({.send = out,
                                 .receive = in,
                                 .send_ranges = sent,
                                 .receive_ranges = received},
                                kForEver);
    });
  }
  absl::Status Send(const CommBuffer& data, int peer) override {
    return Enqueue([this, there = There(data), peer] {
      return members_->Send(there, peer, kForEver);
    });
  }
  absl::Status Recv(const CommBuffer& data, int peer) override {
    return Enqueue([this, there = There(data), peer] {
      return members_->Recv(there, peer, kForEver);
    });
  }
  absl::Status Shift(const ShiftBuffers& buffers) override {
    ShiftBuffers there = buffers;
    there.send = There(buffers.send);
    there.receive = There(buffers.receive);
    return Enqueue([this, there] { return members_->Shift(there, kForEver); });
  }

  absl::Status Error() override {
    absl::MutexLock wait(&aborting_);
    absl::MutexLock lock(&mutex_);
    return error_;
  }
  void Abort() override {
    absl::MutexLock lock(&aborting_);
    if (aborted_.HasBeenNotified()) return;
    members_->Abort(absl::AbortedError("the transport was aborted"));
    aborted_.Notify();
    device_.AwaitAllQueues();
  }

 private:
  static inline const CommOptions kForEver = {.timeout =
                                                  absl::InfiniteDuration()};

  CommBuffer There(CommBuffer buffer) const {
    buffer.data = device_.Bytes(buffer.data);
    return buffer;
  }

  absl::Status Enqueue(std::function<absl::Status()> work) {
    if (aborted_.HasBeenNotified()) return absl::AbortedError("aborted");
    device_.Enqueue([this, work = std::move(work)] {
      const absl::Status status = work();
      if (status.ok() || aborted_.HasBeenNotified()) return;
      if (deaf_) return aborted_.WaitForNotification();
      absl::MutexLock lock(&mutex_);
      error_ = absl::InternalError(
          absl::StrCat("a remote error: ", status.message()));
    });
    return absl::OkStatus();
  }

  const std::unique_ptr<Communicator> members_;
  SplitMemoryDevice& device_;
  const bool deaf_;
  absl::Notification aborted_;
  absl::Mutex aborting_;  // held by a thread that aborts, to the end
  absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<Communicator>> Create(
    const CommunicatorSeat& seat, bool deaf) {
  if (seat.group.ranks.size() == 1) return NewEnqueuedCommunicator(seat, {});
  ASSIGN_OR_RETURN(std::unique_ptr<Communicator> host, CreateInProcess(seat));
  CommunicatorSeat beside = seat;
  absl::StrAppend(&beside.group.name, "/data");
  ASSIGN_OR_RETURN(std::unique_ptr<Communicator> members,
                   CreateInProcess(beside));
  auto& device = static_cast<SplitMemoryDevice&>(*seat.device);
  return NewEnqueuedCommunicator(
      seat, {.meeting = std::make_unique<HostMeeting>(std::move(host)),
             .transport = std::make_unique<LateTransport>(std::move(members),
                                                          device, deaf)});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateLate(
    const CommunicatorSeat& seat) {
  return Create(seat, /*deaf=*/false);
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateLateAndDeaf(
    const CommunicatorSeat& seat) {
  return Create(seat, /*deaf=*/true);
}

}  // namespace troupe
