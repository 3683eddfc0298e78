#include "worker/collective/nccl/comm.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// How the calling thread looks whether NCCL has done what a call asks. A
// communicator that does not block launches each operation in a thread of its
// own, within some tens of microseconds, which is about what it takes to wake
// from the shortest sleep: so for that long it only lets other threads run. The
// first time NCCL connects the members, too, which takes a hundred times as
// long: then it sleeps, for longer and longer.
constexpr absl::Duration kAwake = absl::Microseconds(50);
constexpr absl::Duration kFirstLook = absl::Microseconds(20);
constexpr absl::Duration kLastLook = absl::Microseconds(500);
constexpr absl::Duration kGoodbye = absl::Seconds(5);

absl::Status Aborted() {
  return absl::AbortedError("the NCCL communicator was aborted");
}

}  // namespace

absl::Status ToStatus(ncclResult_t result, absl::string_view call) {
  if (result == ncclSuccess || result == ncclInProgress) {
    return absl::OkStatus();
  }
  const std::string text = absl::StrCat(call, ": ", ncclGetErrorString(result));
  const bool ours = result == ncclInvalidArgument || result == ncclInvalidUsage;
  return ours ? absl::InvalidArgumentError(text) : absl::InternalError(text);
}

absl::Status AwaitSettled(
    absl::string_view call, const SettleLimits& limits,
    absl::FunctionRef<absl::optional<ncclResult_t>()> state) {
  const absl::Time asleep_from = SteadyNow() + kAwake;
  absl::Duration sleep = kFirstLook;
  while (true) {
    const absl::optional<ncclResult_t> now_at = state();
    if (!now_at.has_value()) return Aborted();
    if (*now_at != ncclInProgress) return ToStatus(*now_at, call);
    if (limits.abort != nullptr && !limits.abort->status().ok()) {
      return Aborted();
    }
    const absl::Time now = SteadyNow();
    if (now >= limits.deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(call, " did not end in time"));
    }
    if (now < asleep_from) {
      std::this_thread::yield();
      continue;
    }
    absl::SleepFor(sleep);
    sleep = std::min(2 * sleep, kLastLook);
  }
}

absl::StatusOr<std::unique_ptr<NcclComm>> NcclComm::Create(
    CudaDevice& device, const Place& place, absl::Time deadline) {
  if (!device.MakeCurrent()) return device.status();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::unique_ptr<NcclComm> comm(new NcclComm(device));
  ncclComm_t made = nullptr;
  const ncclResult_t result =
      ncclCommInitRankConfig(&made, place.size, place.id, place.rank, &config);
  {
    absl::MutexLock lock(&comm->mutex_);
    comm->comm_ = made;
  }
  RETURN_IF_ERROR(ToStatus(result, "ncclCommInitRankConfig"));
  const absl::Status settled = comm->Settle(
      "ncclCommInitRankConfig", {.deadline = deadline, .abort = place.abort});
  if (settled.ok()) return comm;
  comm->Abort();
  return settled;
}

NcclComm::~NcclComm() {
  ncclComm_t comm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    comm = comm_;
  }
  if (comm == nullptr) return;
  MakeCurrent();
  absl::Status gone = ToStatus(ncclCommFinalize(comm), "ncclCommFinalize");
  if (gone.ok())
    gone = Settle("ncclCommFinalize", {.deadline = SteadyNow() + kGoodbye});
  if (gone.ok()) {
    ncclCommDestroy(comm);
  } else {
    Abort();
  }
}

absl::optional<ncclResult_t> NcclComm::State() {
  absl::MutexLock lock(&mutex_);
  if (comm_ == nullptr) return absl::nullopt;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  return asked == ncclSuccess ? state : asked;
}

absl::Status NcclComm::AsyncError() {
  const absl::optional<ncclResult_t> state = State();
  return state.has_value() ? ToStatus(*state, "an operation of NCCL")
                           : Aborted();
}

absl::Status NcclComm::Enqueue(
    absl::string_view name, absl::FunctionRef<ncclResult_t(ncclComm_t)> call) {
  ncclResult_t result = ncclSuccess;
  {
    absl::MutexLock lock(&mutex_);
    if (comm_ == nullptr) return Aborted();
    result = call(comm_);
  }
  RETURN_IF_ERROR(ToStatus(result, name));
  if (result == ncclSuccess) return absl::OkStatus();
  // The watch of the deadline aborts.
  return Settle(name, {});
}

void NcclComm::Abort() {
  ncclComm_t comm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    comm = std::exchange(comm_, nullptr);
  }
  if (comm == nullptr) return;
  MakeCurrent();
  ncclCommAbort(comm);
}

}  // namespace troupe
