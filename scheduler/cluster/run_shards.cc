#include "scheduler/cluster/run_shards.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/run_words.h"

namespace troupe {
namespace {

// In place of a reason that could not be stored.
constexpr char kSaidBefore[] =
    "a rank could not write its part, and the scheduler that heard why has "
    "been restarted since";

std::string AlsoOthers(size_t others) {
  if (others == 0) return "";
  return absl::StrCat(" (and ", others,
                      others == 1 ? " other rank)" : " other ranks)");
}

}  // namespace

void RunShards::Shard(Job& job, const CheckpointShard& shard, absl::Time now,
                      Actions& actions) {
  job.run->GotOn(shard.ref().rank(), now);
  if (job.run->checkpoints.committed() == shard.step()) {
    return SendDone(job, shard.ref().rank(), shard.step(), actions);
  }
  Gathered(job, job.run->checkpoints.Add(shard), now, actions);
}

void RunShards::Unwritten(Job& job, const CheckpointUnwritten& unwritten,
                          absl::Time now, Actions& actions) {
  job.run->GotOn(unwritten.ref().rank(), now);
  if (job.run->checkpoints.committed() == unwritten.step()) {
    return SendDone(job, unwritten.ref().rank(), unwritten.step(), actions);
  }
  Gathered(job, job.run->checkpoints.Add(unwritten), now, actions);
}

void RunShards::Gathered(Job& job, GatheredCheckpoint gathered, absl::Time now,
                         Actions& actions) {
  for (const GatheredCheckpoint::Unheard& unheard : gathered.unheard) {
    SendGivenUp(job, unheard.rank,
                {.step = unheard.step,
                 .write = unheard.write,
                 .why = job.status.unsaved().empty() ? kSaidBefore
                                                     : job.status.unsaved()},
                actions);
  }
  if (!gathered.unwritten.empty()) {
    return GiveUpCheckpoint(job, gathered.unwritten, now, actions);
  }
  if (!gathered.commit.has_value() || !job.run->ranks[0].live() ||
      gathered.commit->step() >= job.run->wrong_since) {
    return;
  }
  *gathered.commit->mutable_ref() = RefOf(job, 0);
  SendToWorker send{job.run->ranks[0].worker, {}};
  *send.message.mutable_commit() = *std::move(gathered.commit);
  actions.push_back(std::move(send));
}

void RunShards::GiveUpCheckpoint(
    Job& job, const std::vector<CheckpointUnwritten>& unwritten, absl::Time now,
    Actions& actions) {
  const CheckpointUnwritten& first = unwritten.front();
  const int rank = first.ref().rank();
  const std::string name = job.run->ranks[rank].Name(rank);
  // One that was to move need not wait for the disk: it goes on as it was, from
  // its copies.
  if (job.moves() && job.plan->job().recovery().copies() > 0) {
    return verdicts_.Fail(
        job, Blame::kRank,
        absl::StrCat(name, " failed in ", Place(job), ": ", first.error()), now,
        actions);
  }
  const bool is_first = job.status.unsaved().empty();
  if (is_first) job.status.set_unsaved_since_unix_ms(absl::ToUnixMillis(now));
  job.status.set_unsaved(OneLine(
      absl::StrCat(name, ": ", first.error(), AlsoOthers(unwritten.size() - 1)),
      limits_.reason_bytes_max));
  job.status.set_unsaved_step(first.step());
  jobs_.Save(job, actions);
  if (is_first) {
    jobs_.AddEvent(job,
                   absl::StrCat("the checkpoint of step ", first.step(),
                                " could not be written, and is tried again: ",
                                job.status.unsaved()),
                   now, actions);
  }
  const int ranks = static_cast<int>(job.run->ranks.size());
  const GivenUpCheckpoint given_up = {.step = first.step(),
                                      .write = first.write(),
                                      .why = job.status.unsaved()};
  for (int r = 0; r < ranks; ++r) SendGivenUp(job, r, given_up, actions);
}

}  // namespace troupe
