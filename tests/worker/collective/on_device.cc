#include "tests/worker/collective/on_device.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// A buffer's twin on the device.
class Twin {
 public:
  Twin(Device& device, const CommBuffer& host) : device_(device), host_(host) {
    // A device has no memory of no bytes.
    absl::StatusOr<void*> memory =
        device.Allocate(std::max<size_t>(1, host.bytes()));
    CHECK_OK(memory.status());
    memory_ = *memory;
    device_.CopyFromHost(memory_, host.data, host.bytes());
    CHECK_OK(device_.Synchronize());
  }
  Twin(const Twin&) = delete;
  ~Twin() { device_.Free(memory_); }

  CommBuffer buffer() const {
    return {
        .data = memory_, .elements = host_.elements, .element = host_.element};
  }
  void CopyBack() {
    device_.CopyToHost(host_.data, memory_, host_.bytes());
    CHECK_OK(device_.Synchronize());
  }

 private:
  Device& device_;
  const CommBuffer host_;
  void* memory_ = nullptr;
};

class OnDevice final : public Communicator {
 public:
  OnDevice(std::unique_ptr<Communicator> inner, const OnDeviceOptions& options)
      : Communicator(inner->group(), inner->rank()),
        inner_(std::move(inner)),
        device_(options.device),
        meet_(options.meet) {}

  uint64_t sent_bytes() const override { return inner_->sent_bytes(); }

 private:
  CommOptions OptionsOf(const Call& call) const {
    return {.name = std::string(call.name),
            .timeout = call.deadline - SteadyNow(),
            .meet = meet_};
  }
  absl::Status Through(
      const CommBuffer& data,
      const std::function<absl::Status(const CommBuffer&)>& call) {
    Twin twin(device_, data);
    absl::Status status = call(twin.buffer());
    if (status.ok()) status = inner_->Outcome(device_.Synchronize());
    if (status.ok()) twin.CopyBack();
    return status;
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    return Through(data.whole, [&](const CommBuffer& there) {
      return inner_->AllReduce(there, op, OptionsOf(call));
    });
  }
  // In place there, where it is in place here.
  absl::Status WithBlock(
      const CommBuffer& block, const CommBlocks& blocks,
      const std::function<absl::Status(const CommBuffer& block,
                                       const CommBuffer& whole)>& call) {
    return Through(blocks.whole, [&](const CommBuffer& whole) {
      if (block.data == blocks.Of(rank()).data) {
        const ElementRange& range = blocks.ranges[rank()];
        return call(whole.Slice(range.begin, range.end), whole);
      }
      return Through(
          block, [&](const CommBuffer& there) { return call(there, whole); });
    });
  }
  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    return WithBlock(
        receive, send, [&](const CommBuffer& block, const CommBuffer& whole) {
          return inner_->ReduceScatter({.send = whole,
                                        .receive = block,
                                        .row_elements = send.row_elements,
                                        .ranges = send.given_ranges()},
                                       op, OptionsOf(call));
        });
  }
  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    return WithBlock(
        send, receive, [&](const CommBuffer& block, const CommBuffer& whole) {
          return inner_->AllGather({.send = block,
                                    .receive = whole,
                                    .row_elements = receive.row_elements,
                                    .ranges = receive.given_ranges()},
                                   OptionsOf(call));
        });
  }
  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->Broadcast(there, root, OptionsOf(call));
    });
  }
  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    return Through(data.whole, [&](const CommBuffer& there) {
      return inner_->Reduce(there, root, op, OptionsOf(call));
    });
  }
  // Two buffers.
  absl::Status Across(
      const CommBuffer& send, const CommBuffer& receive,
      const std::function<absl::Status(const CommBuffer& send,
                                       const CommBuffer& receive)>& call) {
    return Through(send, [&](const CommBuffer& out) {
      return Through(receive,
                     [&](const CommBuffer& in) { return call(out, in); });
    });
  }
  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    return Across(send.whole, receive.whole,
                  [&](const CommBuffer& out, const CommBuffer& in) {
                    AllToAllBuffers buffers = {.send = out, .receive = in};
                    if (!send.even) {
                      buffers.send_ranges = send.ranges;
                      buffers.receive_ranges = receive.ranges;
                    }
                    return inner_->AllToAll(buffers, OptionsOf(call));
                  });
  }
  absl::Status CopyToSelf(const CommBuffer& from,
                          const CommBuffer& to) override {
    return Across(from, to, [&](const CommBuffer& out, const CommBuffer& in) {
      return inner_->Shift(
          {.send = out, .to = rank(), .receive = in, .from = rank()}, {});
    });
  }
  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    return Across(buffers.send, buffers.receive,
                  [&](const CommBuffer& out, const CommBuffer& in) {
                    return inner_->Shift({.send = out,
                                          .to = buffers.to,
                                          .receive = in,
                                          .from = buffers.from},
                                         OptionsOf(call));
                  });
  }
  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->Send(there, peer, OptionsOf(call));
    });
  }
  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->Recv(there, peer, OptionsOf(call));
    });
  }
  absl::Status DoBarrier(const Call& call) override {
    return inner_->Barrier(OptionsOf(call));
  }
  void DoAbort(const absl::Status& why) override { inner_->Abort(why); }

  const std::unique_ptr<Communicator> inner_;
  Device& device_;
  const bool meet_;
};

}  // namespace

std::unique_ptr<Communicator> BuffersOnDevice(
    std::unique_ptr<Communicator> communicator,
    const OnDeviceOptions& options) {
  return std::make_unique<OnDevice>(std::move(communicator), options);
}

}  // namespace troupe
