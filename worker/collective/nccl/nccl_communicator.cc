#include "worker/collective/nccl/nccl_communicator.h"

#include <atomic>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/first_launches.h"
#include "ops/fence.h"
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "worker/collective/nccl/join.h"
#include "worker/collective/nccl/warm_up.h"
#include "worker/collective/watch.h"

namespace troupe {
namespace {

// For the members to find out, after a failure, who of them is to blame.
constexpr absl::Duration kInquest = absl::Seconds(2);

ncclDataType_t TypeOf(Element element) {
  switch (element) {
    case Element::kF32:
      return ncclFloat32;
    case Element::kF64:
      return ncclFloat64;
    case Element::kI32:
      return ncclInt32;
    case Element::kI64:
      return ncclInt64;
    case Element::kBF16:
      return ncclBfloat16;
    case Element::kF16:
      return ncclFloat16;
    case Element::kByte:
      return ncclUint8;
  }
  CHECK(false) << "element " << static_cast<int>(element);
  return ncclUint8;
}

ncclRedOp_t OpOf(ReduceOp op) {
  return op == ReduceOp::kSum ? ncclSum : ncclMax;
}

class NcclCommunicator final : public Communicator, private Watched {
 public:
  // In a group of one there is nobody to meet.
  NcclCommunicator(const CommunicatorSeat& seat, JoinedNccl joined)
      : Communicator(seat.group, seat.rank),
        device_(CudaDevice::From(*seat.device)),
        meeting_(std::move(joined.meeting)),
        comm_(std::move(joined.comm)) {
    if (comm_ == nullptr) return;
    watch_ = WatchOf(seat);
    watch_->Add(*this);
  }
  ~NcclCommunicator() override {
    if (watch_ != nullptr) watch_->Remove(*this);
    if (scratch_ != nullptr) device_.Free(scratch_);
  }

  uint64_t sent_bytes() const override {
    return sent_bytes_.load(std::memory_order_relaxed);
  }

 private:
  using Enqueued = absl::FunctionRef<ncclResult_t(ncclComm_t, cudaStream_t)>;

  static CommOptions OptionsOf(const Call& call) {
    return {.name = std::string(call.name),
            .timeout = call.deadline - absl::Now()};
  }

  // One operation of all members, of which this rank sends so many bytes.
  absl::Status Operate(const Call& call, size_t sent, Enqueued enqueue) {
    RETURN_IF_ERROR(meeting_->All(OptionsOf(call)));
    return Move(call, sent, enqueue);
  }

  // Enqueues and waits for the end.
  absl::Status Move(const Call& call, size_t sent, Enqueued enqueue) {
    const cudaStream_t stream = device_.stream();
    if (device_.failed()) return device_.status();
    const FirstLaunches::Operation operation(device_.first_launches());
    {
      absl::MutexLock lock(&mutex_);
      deadline_ = call.deadline;
    }
    watch_->Expect(call.deadline);
    absl::Status status = comm_->Enqueue(
        call.operation, [&](ncclComm_t comm) { return enqueue(comm, stream); });
    if (status.ok()) status = device_.Record(FenceUse::kOrder)->Await();
    absl::Status watched;
    {
      absl::MutexLock lock(&mutex_);
      deadline_ = absl::nullopt;
      watched = watched_;
      if (!aborted_.ok()) {
        return absl::CancelledError(
            absl::StrCat("aborted: ", aborted_.message()));
      }
    }
    if (!watched.ok()) return Blame(call, watched);
    if (!status.ok()) return Blame(call, status);
    sent_bytes_.fetch_add(sent, std::memory_order_relaxed);
    return absl::OkStatus();
  }

  // Aborts NCCL where an operation cannot end well any more.
  absl::Time Look() override {
    absl::MutexLock lock(&mutex_);
    if (!deadline_.has_value() || !watched_.ok()) return absl::InfiniteFuture();
    watched_ = comm_->AsyncError();
    if (watched_.ok() && absl::Now() >= *deadline_) {
      watched_ = absl::DeadlineExceededError("NCCL did not end in time");
    }
    if (watched_.ok()) return *deadline_;
    comm_->Abort();
    return absl::InfiniteFuture();
  }

  // A member that does not come now is the reason why NCCL failed.
  absl::Status Blame(const Call& call, const absl::Status& failure) {
    comm_->Abort();
    const absl::Status met =
        meeting_->All({.name = std::string(call.name), .timeout = kInquest});
    return met.ok() ? failure : met;
  }

