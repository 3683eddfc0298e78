#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/hand_out.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/step_gather.h"

namespace troupe {

// The part of RunControl that carries out what the table of phases says of the
// edge that a job has taken (phase.h).

void RunControl::Perform(Job& job, const std::string& why, Actions& actions) {
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

void RunControl::HandOutRanks(Job& job, Actions& actions) {
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

void RunControl::StopRanks(const Job& job, const std::string& why,
                           bool peers_gone, Actions& actions) {
  for (size_t rank = 0; rank < job.run->ranks.size(); ++rank) {
    SendStop(job, static_cast<int>(rank), why, peers_gone, actions);
  }
}

void RunControl::ForgetRanks(Job& job, const std::string& why,
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

void RunControl::FreeWorkers(Job& job, Actions& actions) {
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

// Each worker is asked once, for all states of which it keeps copies.
void RunControl::SaveCopiesOfAll(Job& job, Actions& actions) {
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

}  // namespace troupe
