#include "worker/collective/staged/staged_communicator.h"

#include <string>
#include <utility>
#include <vector>

#include "proto/base/local_cause.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, Device& device,
                     const StagingMemory& memory)
      : Communicator(host->group(), host->rank()),
        host_(std::move(host)),
        device_(device),
        memory_(memory) {}
  ~StagedCommunicator() override {
    host_.reset();  // it may still know the memory
    Release();
  }

  // Once, before any operation.
  absl::Status Prepare() {
    return memory_.arena == nullptr ? absl::OkStatus() : Reserve(memory_.bytes);
  }

  uint64_t sent_bytes() const override { return host_->sent_bytes(); }
  bool SeesFailure() override { return host_->SeesFailure(); }

 private:
  static CommOptions OptionsOf(const Call& call) {
    return {.name = std::string(call.name),
            .timeout = call.deadline - SteadyNow()};
  }

  // The host's copy of a buffer, its bytes not yet copied.
  absl::StatusOr<CommBuffer> Stage(const CommBuffer& data) {
    RETURN_IF_ERROR(Reserve(data.bytes()));
    return CommBuffer{staging_, data.elements, data.element};
  }
  struct Pair {
    CommBuffer send;
    CommBuffer receive;
  };
  absl::StatusOr<Pair> StagePair(const CommBuffer& send,
                                 const CommBuffer& receive) {
    // The second begins where any type may.
    const size_t begin = (send.bytes() + 63) / 64 * 64;
    RETURN_IF_ERROR(Reserve(begin + receive.bytes()));
    Pair staged = {send, receive};
    staged.send.data = staging_;
    staged.receive.data = static_cast<char*>(staging_) + begin;
    return staged;
  }
  absl::Status Reserve(size_t bytes) {
    if (bytes <= staging_bytes_) return absl::OkStatus();
    Release();
    if (memory_.arena != nullptr) {
      // The planner has counted it, but not for a worker that came into a lost
      // one's place on a GPU that another rank has: others may have room.
      absl::StatusOr<ArenaBlock> block =
          memory_.arena->Allocate(memory_.line_item, bytes);
      if (!block.ok()) return OfThisMachine(block.status());
      block_ = *std::move(block);
      staging_ = block_.data();
    } else {
      ASSIGN_OR_RETURN(staging_, device_.AllocateHost(bytes));
    }
    staging_bytes_ = bytes;
    return absl::OkStatus();
  }
  void Release() {
    if (block_.data() != nullptr) {
      block_.Release();
    } else if (staging_ != nullptr) {
      device_.FreeHost(staging_);
    }
    staging_ = nullptr;
    staging_bytes_ = 0;
  }

  // Of a copy of what `blocks` cuts.
  CommBuffer OwnBlock(const CommBuffer& copy, const CommBlocks& blocks) const {
    const ElementRange& range = blocks.ranges[rank()];
    return copy.Slice(range.begin, range.end);
  }

  absl::Status CopyOut(const CommBuffer& device, const CommBuffer& host) {
    device_.CopyToHost(host.data, device.data, device.bytes());
    return device_.Synchronize();
  }
  absl::Status CopyBack(const CommBuffer& host, const CommBuffer& device) {
    device_.CopyFromHost(device.data, host.data, device.bytes());
    return device_.Synchronize();
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data.whole));
    RETURN_IF_ERROR(CopyOut(data.whole, staged));
    RETURN_IF_ERROR(host_->AllReduce(staged, op, OptionsOf(call)));
    return CopyBack(staged, data.whole);
  }

  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(send.whole));
    const CommBuffer own = OwnBlock(staged, send);
    RETURN_IF_ERROR(CopyOut(send.whole, staged));
    RETURN_IF_ERROR(host_->ReduceScatter({.send = staged,
                                          .receive = own,
                                          .row_elements = send.row_elements,
                                          .ranges = send.given_ranges()},
                                         op, OptionsOf(call)));
    return CopyBack(own, receive);
  }

  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(receive.whole));
    const CommBuffer own = OwnBlock(staged, receive);
    RETURN_IF_ERROR(CopyOut(send, own));
    RETURN_IF_ERROR(host_->AllGather({.send = own,
                                      .receive = staged,
                                      .row_elements = receive.row_elements,
                                      .ranges = receive.given_ranges()},
                                     OptionsOf(call)));
    return CopyBack(staged, receive.whole);
  }

  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data.whole));
    RETURN_IF_ERROR(CopyOut(data.whole, staged));
    RETURN_IF_ERROR(host_->Reduce(staged, root, op, OptionsOf(call)));
    return rank() == root ? CopyBack(staged, data.whole) : absl::OkStatus();
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data));
    if (rank() == root) RETURN_IF_ERROR(CopyOut(data, staged));
    RETURN_IF_ERROR(host_->Broadcast(staged, root, OptionsOf(call)));
    return rank() == root ? absl::OkStatus() : CopyBack(staged, data);
  }

  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    ASSIGN_OR_RETURN(const Pair staged, StagePair(send.whole, receive.whole));
    const CommBlocks out = {staged.send, send.ranges};
    const CommBlocks in = {staged.receive, receive.ranges};
    for (int member = 0; member < size(); ++member) {
      const CommBuffer block = send.Of(member);
      if (block.elements == 0) continue;
      device_.CopyToHost(out.Of(member).data, block.data, block.bytes());
    }
    RETURN_IF_ERROR(device_.Synchronize());
    AllToAllBuffers buffers = {.send = staged.send, .receive = staged.receive};
    if (!send.even) {
      buffers.send_ranges = send.ranges;
      buffers.receive_ranges = receive.ranges;
    }
    RETURN_IF_ERROR(host_->AllToAll(buffers, OptionsOf(call)));
    for (int member = 0; member < size(); ++member) {
      const CommBuffer block = receive.Of(member);
      if (block.elements == 0) continue;
      device_.CopyFromHost(block.data, in.Of(member).data, block.bytes());
    }
    return device_.Synchronize();
  }

  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data));
    RETURN_IF_ERROR(CopyOut(data, staged));
    return host_->Send(staged, peer, OptionsOf(call));
  }

  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data));
    RETURN_IF_ERROR(host_->Recv(staged, peer, OptionsOf(call)));
    return CopyBack(staged, data);
  }

  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    ASSIGN_OR_RETURN(const Pair staged,
                     StagePair(buffers.send, buffers.receive));
    RETURN_IF_ERROR(CopyOut(buffers.send, staged.send));
    RETURN_IF_ERROR(host_->Shift({.send = staged.send,
                                  .to = buffers.to,
                                  .receive = staged.receive,
                                  .from = buffers.from},
                                 OptionsOf(call)));
    return CopyBack(staged.receive, buffers.receive);
  }

  absl::Status DoBarrier(const Call& call) override {
    return host_->Barrier(OptionsOf(call));
  }

  absl::Status CopyToSelf(const CommBuffer& from,
                          const CommBuffer& to) override {
    if (to.data == from.data) return absl::OkStatus();
    device_.CopyWithin(to.data, from.data, from.bytes());
    return device_.Synchronize();
  }

  void DoAbort(const absl::Status& why) override { host_->Abort(why); }

  std::unique_ptr<Communicator> host_;
  Device& device_;
  const StagingMemory memory_;
  ArenaBlock block_;  // what staging_ is, where that is of an arena
  void* staging_ = nullptr;
  size_t staging_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> StageThroughHost(
    std::unique_ptr<Communicator> host, Device& device,
    const StagingMemory& memory) {
  auto staged =
      std::make_unique<StagedCommunicator>(std::move(host), device, memory);
  RETURN_IF_ERROR(staged->Prepare());
  return staged;
}

}  // namespace troupe
