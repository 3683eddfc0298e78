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

  absl::Status DoAllReduce(CommBuffer data, ReduceOp op,
                           const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->AllReduce(there, op, OptionsOf(call));
    });
  }
  absl::Status DoReduceScatter(CommBuffer data, ReduceOp op,
                               const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->ReduceScatter(there, op, OptionsOf(call));
    });
  }
  absl::Status DoAllGather(CommBuffer data, const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->AllGather(there, OptionsOf(call));
    });
  }
  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    return Through(data, [&](const CommBuffer& there) {
      return inner_->Broadcast(there, root, OptionsOf(call));
    });
  }
  absl::Status AllToAllThere(const AllToAllBuffers& buffers,
                             const CommOptions& options) {
    Twin receive(device_, buffers.receive);
    const absl::Status status =
        Through(buffers.send, [&](const CommBuffer& send) {
          return inner_->AllToAll({.send = send, .receive = receive.buffer()},
                                  options);
        });
    if (status.ok()) receive.CopyBack();
    return status;
  }
  absl::Status DoAllToAll(const AllToAllBuffers& buffers,
                          const Call& call) override {
    return AllToAllThere(buffers, OptionsOf(call));
  }
  absl::Status CopyToSelf(const AllToAllBuffers& buffers) override {
    return AllToAllThere(buffers, {});
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