  // Reduces an f32 copy on the device, which is rounded once: the wide copy of
  // `from` is what `body` gets, and what it returns is narrowed into `to`.
  using InWide =
      absl::FunctionRef<absl::StatusOr<CommBuffer>(const CommBuffer&)>;
  absl::Status InF32(const CommBuffer& from, const CommBuffer& to,
                     InWide body) {
    const CommBuffer f32 = {.elements = from.elements,
                            .element = Element::kF32};
    RETURN_IF_ERROR(Reserve(f32.bytes()));
    const DType narrow =
        from.element == Element::kF16 ? DType::kF16 : DType::kBF16;
    Copy(device_, {.x = Tensor(from.data, narrow, {from.elements}),
                   .y = Tensor(scratch_, DType::kF32, {from.elements})});
    ASSIGN_OR_RETURN(const CommBuffer result,
                     body({scratch_, f32.elements, f32.element}));
    Copy(device_, {.x = Tensor(result.data, DType::kF32, {to.elements}),
                   .y = Tensor(to.data, narrow, {to.elements})});
    return device_.Synchronize();
  }
  absl::Status Reserve(size_t bytes) {
    if (bytes <= scratch_bytes_) return absl::OkStatus();
    if (scratch_ != nullptr) {
      device_.first_launches().RunAlone([this] { device_.Free(scratch_); });
    }
    scratch_ = nullptr;
    scratch_bytes_ = 0;
    ASSIGN_OR_RETURN(scratch_, device_.Allocate(bytes));
    scratch_bytes_ = bytes;
    return absl::OkStatus();
  }
  static bool NeedsF32(const CommBuffer& data, ReduceOp op) {
    return IsNarrow(data.element) && op == ReduceOp::kSum;
  }

  absl::Status DoAllReduce(const CommBlocks& blocks, ReduceOp op,
                           const Call& call) override {
    const CommBuffer& data = blocks.whole;
    if (NeedsF32(data, op)) {
      return InF32(
          data, data,
          [&](const CommBuffer& wide) -> absl::StatusOr<CommBuffer> {
            RETURN_IF_ERROR(DoAllReduce({wide, blocks.ranges}, op, call));
            return wide;
          });
    }
    const size_t sent = OfOthers(blocks) + ToOthers(blocks.Of(rank()));
    return Operate(call, sent, [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(data.data, data.data, data.elements,
                           TypeOf(data.element), OpOf(op), comm, stream);
    });
  }

  // Blocks of unequal sizes are reduced one by one, in one launch.
  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    if (NeedsF32(receive, op)) {
      return InF32(send.whole, receive,
                   [&](const CommBuffer& wide) -> absl::StatusOr<CommBuffer> {
                     const CommBlocks blocks = {wide, send.ranges};
                     const CommBuffer own = blocks.Of(rank());
                     RETURN_IF_ERROR(DoReduceScatter(blocks, own, op, call));
                     return own;
                   });
    }
    return Operate(
        call, OfOthers(send), [&](ncclComm_t comm, cudaStream_t stream) {
          const ncclDataType_t type = TypeOf(receive.element);
          if (Even(send)) {
            return ncclReduceScatter(send.whole.data, receive.data,
                                     receive.elements, type, OpOf(op), comm,
                                     stream);
          }
          return Grouped([&](int i) {
            const CommBuffer block = send.Of(i);
            return ncclReduce(block.data,
                              i == rank() ? receive.data : block.data,
                              block.elements, type, OpOf(op), i, comm, stream);
          });
        });
  }

  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    return ReduceWhole(data.whole, root, op, call);
  }

