#include "worker/collective/nccl/nccl_transport.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/first_launches.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

ncclDataType_t TypeOf(DType element) {
  switch (element) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF16:
      return ncclFloat16;
    case DType::kU8:
      return ncclUint8;
  }
  CHECK(false) << "element " << static_cast<int>(element);
  return ncclUint8;
}

ncclRedOp_t OpOf(ReduceOp op) {
  return op == ReduceOp::kSum ? ncclSum : ncclMax;
}

bool IsGood(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

bool Even(const CommBlocks& blocks) {
  return blocks.longest() * static_cast<int64_t>(blocks.ranges.size()) ==
         blocks.whole.elements;
}

// Several calls, launched as one.
ncclResult_t Grouped(int calls, absl::FunctionRef<ncclResult_t(int)> call) {
  ncclResult_t result = ncclGroupStart();
  for (int i = 0; i < calls && IsGood(result); ++i) result = call(i);
  const ncclResult_t ended = ncclGroupEnd();
  return IsGood(result) ? ended : result;
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(const NcclSeat& seat, std::unique_ptr<NcclComm> comm)
      : seat_(seat), comm_(std::move(comm)) {}

  absl::Status AllReduce(const CommBuffer& data, ReduceOp op) override {
    return Enqueue("ncclAllReduce", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(data.data, data.data, data.elements,
                           TypeOf(data.element), OpOf(op), comm, stream);
    });
  }

  // Blocks of unequal sizes are reduced one by one, in one launch.
  absl::Status ReduceScatter(const CommBlocks& send, const CommBuffer& receive,
                             ReduceOp op) override {
    const ncclDataType_t type = TypeOf(receive.element);
    return Enqueue(
        "ncclReduceScatter", [&](ncclComm_t comm, cudaStream_t stream) {
          if (Even(send)) {
            return ncclReduceScatter(send.whole.data, receive.data,
                                     receive.elements, type, OpOf(op), comm,
                                     stream);
          }
          return Grouped(seat_.size, [&](int i) {
            const CommBuffer block = send.Of(i);
            return ncclReduce(block.data,
                              i == seat_.rank ? receive.data : block.data,
                              block.elements, type, OpOf(op), i, comm, stream);
          });
        });
  }

  absl::Status AllGather(const CommBuffer& send,
                         const CommBlocks& receive) override {
    const ncclDataType_t type = TypeOf(send.element);
    return Enqueue("ncclAllGather", [&](ncclComm_t comm, cudaStream_t stream) {
      if (Even(receive)) {
        return ncclAllGather(send.data, receive.whole.data, send.elements, type,
                             comm, stream);
      }
      return Grouped(seat_.size, [&](int i) {
        const CommBuffer block = receive.Of(i);
        return ncclBroadcast(i == seat_.rank ? send.data : block.data,
                             block.data, block.elements, type, i, comm, stream);
      });
    });
  }

  absl::Status Reduce(const CommBuffer& data, int root, ReduceOp op) override {
    return Enqueue("ncclReduce", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclReduce(data.data, data.data, data.elements,
                        TypeOf(data.element), OpOf(op), root, comm, stream);
    });
  }

  absl::Status Broadcast(const CommBuffer& data, int root) override {
    return Enqueue("ncclBroadcast", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclBroadcast(data.data, data.data, data.elements,
                           TypeOf(data.element), root, comm, stream);
    });
  }

  absl::Status AllToAll(const CommBlocks& send,
                        const CommBlocks& receive) override {
    return Enqueue("ncclSend", [&](ncclComm_t comm, cudaStream_t stream) {
      return Grouped(2 * seat_.size, [&](int i) {
        const int peer = i / 2;
        const CommBuffer block = i % 2 == 0 ? send.Of(peer) : receive.Of(peer);
        if (block.elements == 0) return ncclSuccess;
        const ncclDataType_t type = TypeOf(block.element);
        return i % 2 == 0 ? ncclSend(block.data, block.elements, type, peer,
                                     comm, stream)
                          : ncclRecv(block.data, block.elements, type, peer,
                                     comm, stream);
      });
    });
  }

  absl::Status Send(const CommBuffer& data, int peer) override {
    return Enqueue("ncclSend", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclSend(data.data, data.elements, TypeOf(data.element), peer,
                      comm, stream);
    });
  }

  absl::Status Recv(const CommBuffer& data, int peer) override {
    return Enqueue("ncclRecv", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclRecv(data.data, data.elements, TypeOf(data.element), peer,
                      comm, stream);
    });
  }

  absl::Status Shift(const ShiftBuffers& buffers) override {
    const CommBuffer& out = buffers.send;
    const CommBuffer& in = buffers.receive;
    return Enqueue("ncclSend", [&](ncclComm_t comm, cudaStream_t stream) {
      return Grouped(2, [&](int i) {
        return i == 0 ? ncclSend(out.data, out.elements, TypeOf(out.element),
                                 buffers.to, comm, stream)
                      : ncclRecv(in.data, in.elements, TypeOf(in.element),
                                 buffers.from, comm, stream);
      });
    });
  }

  std::unique_ptr<Hold> Begin() override {
    return std::make_unique<UnderWayOnGpu>(seat_.device.first_launches());
  }
  absl::Status Error() override { return comm_->AsyncError(); }
  void Abort() override { comm_->Abort(); }

 private:
  class UnderWayOnGpu final : public Hold {
   public:
    explicit UnderWayOnGpu(FirstLaunches& launches) : operation_(launches) {}

   private:
    const FirstLaunches::Operation operation_;
  };

  absl::Status Enqueue(
      absl::string_view call,
      absl::FunctionRef<ncclResult_t(ncclComm_t, cudaStream_t)> enqueue) {
    const cudaStream_t stream = seat_.device.stream();
    if (seat_.device.failed()) return seat_.device.status();
    return comm_->Enqueue(
        call, [&](ncclComm_t comm) { return enqueue(comm, stream); });
  }

  const NcclSeat seat_;
  const std::unique_ptr<NcclComm> comm_;
};

}  // namespace

std::unique_ptr<Transport> NewNcclTransport(const NcclSeat& seat,
                                            std::unique_ptr<NcclComm> comm) {
  return std::make_unique<NcclTransport>(seat, std::move(comm));
}

}  // namespace troupe
