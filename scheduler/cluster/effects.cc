#include "scheduler/cluster/effects.h"

#include <utility>

#include "proto/base/check.h"

namespace troupe {
namespace {

const RankSeat& SeatOf(const Job& job, int rank) {
  return job.run->ranks[rank];
}

void Send(WorkerId to, StopRank stop, Actions& actions) {
  SendToWorker send{to, {}};
  *send.message.mutable_stop() = std::move(stop);
  actions.push_back(std::move(send));
}

// The attempt whose copies the rank's worker keeps.
RankRef KeptRefOf(const Job& job, int rank) {
  RankRef ref = RefOf(job, rank);
  ref.set_attempt(SeatOf(job, rank).kept_by_attempt);
  return ref;
}

}  // namespace

RankRef RefOf(const Job& job, int rank) {
  RankRef ref;
  ref.set_job(job.id.value());
  ref.set_attempt(job.run->attempt);
  ref.set_rank(rank);
  return ref;
}

void SendStop(const Job& job, int rank, const std::string& reason,
              bool peers_gone, Actions& actions) {
  const RankSeat& seat = SeatOf(job, rank);
  if (!seat.live() || seat.awaited()) return;
  StopRank stop;
  *stop.mutable_ref() = RefOf(job, rank);
  stop.set_reason(reason);
  stop.set_peers_gone(peers_gone);
  stop.set_checkpoint(job.run->saving());
  Send(seat.worker, std::move(stop), actions);
}

void SendForget(WorkerId worker, const RankRef& ref, const std::string& reason,
                Actions& actions) {
  StopRank stop;
  *stop.mutable_ref() = ref;
  stop.set_reason(reason);
  stop.set_peers_gone(true);
  stop.set_forgotten(true);
  Send(worker, std::move(stop), actions);
}

void SendGiveUpKept(WorkerId worker, const RankRef& ref,
                    const std::string& reason, Actions& actions) {
  StopRank stop;
  *stop.mutable_ref() = ref;
  stop.set_reason(reason);
  stop.set_give_up_kept(true);
  Send(worker, std::move(stop), actions);
}

void SendGiveUpKept(const Job& job, int rank, Actions& actions) {
  const RankSeat& seat = SeatOf(job, rank);
  if (seat.kept.empty()) return;
  SendGiveUpKept(seat.worker, KeptRefOf(job, rank), "the job does not go on",
                 actions);
}

void SendStay(const Job& job, int rank, Actions& actions) {
  StopRank stop;
  *stop.mutable_ref() = KeptRefOf(job, rank);
  stop.set_reason("what it keeps may have to be saved first");
  stop.set_checkpoint(true);
  Send(SeatOf(job, rank).worker, std::move(stop), actions);
}

void SendValue(const Job& job, int rank, const std::string& key,
               const std::string& value, Actions& actions) {
  if (!SeatOf(job, rank).live()) return;
  SendToWorker send{SeatOf(job, rank).worker, {}};
  StoreValue& said = *send.message.mutable_store_value();
  *said.mutable_ref() = RefOf(job, rank);
  said.set_key(key);
  said.set_value(value);
  actions.push_back(std::move(send));
}

void SendLost(const Job& job, int rank, const std::string& key,
              Actions& actions) {
  if (!SeatOf(job, rank).live()) return;
  SendToWorker send{SeatOf(job, rank).worker, {}};
  StoreValue& said = *send.message.mutable_store_value();
  *said.mutable_ref() = RefOf(job, rank);
  said.set_key(key);
  said.set_lost(true);
  actions.push_back(std::move(send));
}

void SendDone(const Job& job, int rank, int64_t step, Actions& actions) {
  const RankSeat& seat = SeatOf(job, rank);
  if (!seat.live() || seat.awaited()) return;
  SendWhenStored stored{{seat.worker, {}}};
  CheckpointDone& done = *stored.send.message.mutable_done();
  *done.mutable_ref() = RefOf(job, rank);
  done.set_step(step);
  // A disk that is full for long must not stop the training. That the commit is
  // stored later is said with the steps that are (RunSteps::SayStored).
  stored.otherwise = stored.send.message;
  stored.otherwise->mutable_done()->set_unstored(true);
  actions.push_back(std::move(stored));
}

void SendGivenUp(const Job& job, int rank, const GivenUpCheckpoint& given_up,
                 Actions& actions) {
  const RankSeat& seat = SeatOf(job, rank);
  if (!seat.live() || seat.awaited()) return;
  SendToWorker send{seat.worker, {}};
  CheckpointDone& done = *send.message.mutable_done();
  *done.mutable_ref() = RefOf(job, rank);
  done.set_step(given_up.step);
  done.set_write(given_up.write);
  done.set_given_up(given_up.why);
  actions.push_back(std::move(send));
}

void SendStored(const Job& job, int rank, Stored stored, Actions& actions) {
  const RankSeat& seat = SeatOf(job, rank);
  if (!seat.live() || seat.awaited()) return;
  SendWhenStored send{{seat.worker, {}}};
  *send.send.message.mutable_stored() = std::move(stored);
  *send.send.message.mutable_stored()->mutable_ref() = RefOf(job, rank);
  actions.push_back(std::move(send));
}

void SendEndStored(const Job& job, int rank, Actions& actions) {
  const RankSeat& seat = SeatOf(job, rank);
  if (seat.kept_by_attempt == 0) return;
  SendWhenStored stored{{seat.worker, {}}};
  Stored& said = *stored.send.message.mutable_stored();
  *said.mutable_ref() = KeptRefOf(job, rank);
  said.set_ended(true);
  actions.push_back(std::move(stored));
}

std::string ResumeOf(const Job& job) {
  const auto& checkpoints = job.status.checkpoints();
  return checkpoints.empty() ? job.plan->job().checkpoint().resume()
                             : checkpoints.rbegin()->path();
}

bool AwaitsStore(const Job& job) {
  return job.run != nullptr && job.run->is<phase::Storing>();
}

bool AwaitsCopiesStored(const Job& job) {
  const auto* const saving =
      job.run == nullptr ? nullptr : job.run->in<phase::SavingCopies>();
  return saving != nullptr && saving->stage >= phase::SavingCopies::kStoring;
}

bool IsOpen(const Job& job, const AwaitStored& asked) {
  if (job.run == nullptr || job.attempt != asked.attempt) return false;
  const StoreQuestion* const open = AskedOf(job.run->phase);
  return open != nullptr && open->number == asked.question;
}

void AwaitTheStore(const Job& job, Actions& actions) {
  const StoreQuestion* const asked = AskedOf(job.run->phase);
  CHECK(asked != nullptr) << "job " << job.id;
  actions.push_back(AwaitStored{job.id, job.attempt, asked->number});
}

}  // namespace troupe
