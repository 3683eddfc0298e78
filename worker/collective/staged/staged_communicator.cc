#include "worker/collective/staged/staged_communicator.h"

#include <string>
#include <utility>

#include "proto/base/status.h"
#include "proto/plan/layout.h"

namespace troupe {
namespace {

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, Device& device)
      : Communicator(host->group(), host->rank()),
        host_(std::move(host)),
        device_(device) {}
  ~StagedCommunicator() override {
    host_.reset();  // it may still know the memory
    if (staging_ != nullptr) device_.FreeHost(staging_);
  }

 private:
  static CommOptions OptionsOf(const Call& call) {
    return {.name = std::string(call.name),
            .timeout = call.deadline - absl::Now()};
  }

  // The host's copy of a buffer, its bytes not yet copied.
  absl::StatusOr<CommBuffer> Stage(const CommBuffer& data) {
    RETURN_IF_ERROR(Reserve(data.bytes()));
    return CommBuffer{staging_, data.elements, data.element};
  }
  absl::Status Reserve(size_t bytes) {
    if (bytes <= staging_bytes_) return absl::OkStatus();
    if (staging_ != nullptr) device_.FreeHost(staging_);
    staging_ = nullptr;
    staging_bytes_ = 0;
    ASSIGN_OR_RETURN(staging_, device_.AllocateHost(bytes));
    staging_bytes_ = bytes;
    return absl::OkStatus();
  }

  absl::Status CopyOut(const CommBuffer& device, const CommBuffer& host) {
    device_.CopyToHost(host.data, device.data, device.bytes());
    return device_.Synchronize();
  }
  absl::Status CopyBack(const CommBuffer& host, const CommBuffer& device) {
    device_.CopyFromHost(device.data, host.data, device.bytes());
    return device_.Synchronize();
  }

  CommBuffer OwnBlock(const CommBuffer& data) const {
    const Range range =
        EvenPiece(data.elements, {.index = rank(), .count = size()});
    return data.Slice(range.begin, range.end);
  }

  absl::Status DoAllReduce(CommBuffer data, ReduceOp op,
                           const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data));
    RETURN_IF_ERROR(CopyOut(data, staged));
    RETURN_IF_ERROR(host_->AllReduce(staged, op, OptionsOf(call)));
    return CopyBack(staged, data);
  }

  absl::Status DoReduceScatter(CommBuffer data, ReduceOp op,
                               const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data));
    RETURN_IF_ERROR(CopyOut(data, staged));
    RETURN_IF_ERROR(host_->ReduceScatter(staged, op, OptionsOf(call)));
    return CopyBack(OwnBlock(staged), OwnBlock(data));
  }

  absl::Status DoAllGather(CommBuffer data, const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data));
    RETURN_IF_ERROR(CopyOut(OwnBlock(data), OwnBlock(staged)));
    RETURN_IF_ERROR(host_->AllGather(staged, OptionsOf(call)));
    return CopyBack(staged, data);
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    ASSIGN_OR_RETURN(const CommBuffer staged, Stage(data));
    if (rank() == root) RETURN_IF_ERROR(CopyOut(data, staged));
    RETURN_IF_ERROR(host_->Broadcast(staged, root, OptionsOf(call)));
    return rank() == root ? absl::OkStatus() : CopyBack(staged, data);
  }

  absl::Status DoAllToAll(const AllToAllBuffers& buffers,
                          const Call& call) override {
    const size_t bytes = buffers.send.bytes();
    RETURN_IF_ERROR(Reserve(2 * bytes));
    AllToAllBuffers staged = buffers;
    staged.send.data = staging_;
    staged.receive.data = static_cast<char*>(staging_) + bytes;
    RETURN_IF_ERROR(CopyOut(buffers.send, staged.send));
    RETURN_IF_ERROR(host_->AllToAll(staged, OptionsOf(call)));
    return CopyBack(staged.receive, buffers.receive);
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

  absl::Status DoBarrier(const Call& call) override {
    return host_->Barrier(OptionsOf(call));
  }

  absl::Status CopyToSelf(const AllToAllBuffers& buffers) override {
    device_.CopyWithin(buffers.receive.data, buffers.send.data,
                       buffers.send.bytes());
    return device_.Synchronize();
  }

  void DoAbort(const absl::Status& why) override { host_->Abort(why); }

  std::unique_ptr<Communicator> host_;
  Device& device_;
  void* staging_ = nullptr;
  size_t staging_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> StageThroughHost(
    std::unique_ptr<Communicator> host, Device& device) {
  return std::make_unique<StagedCommunicator>(std::move(host), device);
}

}  // namespace troupe
