#include "scheduler/cluster/phase_effects.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/hand_out.h"
#include "scheduler/cluster/step_gather.h"

namespace troupe {

void PhaseEffects::Perform(Job& job, const std::string& why, Actions& actions) {
  const PhaseEffect due = std::exchange(job.due, PhaseEffect::kNone);
  if (job.run == nullptr) return;
  switch (due) {
    case PhaseEffect::kNone:
      return;
    case PhaseEffect::kStoreStart:
      return StoreStart(job, actions);
    case PhaseEffect::kHandOut:
      return HandOutRanks(job, actions);
    case PhaseEffect::kStopRanks:
      return StopRanks(job, why, job.run->blame() != Blame::kNone, actions);
    case PhaseEffect::kForgetRanks:
      return ForgetRanks(job, why, actions);
    case PhaseEffect::kFreeWorkers:
      return FreeWorkers(job, actions);
    case PhaseEffect::kSaveCopies:
      return SaveCopiesOfAll(job, actions);
    case PhaseEffect::kStoreCheckpoint:
      return AskTheStore(job, actions);
  }
}

void PhaseEffects::StoreStart(Job& job, Actions& actions) {
  if (job.plan->job().has_recovery()) {
    actions.push_back(PersistHandOut{job.id, job.attempt, job.run->handed});
  }
  AskTheStore(job, actions);
}

void PhaseEffects::AskTheStore(Job& job, Actions& actions) {
  AskedOf(job.run->phase)->number = ++job.run->store_questions;
  AwaitTheStore(job, actions);
}

void PhaseEffects::HandOutRanks(Job& job, Actions& actions) {
  const auto common = job.run->handed;
  const int ranks = static_cast<int>(job.run->ranks.size());
  std::vector<std::string> hosts;
  for (const RankSeat& seat : job.run->ranks) {
    hosts.push_back(workers_.Find(seat.worker)->status.description().host());
  }
  const std::vector<bool> checks =
      RanksThatCheckData(common->loads_data, hosts);
  for (int rank = 0; rank < ranks; ++rank) {
    SendToWorker send{job.run->ranks[rank].worker, {}, common};
    Assignment& start = *send.message.mutable_start();
    *start.mutable_ref() = RefOf(job, rank);
    start.set_run_id(job.status.run_id());
    if (IsTraced(rank, ranks)) start.set_trace_every(limits_.trace_every);
    job.run->ranks[rank].checks_data = checks[rank];
    start.set_checks_data(checks[rank]);
    actions.push_back(std::move(send));
  }
}

void PhaseEffects::StopRanks(const Job& job, const std::string& why,
                             bool peers_gone, Actions& actions) {
  for (size_t rank = 0; rank < job.run->ranks.size(); ++rank) {
    SendStop(job, static_cast<int>(rank), why, peers_gone, actions);
  }
}

void PhaseEffects::ForgetRanks(Job& job, const std::string& why,
                               Actions& actions) {
  Run& run = *job.run;
  for (int rank = 0; rank < static_cast<int>(run.ranks.size()); ++rank) {
    RankSeat& seat = run.ranks[rank];
    if (!seat.taken() || seat.awaited()) continue;
    SendForget(seat.worker, RefOf(job, rank), why, actions);
    seat.state = RankSeat::kEnded;
    workers_.Release(seat.worker);
  }
}

void PhaseEffects::FreeWorkers(Job& job, Actions& actions) {
  Run& run = *job.run;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    RankSeat& seat = run.ranks[rank];
    if (!seat.taken() || seat.awaited()) continue;
    SendGiveUpKept(job, static_cast<int>(rank), actions);
    SendEndStored(job, static_cast<int>(rank), actions);
    seat.state = RankSeat::kEnded;
    workers_.Release(seat.worker);
  }
}

void PhaseEffects::Free(Job& job, int rank, Actions& actions) {
  RankSeat& seat = job.run->ranks[rank];
  SendGiveUpKept(job, rank, actions);
  seat.kept.clear();
  seat.state = RankSeat::kEnded;
  workers_.Release(seat.worker);
}

// Each worker is asked once, for all states of which it keeps copies.
void PhaseEffects::SaveCopiesOfAll(Job& job, Actions& actions) {
  Run& run = *job.run;
  std::map<int, SaveCopies> requests;  // by the rank that holds them
  for (const Handover& holder : run.in<phase::SavingCopies>()->holders) {
    CopyToSave& copy = *requests[holder.from()].add_copies();
    copy.mutable_plan()->set_rank(holder.to());
    copy.set_peer(holder.peer());
    copy.set_data_unchecked(holder.from() != holder.to() &&
                            run.ranks[holder.to()].checks_data);
  }
  for (auto& [rank, request] : requests) {
    SendSaveCopies(job, rank, std::move(request), actions);
  }
}

void PhaseEffects::SendSaveCopies(Job& job, int rank, SaveCopies request,
                                  Actions& actions) {
  auto& saving = *job.run->in<phase::SavingCopies>();
  const RankSeat& seat = job.run->ranks[rank];
  *request.mutable_ref() = RefOf(job, rank);
  request.mutable_ref()->set_attempt(seat.kept_by_attempt);
  *request.mutable_state() = saving.state;
  request.set_token(saving.token);
  request.set_run_id(job.status.run_id());
  request.set_resume(ResumeOf(job));
  request.set_ran_before(job.status.started_unix_ms() != 0);
  saving.awaited.insert(rank);
  SendToWorker send{seat.worker, {}, job.run->handed};
  *send.message.mutable_save_copies() = std::move(request);
  actions.push_back(std::move(send));
}

}  // namespace troupe