  absl::Status ReduceWhole(const CommBuffer& data, int root, ReduceOp op,
                           const Call& call) {
    if (NeedsF32(data, op)) {
      return InF32(data, data,
                   [&](const CommBuffer& wide) -> absl::StatusOr<CommBuffer> {
                     RETURN_IF_ERROR(ReduceWhole(wide, root, op, call));
                     return wide;
                   });
    }
    return Operate(call, rank() == root ? 0 : data.bytes(),
                   [&](ncclComm_t comm, cudaStream_t stream) {
                     return ncclReduce(data.data, data.data, data.elements,
                                       TypeOf(data.element), OpOf(op), root,
                                       comm, stream);
                   });
  }

  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    return Operate(
        call, ToOthers(send), [&](ncclComm_t comm, cudaStream_t stream) {
          const ncclDataType_t type = TypeOf(send.element);
          if (Even(receive)) {
            return ncclAllGather(send.data, receive.whole.data, send.elements,
                                 type, comm, stream);
          }
          return Grouped([&](int i) {
            const CommBuffer block = receive.Of(i);
            return ncclBroadcast(i == rank() ? send.data : block.data,
                                 block.data, block.elements, type, i, comm,
                                 stream);
          });
        });
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    return Operate(call, rank() == root ? ToOthers(data) : 0,
                   [&](ncclComm_t comm, cudaStream_t stream) {
                     return ncclBroadcast(data.data, data.data, data.elements,
                                          TypeOf(data.element), root, comm,
                                          stream);
                   });
  }

  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    return Operate(
        call, OfOthers(send), [&](ncclComm_t comm, cudaStream_t stream) {
          const ncclDataType_t type = TypeOf(send.whole.element);
          return Grouped([&](int i) {
            const CommBuffer out = send.Of(i);
            const CommBuffer in = receive.Of(i);
            ncclResult_t result = ncclSuccess;
            if (out.elements > 0) {
              result = ncclSend(out.data, out.elements, type, i, comm, stream);
            }
            if (result != ncclSuccess && result != ncclInProgress)
              return result;
            if (in.elements == 0) return result;
            return ncclRecv(in.data, in.elements, type, i, comm, stream);
          });
        });
  }

  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    RETURN_IF_ERROR(meeting_->With(peer, OptionsOf(call)));
    return Move(call, data.bytes(), [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclSend(data.data, data.elements, TypeOf(data.element), peer,
                      comm, stream);
    });
  }

  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    RETURN_IF_ERROR(meeting_->With(peer, OptionsOf(call)));
    return Move(call, 0, [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclRecv(data.data, data.elements, TypeOf(data.element), peer,
                      comm, stream);
    });
  }

  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    RETURN_IF_ERROR(meeting_->Between({.to = buffers.to, .from = buffers.from},
                                      OptionsOf(call)));
    return Move(
        call, buffers.send.bytes(), [&](ncclComm_t comm, cudaStream_t stream) {
          const CommBuffer& out = buffers.send;
          const CommBuffer& in = buffers.receive;
          ncclResult_t result = ncclGroupStart();
          if (result != ncclSuccess) return result;
          result = ncclSend(out.data, out.elements, TypeOf(out.element),
                            buffers.to, comm, stream);
          if (result == ncclSuccess || result == ncclInProgress) {
            result = ncclRecv(in.data, in.elements, TypeOf(in.element),
                              buffers.from, comm, stream);
          }
          const ncclResult_t ended = ncclGroupEnd();
          return result == ncclSuccess || result == ncclInProgress ? ended
                                                                   : result;
        });
  }

  absl::Status DoBarrier(const Call& call) override {
    return meeting_->All(OptionsOf(call));
  }

  absl::Status CopyToSelf(const CommBuffer& from,
                          const CommBuffer& to) override {
    if (to.data == from.data) return absl::OkStatus();
    device_.CopyWithin(to.data, from.data, from.bytes());
    return device_.Synchronize();
  }

  void DoAbort(const absl::Status& why) override {
    {
      absl::MutexLock lock(&mutex_);
      aborted_ = why;
    }
    if (meeting_ != nullptr) meeting_->Abort(why);
    if (comm_ != nullptr) comm_->Abort();
  }

  size_t OfOthers(const CommBlocks& blocks) const {
    return blocks.whole.bytes() - blocks.Of(rank()).bytes();
  }
  size_t ToOthers(const CommBuffer& data) const {
    return (size() - 1) * data.bytes();
  }
  static bool Even(const CommBlocks& blocks) {
    return blocks.longest() * static_cast<int64_t>(blocks.ranges.size()) ==
           blocks.whole.elements;
  }

  // A call for each member, launched as one.
  ncclResult_t Grouped(absl::FunctionRef<ncclResult_t(int)> call) const {
    ncclResult_t result = ncclGroupStart();
    for (int i = 0; i < size() && result == ncclSuccess; ++i) {
      result = call(i);
      if (result == ncclInProgress) result = ncclSuccess;
    }
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
  }

  CudaDevice& device_;
  const std::unique_ptr<NcclMeeting> meeting_;
  const std::unique_ptr<NcclComm> comm_;
  std::shared_ptr<Watch> watch_;  // null: in a group of one
  void* scratch_ = nullptr;       // device memory
  size_t scratch_bytes_ = 0;
  std::atomic<uint64_t> sent_bytes_{0};
  absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  // Of the operation under way; none: none is.
  absl::optional<absl::Time> deadline_ ABSL_GUARDED_BY(mutex_);
  absl::Status watched_ ABSL_GUARDED_BY(mutex_);  // why NCCL was aborted
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateNccl(
    const CommunicatorSeat& seat) {
  CHECK(seat.device != nullptr && seat.device->kind() == DeviceKind::kCuda)
      << "group " << seat.group.name << " has no GPU";
  JoinedNccl joined;
  if (seat.group.ranks.size() > 1) {
    ASSIGN_OR_RETURN(joined, JoinNccl(seat));
  }
  auto communicator =
      std::make_unique<NcclCommunicator>(seat, std::move(joined));
  const JoinAbort::Interrupt interrupt(
      seat.abort, [joining = communicator.get()](const absl::Status& why) {
        joining->Abort(why);
      });
  RETURN_IF_ERROR(
      WarmUp(*communicator, {.device = *seat.device, .timeout = seat.timeout}));
  return communicator;
}

std::string NcclVersion() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "";
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace troupe
