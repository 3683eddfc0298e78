#include "worker/collective/shared_memory/shared_memory_communicator.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/collective/shared_memory/all_to_all.h"
#include "worker/collective/shared_memory/collectives.h"
#include "worker/collective/shared_memory/copy_choice.h"
#include "worker/collective/shared_memory/join.h"
#include "worker/collective/shared_memory/members.h"
#include "worker/collective/shared_memory/messages.h"
#include "worker/collective/shared_memory/phases.h"
#include "worker/collective/shared_memory/segment.h"
#include "worker/collective/shared_memory/segment_map.h"

namespace troupe {
namespace {

// Tells calls apart: FNV-1a of the operation, its sizes and its type. Not 0.
uint64_t CallNumber(absl::string_view operation, const CommBlocks& data) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x100000001b3;
  };
  for (const char c : operation) mix(static_cast<uint8_t>(c));
  mix(static_cast<uint64_t>(data.whole.elements));
  mix(static_cast<uint64_t>(data.whole.element));
  mix(static_cast<uint64_t>(data.row_elements));
  return hash | 1;
}

class SharedMemoryCommunicator final : public Communicator {
 public:
  SharedMemoryCommunicator(const CommunicatorSeat& seat, SharedSegment segment)
      : Communicator(seat.group, seat.rank),
        segment_(std::move(segment)),
        map_(segment_.data(), size()),
        members_(map_, rank()),
        phases_(map_, members_, rank()) {}

  uint64_t sent_bytes() const override {
    return sent_bytes_.load(std::memory_order_relaxed);
  }
  bool SeesFailure() override { return !members_.Broken().ok(); }

  absl::Status Join(absl::Time deadline) {
    return DoBarrier({"join", SteadyNow(), deadline});
  }

 private:
  template <typename Body>
  absl::Status Run(const Call& call, uint64_t number, const Body& body) {
    absl::Status status = phases_.Begin(call.deadline, number);
    if (status.ok()) status = body();
    sent_bytes_.fetch_add(phases_.TakeGiven(), std::memory_order_relaxed);
    if (status.ok()) return status;
    const Verdict& verdict = phases_.verdict();
    if (verdict.code == absl::StatusCode::kCancelled) {
      return absl::CancelledError(verdict.what);
    }
    status = PeerError(verdict, call);
    // Found here, and perhaps by nobody else: they would wait for this rank.
    if (verdict.code == absl::StatusCode::kInternal) members_.Abort(status);
    return status;
  }
  template <typename Body>
  absl::Status RunCollective(const Call& call, const CommBlocks& data,
                             const Body& body) {
    return Run(call, CallNumber(call.operation, data), [&] {
      const int64_t passed_on = std::exchange(passed_on_, 0);
      if (choice_.Due(passed_on + data.whole.bytes())) {
        RETURN_IF_ERROR(TryCopies(phases_, choice_));
        phases_.TakeGiven();  // zeros
      }
      return body();
    });
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    return RunCollective(call, data, [&] {
      return SharedAllReduce(phases_, choice_.kind(), data, op);
    });
  }
  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    return RunCollective(call, send, [&] {
      return SharedReduceScatter(phases_, choice_.kind(), send, receive, op);
    });
  }
  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    return RunCollective(call, data, [&] {
      return SharedReduce(phases_, choice_.kind(), data, root, op);
    });
  }
  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    return RunCollective(call, receive, [&] {
      return SharedAllGather(phases_, choice_.kind(), send, receive);
    });
  }
  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    return RunCollective(call, {data}, [&] {
      return SharedBroadcast(phases_, choice_.kind(), data, root);
    });
  }
  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    // What all members have alike.
    const CommBlocks alike = {{.element = send.whole.element}};
    return RunCollective(call, alike, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const int64_t longest,
                       SharedAllToAll(phases_, choice_.kind(), send, receive));
      passed_on_ += size() * longest;
      return absl::OkStatus();
    });
  }
  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    return Run(call, 0, [&] { return SharedSend(phases_, data, peer); });
  }
  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    return Run(call, 0, [&] { return SharedRecv(phases_, data, peer); });
  }
  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    return Run(call, 0, [&] { return SharedShift(phases_, buffers); });
  }
  absl::Status DoBarrier(const Call& call) override {
    return RunCollective(call, {}, [&] { return phases_.Next(); });
  }
  void DoAbort(const absl::Status& why) override { members_.Abort(why); }

  const SharedSegment segment_;
  const SegmentMap map_;
  Members members_;
  Phases phases_;
  std::atomic<uint64_t> sent_bytes_{0};
  CopyChoice choice_;  // for collectives
  // By an all-to-all: how much, its members know after it, so that it counts
  // with the next collective.
  int64_t passed_on_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateSharedMemory(
    const CommunicatorSeat& seat) {
  const absl::Time deadline = SteadyNow() + seat.timeout;
  const std::string group = absl::StrCat("group ", seat.group.name);
  absl::StatusOr<SharedSegment> segment = JoinSegment(seat);
  if (!segment.ok()) return Annotate(segment.status(), group);
  auto communicator =
      std::make_unique<SharedMemoryCommunicator>(seat, *std::move(segment));
  const JoinAbort::Interrupt interrupt(
      seat.abort, [joining = communicator.get()](const absl::Status& why) {
        joining->Abort(why);
      });
  RETURN_IF_ERROR(
      Annotate(communicator->Join(deadline), absl::StrCat(group, ": join")));
  return communicator;
}

}  // namespace troupe
