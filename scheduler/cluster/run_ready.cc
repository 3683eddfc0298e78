#include "scheduler/cluster/run_ready.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/attempt_counts.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/run_words.h"

namespace troupe {
namespace {

void AddWarnings(const RankReady& ready, const Limits& limits,
                 std::vector<std::string>& said) {
  for (const std::string& warning : ready.warnings()) {
    if (static_cast<int>(said.size()) >= limits.warnings_max) break;
    std::string line = OneLine(warning, limits.reason_bytes_max);
    if (std::find(said.begin(), said.end(), line) != said.end()) continue;
    said.push_back(std::move(line));
  }
}

}  // namespace

void RunReady::Ready(Job& job, const RankReady& ready, absl::Time now,
                     Actions& actions) {
  RankSeat& seat = job.run->ranks[ready.ref().rank()];
  if (seat.ready()) return;
  seat.state = RankSeat::kRunning;
  seat.first_step = std::max<int64_t>(1, ready.first_step());
  seat.step = seat.first_step - 1;
  const int rank = ready.ref().rank();
  job.run->GotOn(rank, now);
  const int other = job.run->ranks.OfAnotherStart(rank);
  if (other >= 0 && !job.run->stopping()) {
    const RankSeat& of_other = job.run->ranks[other];
    return verdicts_.Fail(
        job, Blame::kRank,
        absl::StrCat(seat.Name(rank), " begins with step ", seat.first_step,
                     ", and ", of_other.Name(other), " with step ",
                     of_other.first_step),
        now, actions);
  }
  // One of its own is known, and newer. From copies it goes on with what it has
  // resumed before, of which the rank may not know.
  const auto& follows = job.run->follows;
  const bool from_copies = follows.has_value() && follows->resumes_at >= 0;
  if (rank == 0 && job.status.checkpoints().empty() && !from_copies) {
    job.status.set_resumed_from(
        OneLine(ready.resumed_from(), limits_.reason_bytes_max));
  }
  if (auto* const said = WarningsOf(job.run->phase)) {
    AddWarnings(ready, limits_, *said);
  }
  TrainIfAllReady(job, now, actions);
}

void RunReady::TrainIfAllReady(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  if (!run.is<phase::Starting>()) return;
  const int64_t first_step = run.ranks.FirstStep();
  // Others may have had so little to do that they have ended. Of one that the
  // scheduler before this one heard of, only that is known.
  for (RankSeat& seat : run.ranks) {
    if (seat.succeeded && !seat.taken() && !seat.ready()) {
      seat.first_step = first_step;
    }
  }
  if (!run.ranks.all_ready()) return;
  const bool recovers = job.status.state() == RECOVERING;
  // One that ran before may have done more than it goes on from.
  const int64_t done = first_step - 1;
  job.status.set_steps_done(std::max(job.status.steps_done(), done));
  const std::vector<std::string> warnings =
      std::move(run.in<phase::Starting>()->warnings);
  jobs_.Enter(job, PhaseEvent::kAllReady, phase::Training());
  jobs_.SetState(job, RUNNING, "", now, actions);
  blame_.AllReady(job, now, actions);
  for (const std::string& warning : warnings) {
    jobs_.AddEvent(job, warning, now, actions);
  }
  if (recovers) {
    SayRecovered(job, now, actions);
  } else if (job.stands_since != absl::InfinitePast()) {
    SayMoved(job, now, actions);
  } else {
    if (job.status.steps_done() > 0) {
      jobs_.AddEvent(job,
                     absl::StrCat("resumed after step ", done, RunAgain(job)),
                     now, actions);
    }
    GoOn(job, now, jobs_, actions);
  }
}

void RunReady::SayRecovered(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  const int64_t begins = run.ranks[0].first_step;
  const absl::Time since = job.stands_since;
  const std::string times =
      since == absl::InfinitePast() || !run.follows.has_value()
          ? "recovered"
          : absl::StrCat("recovered in ", SecondsWords(now - since), " (",
                         SecondsWords(run.follows->let_go - since),
                         " until all ranks had let go, ",
                         SecondsWords(run.started - run.follows->let_go),
                         " for workers to take the places, ",
                         SecondsWords(now - run.started), " to begin)");
  jobs_.AddEvent(
      job, absl::StrCat(times, ": goes on with step ", begins, RunAgain(job)),
      now, actions);
  GoOn(job, now, jobs_, actions);
}

void RunReady::SayMoved(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  const size_t ranks = run.ranks.size();
  jobs_.AddEvent(
      job,
      absl::StrCat("goes on with ", ranks, ranks == 1 ? " worker" : " workers",
                   " after ", SecondsWords(now - job.stands_since),
                   ", with step ", run.ranks[0].first_step, RunAgain(job)),
      now, actions);
  GoOn(job, now, jobs_, actions);
}

void RunReady::Notice(Job& job, const RankNotice& notice, absl::Time now,
                      Actions& actions) {
  Run& run = *job.run;
  if (run.notices >= limits_.notices_max) return;
  const int rank = notice.ref().rank();
  const bool is_last = ++run.notices == limits_.notices_max;
  jobs_.AddEvent(
      job,
      absl::StrCat(run.ranks[rank].Name(rank), ": ", notice.text(),
                   is_last ? "; no more notices of this attempt are told" : ""),
      now, actions);
}

void RunReady::Set(Job& job, const StoreSet& set, absl::Time now,
                   Actions& actions) {
  if (set.erase()) return job.run->rendezvous.Erase(set.key());
  if (set.keep_first()) return SetFirst(job, set, now, actions);
  const auto waited = job.run->rendezvous.Set(set.key(), set.value());
  if (!waited.ok()) {
    return verdicts_.Fail(job, Blame::kRank,
                          std::string(waited.status().message()), now, actions);
  }
  for (const int rank : *waited) {
    SendValue(job, rank, set.key(), set.value(), actions);
  }
}

// The rank that asks is answered whether it won or not; all others that waited,
// too.
void RunReady::SetFirst(Job& job, const StoreSet& set, absl::Time now,
                        Actions& actions) {
  const int rank = set.ref().rank();
  const auto first =
      job.run->rendezvous.SetFirst(set.key(), set.value(), set.behind());
  if (absl::IsNotFound(first.status())) {
    return SendLost(job, rank, set.key(), actions);
  }
  if (!first.ok()) {
    return verdicts_.Fail(job, Blame::kRank,
                          std::string(first.status().message()), now, actions);
  }
  SendValue(job, rank, set.key(), first->value, actions);
  for (const int waiter : first->waited) {
    if (waiter == rank) continue;
    SendValue(job, waiter, set.key(), first->value, actions);
  }
}

void RunReady::Get(Job& job, const StoreGet& get, absl::Time now,
                   Actions& actions) {
  const int rank = get.ref().rank();
  const auto found = job.run->rendezvous.Get(rank, get.key());
  if (!found.ok()) {
    return verdicts_.Fail(job, Blame::kRank,
                          std::string(found.status().message()), now, actions);
  }
  if (*found != nullptr) SendValue(job, rank, get.key(), **found, actions);
}

}  // namespace troupe
