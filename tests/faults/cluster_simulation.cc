#include "tests/faults/cluster_simulation.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/hand_out.h"

namespace troupe {
namespace {

Limits MakeLimits() {
  Limits limits;
  limits.jobs_queued_max = 6;
  limits.ended_jobs_kept = 12;
  limits.workers_max = 8;
  limits.start_max = absl::Seconds(30);
  limits.gone_workers_kept = 4;
  // Longer than a scheduler is away, or stands still: a rank that was told of a
  // commit waits for one that was not (docs/decisions/0024).
  limits.collective_min = absl::Seconds(50);
  // Workers come and go all the time.
  limits.elastic_calm = absl::Seconds(1);
  limits.save_copies_max = absl::Seconds(20);
  limits.give_way_after = absl::Seconds(4);
  return limits;
}

// What is said between two workers' messages; a worker that is well is heard at
// least as often.
constexpr absl::Duration kLatencyMax = absl::Seconds(2);
constexpr size_t kPastMax = 100;

}  // namespace

ClusterSimulation::ClusterSimulation(uint32_t seed)
    : random_(seed),
      leaves_(seed),
      flips_(seed),
      leaves_scheduling_(seed % 2 == 0),
      limits_(MakeLimits()),
      planner_(compiler_),
      invariants_(attempts_, store_, workers_),
      recoveries_(attempts_, workers_),
      elastics_(compiler_, attempts_, store_, workers_),
      integrity_(attempts_) {
  Begin();
}

void ClusterSimulation::Run(int events) {
  for (int i = 0; i < events && !testing::Test::HasFailure(); ++i) {
    Event();
    Deliver();
    Check();
  }
  Settle();
  CountEdges();
}

void ClusterSimulation::CountEdges() {
  const std::vector<int64_t>& taken = cluster_->jobs().edges_taken();
  tally_.edges.resize(taken.size());
  std::transform(taken.begin(), taken.end(), tally_.edges.begin(),
                 tally_.edges.begin(), std::plus<>());
}

void ClusterSimulation::Check() {
  invariants_.Check(*cluster_);
  recoveries_.Check(*cluster_);
  elastics_.Check(*cluster_);
  progress_.Check(*cluster_, now_);
  integrity_.Check(*cluster_);
}

ClusterSimulation::Tally ClusterSimulation::tally() const {
  Tally tally = tally_;
  tally.succeeded = invariants_.ended_as(SUCCEEDED);
  tally.failed = invariants_.ended_as(FAILED);
  tally.cancelled = invariants_.ended_as(CANCELLED);
  tally.adopted = invariants_.adopted();
  tally.from_copies = recoveries_.from_copies();
  tally.from_elsewhere = recoveries_.from_elsewhere();
  tally.narrowed = elastics_.narrowed();
  tally.widened = elastics_.widened();
  tally.differed = integrity_.differed();
  tally.known_wrong = integrity_.known();
  for (const auto& [key, attempt] : attempts_) {
    for (const auto& [step, times] : attempt.commits) tally.commits += times;
    tally.given_up += attempt.writes_given_up;
    tally.written_later += attempt.written_later;
  }
  return tally;
}

SimulatedWorkers::iterator ClusterSimulation::Any() {
  if (workers_.empty()) return workers_.end();
  return std::next(workers_.begin(), Draw(static_cast<int>(workers_.size())));
}

JobId ClusterSimulation::AnyJob() {
  // The newest are those that have not ended.
  const int newest = std::min<int>(8, static_cast<int>(submitted_.size()));
  return submitted_[submitted_.size() - 1 - Draw(newest)];
}

void ClusterSimulation::Event() {
  Pass(absl::Milliseconds(Draw(300)));
  Check();
  const int what = Draw(100);
  if (what < 30) {
    EventOfWorkers();
  } else if (what < 50) {
    EventOfClients();
  } else if (what < 80) {
    EventOfScheduler();
  } else if (what < 83) {
    BeQuiet();
  }
  if (OneIn(10)) Repeat();
  if (OneIn(4)) AnswerLate();
  CancelOneThatSavesCopies();
  if (flips_() % 80 == 0) FlipABit();
}

void ClusterSimulation::EventOfWorkers() {
  const int what = Draw(120);
  if (what < 2) return ChangeRoom();
  if (what < 40) {
    if (!IsFull()) Join();
    return;
  }
  if (what < 42) return OneIn(2) ? Kill() : Cut();
  if (what == 119) return CutOff();
  if (what >= 112 && what < 117) return FillDisks();
  const auto worker = Any();
  if (worker == workers_.end()) return;
  if (what >= 117) {
    ++tally_.broken;
    return worker->second.Break(now_ + absl::Seconds(1 + Draw(60)));
  }
  if (what < 46) Harm(worker->first);
  if (what < 43) {
    worker->second.Hang();
  } else if (what < 44) {
    worker->second.BeStubborn();
  } else if (what < 46) {
    if (const RankRef* ref = worker->second.ref(); ref != nullptr) {
      invariants_.MayEnd(JobId(ref->job()));
    }
    ++tally_.leavings;
    worker->second.Leave(OneIn(3));
  }
}

void ClusterSimulation::EventOfClients() {
  const int what = Draw(20);
  if (what < 10) {
    Submit();
  } else if (what < 11) {
    if (!submitted_.empty()) Cancel(AnyJob());
  } else if (what < 14) {
    Generate();
  } else if (what < 15) {
    StopText();
  }
}

void ClusterSimulation::EventOfScheduler() {
  const int what = Draw(300);
  if (what < 120) {
    planner_.FinishOne(random_, *cluster_, now_, actions_);
  } else if (what < 294) {
    WriteStore(IsDiskFull());
  } else if (what < 296) {
    StandStill();
  } else if (what < 298) {
    Drain();
  } else {
    Restart();
  }
}

void ClusterSimulation::Pass(absl::Duration time) {
  now_ += time;
  LeaveScheduling();
  HearOfCuts();
  std::vector<WorkerId> ids;
  for (auto& [id, worker] : workers_) {
    if (!OneIn(3)) worker.Work(now_);
    ids.push_back(id);
  }
  for (auto& node : cut_off_) {
    if (!OneIn(3)) node.mapped().Work(now_);
  }
  if (!cut_off_.empty() && !OneIn(3)) ComeBack();
  for (const WorkerId id : ids) {
    if (OneIn(2) || now_ - heard_[id] > kLatencyMax) Receive(id);
    Deliver();
  }
  if (OneIn(2) || now_ - ticked_ > limits_.tick_max / 2) {
    ticked_ = now_;
    cluster_->Tick(now_, actions_);
    Deliver();
  }
}

// A job whose ranks have not heard of it yet, too.
void ClusterSimulation::Harm(WorkerId id) {
  const Worker* worker = cluster_->workers().Find(id);
  if (worker == nullptr || worker->status.job() == 0) return;
  invariants_.Harmed(JobId(worker->status.job()));
}

void ClusterSimulation::Join() {
  std::string name = absl::StrCat("w", Draw(10));
  if (!to_rejoin_.empty()) {
    name = to_rejoin_.back();
    to_rejoin_.pop_back();
  }
  // It is of a worker that is about to come back.
  const auto is_cut_off = [&](const auto& node) {
    return node.mapped().name() == name;
  };
  if (std::any_of(cut_off_.begin(), cut_off_.end(), is_cut_off)) return;
  const bool taken = IsNameTaken(name);
  const bool full = workers_.size() + cuts_.size() >=
                    static_cast<size_t>(limits_.workers_max);
  const auto id = cluster_->RegisterWorker(
      RegisterOf(name, absl::StrCat("host", Draw(2))), now_, actions_);
  EXPECT_EQ(id.ok(), !taken && !full) << name << ": " << id.status();
  if (!id.ok()) return;
  workers_.try_emplace(*id, name, random_, attempts_, disk_);
  heard_[*id] = now_;
}

void ClusterSimulation::Submit() {
  // One after the other: a seed means the same to every compiler.
  const int ranks = 1 + Draw(4);
  const int steps = 1 + Draw(12);
  JobSpec spec = SpecOf(ranks, steps);
  if (!OneIn(3)) {
    CheckpointSpec& checkpoint = *spec.mutable_checkpoint();
    checkpoint.set_directory(absl::StrCat("/c", Draw(3)));
    checkpoint.set_every(Draw(4));
    checkpoint.set_keep(Draw(3));
    checkpoint.set_background(OneIn(2));
    const bool can_resume =
        spec.training().steps() > SimulatedAttempt::kResumedAfter;
    if (can_resume && OneIn(4)) checkpoint.set_resume("/r");
  }
  AskForRecovery(spec);
  const CompileOutcome planned = planner_.Consider(spec, *cluster_);
  if (planned.fits()) spec = planned.compiled.plan->job();
  const auto id = cluster_->Submit(spec, planned, now_, actions_);
  if (!id.ok()) {
    EXPECT_TRUE(absl::IsResourceExhausted(id.status())) << id.status();
    return;
  }
  submitted_.push_back(*id);
  Deliver();
  // As the service does: the client that submitted is answered when it is
  // stored.
  store_.Flush([this, id = *id](const absl::Status& stored) {
    if (stored.ok()) return invariants_.Promised(id);
    if (cluster_->Cancel(id, now_, actions_).ok()) invariants_.AskedToEnd(id);
  });
}

void ClusterSimulation::Cancel(JobId id) {
  const auto found = cluster_->FindJob(id);
  if (!found.ok()) return;  // forgotten, or never stored
  const Job& job = **found;
  const bool saves = OneIn(2) && job.spec.checkpoint().has_directory();
  const bool ended = job.ended();
  const bool runs = job.status.state() == RUNNING;
  const bool was_failing = job.run != nullptr && job.run->stopping();
  const absl::Status cancelled =
      saves ? cluster_->SaveAndCancel(id, now_, actions_)
            : cluster_->Cancel(id, now_, actions_);
  EXPECT_TRUE(cancelled.ok()) << cancelled;
  if (ended) return;
  if (saves && runs && !was_failing) {
    invariants_.AskedToSave(id, true);
  } else if (saves && was_failing) {
    invariants_.AskedToEnd(id);
  } else {
    invariants_.AskedToSave(id, false);
  }
  Deliver();
  store_.Flush([this, id](const absl::Status& stored) {
    if (stored.ok()) invariants_.PromisedToEnd(id);
  });
}

void ClusterSimulation::Generate() {
  GenerateRequest request;
  request.set_checkpoint("/c");
  request.set_max_new_tokens(1);
  const auto id = cluster_->Generate(request, now_, actions_);
  if (!id.ok()) {
    EXPECT_TRUE(absl::IsUnavailable(id.status())) << id.status();
    return;
  }
  ++tally_.texts;
  invariants_.AskedForText(*id);
  texts_.push_back(*id);
}

// Its client goes away, or somebody cancels it.
void ClusterSimulation::StopText() {
  if (texts_.empty()) return;
  const int64_t text = texts_[Draw(static_cast<int>(texts_.size()))];
  if (OneIn(2)) {
    cluster_->AbandonText(text, now_, actions_);
    invariants_.AbandonedText(text);
  } else {
    cluster_->CancelText(text, now_, actions_).IgnoreError();
  }
}

// A message of the past comes again: from its worker, from another one, or of
// an attempt that is not.
void ClusterSimulation::Repeat() {
  const auto worker = Any();
  if (past_.empty() || worker == workers_.end()) return;
  WorkerMessage message = past_[Draw(static_cast<int>(past_.size()))];
  // A piece does not name its writer: of its own text a worker means it, and
  // of one that it was given and has not heard of yet.
  const Worker* known = cluster_->workers().Find(worker->first);
  if (message.has_generated() &&
      (message.generated().request() == worker->second.text() ||
       (known != nullptr &&
        message.generated().request() == known->status.text()))) {
    return;
  }
  const RankRef* now = worker->second.ref();
  if (message.has_step() && now != nullptr && OneIn(2)) {
    RankRef& ref = *message.mutable_step()->mutable_ref();
    ref = *now;
    ref.set_attempt(now->attempt() + (OneIn(2) ? 1 : -1));
    message.mutable_step()->mutable_record()->set_step(1 + Draw(12));
    // It may have been given that attempt already, and not have heard of it.
    const auto job = cluster_->FindJob(JobId(ref.job()));
    if (job.ok() && (*job)->attempt == ref.attempt()) return;
  }
  cluster_->HandleMessage(worker->first, message, now_, actions_);
}

// SIGTERM: what runs is saved and ended; the end is Restart.
void ClusterSimulation::Drain() {
  if (draining_) return;
  draining_ = true;
  elastics_.Drains();
  ++tally_.drains;
  for (const auto& [id, job] : cluster_->jobs().all()) {
    if (job->run == nullptr || job->ended()) continue;
    const bool recovers = job->status.state() == RECOVERING;
    if (job->run->stopping() && !recovers) {
      invariants_.MayEnd(id);  // it could start once more, elsewhere
      continue;
    }
    const bool saves = job->status.state() == RUNNING;
    if (RecoveryInvariants::MayMove(*job)) continue;
    invariants_.AskedToSave(id,
                            saves && job->spec.checkpoint().has_directory());
  }
  cluster_->Drain("the scheduler was asked to end", now_, actions_);
}

// Killed, or at its end: what the store has is what the next one knows. Workers
// go on and come back; a few die with it, or are just leaving.
void ClusterSimulation::Restart() {
  ++tally_.restarts;
  CountEdges();
  const bool by_itself = draining_ && OneIn(2);
  if (by_itself) store_.Write(absl::OkStatus());
  store_.Crash();
  planner_.Restart();
  while (!workers_.empty()) {
    auto node = workers_.extract(workers_.begin());
    SimulatedWorker& worker = node.mapped();
    if (worker.hangs() || worker.leaves() || OneIn(16)) {
      const bool dies = !worker.hangs() && !worker.leaves();
      if (dies) to_rejoin_.push_back(worker.name());
      worker.Die();
      continue;
    }
    worker.CutOff();
    cut_off_.push_back(std::move(node));
  }
  cuts_.clear();
  heard_.clear();
  texts_.clear();
  actions_.clear();
  // Texts are numbered anew; and no rank's last words come before what it says
  // again.
  past_.clear();
  draining_ = false;
  for (int seconds = Draw(10); seconds > 0; --seconds) {
    now_ += absl::Seconds(1);
    for (auto& node : cut_off_) node.mapped().Work(now_);
  }
  Begin();
  invariants_.Restarted();
  recoveries_.Restarted(store_);
  elastics_.Restarted();
  progress_.Restarted();
  integrity_.Restarted();
}

// As the scheduler does, the first time too: from here on time in which it does
// not run is nobody's silence.
void ClusterSimulation::Begin() {
  cluster_ = std::make_unique<Cluster>(limits_, compiler_);
  cluster_->RestoreId(SimulatedWorker::kClusterId);
  cluster_->Restore(store_.Load(limits_), now_, actions_);
  ticked_ = now_;
}

void ClusterSimulation::Receive(WorkerId id) {
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) return;
  std::deque<WorkerMessage> messages = std::exchange(worker->second.outbox, {});
  if (!messages.empty()) heard_[id] = now_;
  for (const WorkerMessage& message : messages) {
    integrity_.Hear(id, message, *cluster_);
    cluster_->HandleMessage(id, message, now_, actions_);
    Deliver();
    if (message.has_heartbeat() || message.has_goodbye() ||
        message.has_leaving()) {
      continue;
    }
    if (message.has_copies_saved()) {
      if (answers_.size() == kPastMax) answers_.erase(answers_.begin());
      answers_.push_back(message);
    }
    if (past_.size() < kPastMax) past_.emplace_back();
    past_[Draw(static_cast<int>(past_.size()))] = message;
  }
}

