#include "worker/engine/recover.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/copies.h"
#include "worker/rank/initial_state.h"

namespace troupe {
namespace {

// The memory of one of a buffer's two copies.
CommBuffer CopyAt(const RankState& state, Buffer::Kind kind, int copy) {
  const Buffer* const buffer =
      FindResident(state.role(), kind, /*unit=*/absl::nullopt);
  CHECK(buffer != nullptr) << "a plan without " << Buffer::Kind_Name(kind);
  return {.data = state.memory.Copies(*buffer).at(copy).memory(),
          .elements = buffer->bytes(),
          .element = DType::kU8};
}

absl::StatusOr<int> FindCopy(const RankState& state, int64_t step,
                             bool of_peer) {
  const int copy = state.copies.Find(step, of_peer);
  if (copy >= 0) return copy;
  return absl::FailedPreconditionError(
      absl::StrCat("the copy of ", of_peer ? "its peer's" : "this rank's",
                   " state after step ", step,
                   ", from which the job was to go on, is not ", "in memory"));
}

absl::Status RunHandover(const Handover& handover, const KeptState& kept,
                         RankState& state) {
  if (handover.from() != state.rank() && handover.to() != state.rank()) {
    return absl::OkStatus();
  }
  Communicator& communicator =
      *state.communicators.at(CopiesGroup(*state.plan));
  const CommOptions options = {
      .name = absl::StrCat("the copy of rank ", handover.to(), "'s state"),
      .timeout = state.collective_timeout};
  if (handover.from() == state.rank()) {
    ASSIGN_OR_RETURN(const int copy,
                     FindCopy(state, kept.step(), handover.peer()));
    return communicator.Send(
        CopyAt(state, handover.peer() ? Buffer::PEER_COPY : Buffer::STATE_COPY,
               copy),
        handover.to(), options);
  }
  constexpr int kFirst = 0;
  RETURN_IF_ERROR(communicator.Recv(CopyAt(state, Buffer::STATE_COPY, kFirst),
                                    handover.from(), options));
  state.copies.Brought(kFirst, kept);
  return absl::OkStatus();
}

}  // namespace

KeptState KeptStateOf(int64_t step, int64_t samples_consumed,
                      const LossScale& loss_scale) {
  KeptState kept;
  kept.set_step(step);
  kept.set_samples_consumed(samples_consumed);
  kept.set_loss_scale(loss_scale.state().scale);
  kept.set_good_steps(loss_scale.state().good_steps);
  kept.set_skipped_steps(loss_scale.state().skipped_steps);
  return kept;
}

absl::Status Recover(const Recovery& recovery, RankState& state) {
  const KeptState& kept = recovery.state();
  for (const Handover& handover : recovery.handovers()) {
    RETURN_IF_ERROR(RunHandover(handover, kept, state));
  }
  ASSIGN_OR_RETURN(const int copy,
                   FindCopy(state, kept.step(), /*of_peer=*/false));
  RETURN_IF_ERROR(RestoreFromCopy(
      static_cast<const char*>(CopyAt(state, Buffer::STATE_COPY, copy).data),
      state));
  state.copies.DropAfter(kept.step());
  state.loss_scale = LossScale(state.plan->job().training(),
                               {.scale = kept.loss_scale(),
                                .good_steps = kept.good_steps(),
                                .skipped_steps = kept.skipped_steps()});
  // What was enqueued here, lanes will use.
  return state.device.Synchronize();
}

}  // namespace troupe
