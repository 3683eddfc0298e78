#include "tests/worker/collective/on_device.h"

#include <functional>
#include <string>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// A buffer's twin on the device.
class Twin {
 public:
  Twin(Device& device, const CommBuffer& host) : device_(device), host_(host) {
    absl::StatusOr<void*> memory = device.Allocate(host.bytes());
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
  OnDevice(std::unique_ptr<Communicator> inner, Device& device)
      : Communicator(inner->group(), inner->rank()),
        inner_(std::move(inner)),
        device_(device) {}

 private:
  static CommOptions OptionsOf(const Call& call) {
    return {.name = std::string(call.name),
            .timeout = call.deadline - absl::Now()};
  }
  absl::Status Through(
      const CommBuffer& data,
      const std::function<absl::Status(const CommBuffer&)>& call) {
    Twin twin(device_, data);
    const absl::Status status = call(twin.buffer());
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
        return call(inner_->Block(whole, rank(), blocks.row_elements), whole);
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
                                        .row_elements = send.row_elements},
                                       op, OptionsOf(call));
        });
  }
  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    return WithBlock(
        send, receive, [&](const CommBuffer& block, const CommBuffer& whole) {
          return inner_->AllGather({.send = block,
                                    .receive = whole,
                                    .row_elements = receive.row_elements},
                                   OptionsOf(call));
        });
  }
  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->Broadcast(there, root, OptionsOf(call));
    });
  }
  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    return Through(send.whole, [&](const CommBuffer& out) {
      return Through(receive.whole, [&](const CommBuffer& in) {
        return inner_->AllToAll({.send = out, .receive = in}, OptionsOf(call));
      });
    });
  }
  absl::Status CopyToSelf(const CommBuffer& from,
                          const CommBuffer& to) override {
    return Through(from, [&](const CommBuffer& out) {
      return Through(to, [&](const CommBuffer& in) {
        return inner_->AllToAll({.send = out, .receive = in}, {});
      });
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
};

}  // namespace

std::unique_ptr<Communicator> BuffersOnDevice(
    std::unique_ptr<Communicator> communicator, Device& device) {
  return std::make_unique<OnDevice>(std::move(communicator), device);
}

}  // namespace troupe
