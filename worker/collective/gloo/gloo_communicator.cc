#include "worker/collective/gloo/gloo_communicator.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/direct_collectives.h"
#include "worker/collective/gloo/exchange.h"
#include "worker/collective/gloo/mesh.h"
#include "worker/collective/gloo/ring.h"
#include "worker/collective/gloo/wires.h"

namespace troupe {
namespace {

enum class Kind : uint64_t {
  kAllReduce = 1,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kReduce,
  kSendRecv,  // and shifts
  kBarrier,
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const CommunicatorSeat& seat, std::unique_ptr<GlooMesh> mesh)
      : Communicator(seat.group, seat.rank), in_order_(seat.in_order) {
    // A group of one has nobody to talk to.
    if (mesh != nullptr) {
      wires_ = std::make_unique<Wires>(std::move(mesh), WatchOf(seat));
    }
  }

  uint64_t sent_bytes() const override {
    return wires_ == nullptr ? 0 : wires_->sent_bytes();
  }
  bool SeesFailure() override {
    return wires_ != nullptr && wires_->SeesFailure();
  }
  void AbortCall(const absl::Status& why) override {
    if (wires_ != nullptr) wires_->Interrupt(why);
  }

 private:
  // One operation: `body` moves the data; a failure is put into words. `bytes`
  // is what all members have alike.
  template <typename Body>
  absl::Status Operate(Kind kind, size_t bytes, const Call& call,
                       const Body& body) {
    const uint64_t slot = (static_cast<uint64_t>(kind) << 56) | bytes;
    absl::Status status = wires_->Begin(call.deadline, slot);
    if (status.ok()) status = body();
    if (status.ok()) {
      wires_->End();
      return status;
    }
    const Verdict verdict = wires_->Close();
    if (verdict.code == absl::StatusCode::kCancelled) {
      return absl::CancelledError(verdict.what);
    }
    return PeerError({verdict.code, verdict.peer, verdict.what}, call);
  }

  bool SmallBlocks(const CommBuffer& whole) const {
    return SendsBlocksDirectly(static_cast<int64_t>(whole.bytes()), size());
  }

  // Each block where it lies, in the order of the ranks; a ring's order is
  // another for each block.
  bool SumsDirectly(const CommBuffer& data) const {
    return in_order_ || IsNarrow(data.element);
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    const size_t bytes = data.whole.bytes();
    return Operate(Kind::kAllReduce, bytes, call, [&]() -> absl::Status {
      if (SendsWholeDirectly(static_cast<int64_t>(bytes), size())) {
        return DirectAllReduce(*wires_, data.whole, op);
      }
      if (SumsDirectly(data.whole)) {
        RETURN_IF_ERROR(
            DirectReduceScatter(*wires_, data, data.Of(rank()), op));
        return RingAllGather(*wires_, data);
      }
      return RingAllReduce(*wires_, data, op);
    });
  }

  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    return Operate(Kind::kReduceScatter, send.whole.bytes(), call, [&] {
      return SmallBlocks(send.whole) || SumsDirectly(send.whole)
                 ? DirectReduceScatter(*wires_, send, receive, op)
                 : RingReduceScatter(*wires_, send, receive, op);
    });
  }

  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    const size_t bytes = data.whole.bytes();
    return Operate(Kind::kReduce, bytes, call, [&]() -> absl::Status {
      // As DoAllReduce does, so that the bits are the same.
      if (SendsWholeDirectly(static_cast<int64_t>(bytes), size())) {
        return DirectReduce(*wires_, data.whole, root, op);
      }
      const CommBuffer own = data.Of(rank());
      RETURN_IF_ERROR(SumsDirectly(data.whole)
                          ? DirectReduceScatter(*wires_, data, own, op)
                          : RingReduceScatter(*wires_, data, own, op));
      return DirectGather(*wires_, data, root);
    });
  }

  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    RETURN_IF_ERROR(CopyToSelf(send, receive.Of(rank())));
    return Operate(Kind::kAllGather, receive.whole.bytes(), call, [&] {
      return SmallBlocks(receive.whole) ? DirectAllGather(*wires_, receive)
                                        : RingAllGather(*wires_, receive);
    });
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    return Operate(Kind::kBroadcast, data.bytes(), call, [&] {
      return BroadcastsDirectly(static_cast<int64_t>(data.bytes()), size())
                 ? DirectBroadcast(*wires_, data, root)
                 : RingBroadcast(*wires_, data, root);
    });
  }

  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    RETURN_IF_ERROR(CopyToSelf(send.Of(rank()), receive.Of(rank())));
    return Operate(Kind::kAllToAll, 0, call,
                   [&] { return DirectAllToAll(*wires_, send, receive); });
  }

  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    return Operate(Kind::kSendRecv, 0, call,
                   [&] { return DirectSend(*wires_, data, peer); });
  }

  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    return Operate(Kind::kSendRecv, 0, call,
                   [&] { return DirectRecv(*wires_, data, peer); });
  }

  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    return Operate(Kind::kSendRecv, 0, call,
                   [&] { return DirectShift(*wires_, buffers); });
  }

  absl::Status DoBarrier(const Call& call) override {
    return Operate(Kind::kBarrier, 0, call,
                   [&] { return DisseminationBarrier(*wires_); });
  }

  void DoAbort(const absl::Status& why) override {
    if (wires_ != nullptr) wires_->Abort(why);
  }

  const bool in_order_;
  std::unique_ptr<Wires> wires_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateGloo(
    const CommunicatorSeat& seat) {
  if (seat.group.ranks.size() == 1) {
    return std::make_unique<GlooCommunicator>(seat, nullptr);
  }
  absl::StatusOr<std::unique_ptr<GlooMesh>> mesh = GlooMesh::Connect(seat);
  if (!mesh.ok()) {
    return Annotate(mesh.status(),
                    absl::StrCat("group ", seat.group.name, ": join"));
  }
  return std::make_unique<GlooCommunicator>(seat, *std::move(mesh));
}

}  // namespace troupe
