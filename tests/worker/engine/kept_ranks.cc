#include "tests/worker/engine/kept_ranks.h"

#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/optimizer_states.h"
#include "storage/engine/make_engine.h"
#include "tests/equivalence/small_job.h"
#include "worker/engine/recover.h"

namespace troupe {

namespace {

JobSpec SmallJobWith(int zero) {
  JobSpec job = SmallJob();
  job.mutable_parallelism()->set_zero(zero);
  return job;
}

}  // namespace

KeptRanks::KeptRanks(const std::string& directory, int zero)
    : KeptRanks(directory, SmallJobWith(zero)) {}

KeptRanks::KeptRanks(const std::string& directory, JobSpec job)
    : io_(MakeIoEngine({.kind = "thread_pool", .depth = 4}).value()) {
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_keep(1);
  job.mutable_recovery();
  for (int rank = 0; rank < 2; ++rank) {
    ranks_.push_back(std::make_unique<SmallRank>(
        job,
        SmallRankOptions{.ranks = 2, .rank = rank, .program = Program::KEEP}));
    Train(*ranks_[rank]);
    kept_.push_back(Kept(*ranks_[rank]));
  }
}

RankResources KeptRanks::Resources(int rank) {
  return {.device = ranks_[rank]->state().device,
          .arenas = ranks_[rank]->arenas(),
          .io = *io_,
          .clock = clock_};
}

SaveCopies KeptRanks::Request(int64_t step) {
  SaveCopies request;
  request.mutable_ref()->set_job(3);
  request.mutable_ref()->set_attempt(2);
  request.mutable_state()->set_step(step);
  request.mutable_state()->set_samples_consumed(kSamples);
  request.set_run_id("3f2a9c1e5b7d8046");
  request.set_token("job-3-3f2a9c1e5b7d8046-2-1");
  request.set_ran_before(true);
  return request;
}

CopyToSave KeptRanks::CopyOf(int rank, bool peer) const {
  CopyToSave copy;
  *copy.mutable_plan() = plan(rank);
  copy.set_peer(peer);
  return copy;
}

float KeptRanks::Moment(int unit, int moment, int64_t element) {
  return static_cast<float>(unit * 1000 + moment * 500 + element % 499);
}

void KeptRanks::Train(SmallRank& rank) {
  RankState& state = rank.state();
  for (const int unit : state.HeldUnits()) {
    for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
      if (memory.holds->size() == 0 || !memory.optimizer_state) continue;
      auto* next = reinterpret_cast<float*>(memory.optimizer_state.memory());
      int m = 0;
      for (const UnitState& has :
           UnitStates(state.plan->job().optimizer(), state.plan->units(unit))) {
        for (int64_t e = memory.holds->begin; e < memory.holds->end; ++e) {
          if (has.ElementsIn({e, e + 1}) > 0) *next++ = Moment(unit, m, e);
        }
        ++m;
      }
    }
  }
}

KeptMemory KeptRanks::Kept(SmallRank& rank) {
  RankState& state = rank.state();
  state.step.step = state.copies.Begin(kStep);
  CHECK_OK(rank.RunAll("H"));
  state.copies.End(state.step.step,
                   KeptStateOf(kStep, kSamples, state.loss_scale),
                   /*of_peer=*/true);
  return state.TakeKept();
}

}  // namespace troupe