void ClusterSimulation::Deliver() {
  while (!actions_.empty()) {
    for (const Action& action : std::exchange(actions_, {})) Carry(action);
  }
}

void ClusterSimulation::Carry(const Action& action) {
  Note(action);
  invariants_.OnAction(action, *cluster_);
  recoveries_.OnAction(action, *cluster_);
  elastics_.OnAction(action, *cluster_);
  integrity_.OnAction(action, *cluster_);
  store_.Add(action);
  if (const auto* event = std::get_if<PersistEvent>(&action)) {
    tally_.gave_way +=
        absl::StartsWith(event->event.text(), "gives its workers to job");
  }
  if (const auto* send = std::get_if<SendToWorker>(&action)) {
    const auto worker = workers_.find(send->worker);
    if (worker == workers_.end()) return;  // it died in the same event
    worker->second.inbox.push_back(Completed(*send, compiler_));
  } else if (const auto* stored = std::get_if<SendWhenStored>(&action)) {
    store_.Flush([this, stored = *stored](const absl::Status& status) {
      if (!status.ok() && !stored.otherwise.has_value()) return;
      SendToWorker send = stored.send;
      if (!status.ok()) send.message = *stored.otherwise;
      Carry(send);
    });
  } else if (const auto* drop = std::get_if<DropWorker>(&action)) {
    cuts_.erase(drop->worker);
    const auto worker = workers_.find(drop->worker);
    if (worker == workers_.end()) return;  // it was killed
    worker->second.Die();
    workers_.erase(worker);
  } else if (const auto* compile = std::get_if<CompileJob>(&action)) {
    planner_.Ask(*compile);
  } else if (const auto* start = std::get_if<AwaitStored>(&action)) {
    store_.Flush([this, start = *start](const absl::Status& stored) {
      if (!stored.ok()) invariants_.Harmed(start.job);
      elastics_.Stored(start.job, stored);
      cluster_->Stored(start, stored, now_, actions_);
    });
  }
}

}  // namespace troupe
