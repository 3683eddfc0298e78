#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/cluster_simulation.h"

namespace troupe {
namespace {

// Shorter than what is left of a lease when its worker falls silent.
constexpr int kCutMillisMax = 2000;

}  // namespace

// The part of ClusterSimulation in which jobs recover, streams are cut and
// machines are few or many.

void ClusterSimulation::AskForRecovery(JobSpec& spec) {
  if (OneIn(3)) return;
  RecoverySpec& recovery = *spec.mutable_recovery();
  recovery.set_copies(OneIn(4) ? 0 : 1);
  recovery.set_every(absl::StrCat(1 + Draw(3)));
  recovery.set_restarts(OneIn(4) ? Draw(3) : 100);
  // Slices, which no other rank has, or the same on all.
  if (!OneIn(3)) spec.mutable_parallelism()->set_zero(1);
  if (!spec.checkpoint().has_directory() || OneIn(4)) return;
  const int ranks = spec.parallelism().data();
  spec.mutable_elastic()->set_min_workers(1 + Draw(std::max(1, ranks - 1)));
  // Of some not every plan for fewer fits.
  if (OneIn(3)) {
    spec.mutable_model()->set_hidden_size(kDeviceBytes * (1 + Draw(ranks)));
  }
  // Long enough for workers to go and to come.
  spec.mutable_training()->set_steps(spec.training().steps() + Draw(30));
}

// Machines are taken away, and workers with them, or there are more again.
void ClusterSimulation::ChangeRoom() {
  room_ = 2 + Draw(limits_.workers_max - 1);
  while (IsFull() && static_cast<int>(workers_.size()) > room_) {
    Kill();
    Deliver();
  }
}

// Nobody joins; with room for all, the cluster itself says so.
bool ClusterSimulation::IsFull() const {
  return room_ < limits_.workers_max &&
         static_cast<int>(workers_.size()) >= room_;
}

// The store's: for a moment, or now and then for long.
bool ClusterSimulation::IsDiskFull() {
  if (OneIn(200)) full_until_ = now_ + absl::Seconds(Draw(30));
  return OneIn(12) || now_ < full_until_;
}

void ClusterSimulation::WriteStore(bool fails) {
  store_.Write(fails ? absl::ResourceExhaustedError("disk full")
                     : absl::OkStatus());
}

// Those of checkpoints: of one worker, or one that all share.
void ClusterSimulation::FillDisks() {
  const auto only = OneIn(3) ? workers_.end() : Any();
  const absl::Time until = now_ + absl::Seconds(1 + Draw(15));
  ++tally_.disks_full;
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    if (only == workers_.end() || it == only) it->second.FillDisk(until);
  }
}

// All that is under way goes on, and nobody comes or goes.
void ClusterSimulation::BeQuiet() {
  for (int times = Draw(12); times > 0; --times) {
    planner_.FinishOne(random_, *cluster_, now_, actions_);
    Deliver();
    Check();
    WriteStore(IsDiskFull());
    Deliver();
    Check();
    Pass(absl::Milliseconds(Draw(300)));
    Check();
  }
}

// A connection breaks: the worker knows at once, and what was on its way in
// either direction is lost; the scheduler hears of it later.
void ClusterSimulation::Cut() {
  const auto worker = Any();
  if (worker == workers_.end()) return;
  const WorkerId id = worker->first;
  Harm(id);
  cuts_[id] = {.name = worker->second.name(),
               .heard_at = now_ + absl::Milliseconds(Draw(kCutMillisMax)),
               .comes_back = worker->second.healthy() && OneIn(2)};
  worker->second.Die();
  workers_.erase(worker);
}

void ClusterSimulation::Kill() {
  const auto worker = Any();
  if (worker == workers_.end()) return;
  const WorkerId id = worker->first;
  Harm(id);
  worker->second.Die();
  workers_.erase(worker);
  cluster_->Disconnected(id, "connection closed", now_, actions_);
}

// The scheduler takes it for lost; it goes on, and comes back.
void ClusterSimulation::CutOff() {
  const auto worker = Any();
  if (worker == workers_.end()) return;
  const WorkerId id = worker->first;
  Harm(id);
  if (worker->second.leaves() || worker->second.hangs()) return Kill();
  worker->second.Harm();
  worker->second.Lose();
  worker->second.CutOff();
  cut_off_.push_back(workers_.extract(worker));
  cluster_->Disconnected(id, "connection closed", now_, actions_);
}

void ClusterSimulation::ComeBack() {
  const auto it = cut_off_.begin() + Draw(static_cast<int>(cut_off_.size()));
  SimulatedWorkers::node_type node = std::move(*it);
  cut_off_.erase(it);
  SimulatedWorker& worker = node.mapped();
  Register request = RegisterOf(worker.name(), absl::StrCat("host", Draw(2)));
  *request.mutable_held() = worker.Registration().held();
  if (!worker.Registration().has_held()) request.clear_held();
  const auto id = cluster_->RegisterWorker(request, now_, actions_);
  // Others have come meanwhile, and there is no room.
  if (!id.ok()) return worker.Die();
  node.key() = *id;
  workers_.insert(std::move(node));
  heard_[*id] = now_;
  Deliver();
  worker.Connect();
}

void ClusterSimulation::HearOfCuts() {
  for (auto it = cuts_.begin(); it != cuts_.end();) {
    const auto [id, cut] = *it;
    Harm(id);  // it may have been given a job since
    if (now_ < cut.heard_at) {
      ++it;
      continue;
    }
    it = cuts_.erase(it);
    if (cut.comes_back) to_rejoin_.push_back(cut.name);
    cluster_->Disconnected(id, "connection reset", now_, actions_);
    Deliver();
  }
}

// SIGSTOP, a suspended machine: workers go on, and nobody hears them.
void ClusterSimulation::StandStill() {
  for (int seconds = Draw(25); seconds > 0; --seconds) {
    now_ += absl::Seconds(1);
    for (auto& [id, worker] : workers_) worker.Work(now_);
    for (auto& node : cut_off_) node.mapped().Work(now_);
  }
  ticked_ = now_;
  if (OneIn(2)) {
    cluster_->Tick(now_, actions_);
  }
}

// A bit flips under a rank that trains, of those that there are.
void ClusterSimulation::FlipABit() {
  if (workers_.empty()) return;
  const auto any = static_cast<int64_t>(flips_() % workers_.size());
  const auto worker = std::next(workers_.begin(), any);
  if (!worker->second.healthy() || !worker->second.FlipABit()) return;
  integrity_.Flipped(worker->second.name());
  invariants_.Harmed(JobId(worker->second.ref()->job()));
}

// While a worker is asked to save copies, what was answered to an earlier
// question about the same rank comes once more.
void ClusterSimulation::AnswerLate() {
  std::vector<std::pair<WorkerId, WorkerMessage>> late;
  for (const auto& [id, job] : cluster_->jobs().all()) {
    if (job->run == nullptr || !job->run->is<phase::SavingCopies>()) continue;
    const phase::SavingCopies& saving = *job->run->in<phase::SavingCopies>();
    for (const WorkerMessage& answer : answers_) {
      const CopiesSaved& saved = answer.copies_saved();
      const int rank = saved.ref().rank();
      if (JobId(saved.ref().job()) == id && saved.token() != saving.token &&
          saving.awaited.count(rank) > 0) {
        late.emplace_back(job->run->ranks[rank].worker, answer);
      }
    }
  }
  if (late.empty()) return;
  const auto& [from, answer] = late[Draw(static_cast<int>(late.size()))];
  cluster_->HandleMessage(from, answer, now_, actions_);
}

// They save for moments only: in these a user seldom comes by himself.
void ClusterSimulation::CancelOneThatSavesCopies() {
  for (const auto& [id, job] : cluster_->jobs().all()) {
    if (job->run == nullptr || !job->run->is<phase::SavingCopies>()) continue;
    if (OneIn(30)) return Cancel(id);
  }
}

bool ClusterSimulation::IsNameTaken(const std::string& name) const {
  return std::any_of(
             cuts_.begin(), cuts_.end(),
             [&](const auto& cut) { return cut.second.name == name; }) ||
         std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
           return worker.second.name() == name;
         });
}

void ClusterSimulation::Note(const Action& action) {
  const auto note = [this](uint64_t number) {
    trace_ = (trace_ ^ number) * 1099511628211u;  // FNV-1a, a number at a time
  };
  note(action.index());
  note(absl::ToUnixMillis(now_));
  if (const auto* send = std::get_if<SendToWorker>(&action)) {
    note(send->worker.value());
    note(send->message.message_case());
  } else if (const auto* job = std::get_if<PersistJob>(&action)) {
    note(job->row->status.id());
    note(job->row->status.state());
  }
}

// Workers idle, or held by jobs that wait for others, and jobs ended unless
// workers are missing. One that cannot be saved to go on with fewer tries again
// minutes later: it need not be waited for.
bool ClusterSimulation::AtRest() const {
  // Jobs that wait for each other's workers are helped by nobody.
  if (ProgressInvariants::IsStuck(*cluster_, now_)) return false;
  if (cluster_->has_scheduling_left()) return false;
  for (const auto& [id, worker] : workers_) {
    if (worker.healthy() && !worker.inbox.empty()) return false;
    if (worker.saves()) return false;
  }
  int held = 0;
  const auto& jobs = cluster_->jobs().all();
  for (const auto& [id, job] : jobs) {
    if (ElasticInvariants::CouldNarrow(*job,
                                       cluster_->workers().idle_count()) &&
        now_ >= job->moves_after) {
      return false;
    }
    const int missing = RecoveryInvariants::Missing(*job);
    if (missing > 0) {
      held += static_cast<int>(job->run->ranks.size()) - missing;
    }
  }
  const int free = cluster_->workers().alive_count() - held;
  return cut_off_.empty() && planner_.idle() && store_.idle() &&
         cuts_.empty() && cluster_->workers().idle_count() == free &&
         std::all_of(jobs.begin(), jobs.end(), [&](const auto& job) {
           if (RecoveryInvariants::Missing(*job.second) > 0) return true;
           return job.second->run == nullptr &&
                  (RecoveryInvariants::WaitsForDirectory(*job.second,
                                                         *cluster_) ||
                   job.second->ended() ||
                   ElasticInvariants::LeastRanks(*job.second) >
                       free - static_cast<int>(job.second->failed_on.size()) ||
                   (held > 0 && absl::StrContains(job.second->status.reason(),
                                                  "waits behind job")));
         });
}

// A job that waits for workers when all else has come to rest gets them, as far
// as the cluster has room.
bool ClusterSimulation::HelpOneThatWaits() {
  const size_t room = limits_.workers_max;
  if (workers_.size() + cuts_.size() >= room) return false;
  const auto& jobs = cluster_->jobs().all();
  const bool waits = std::any_of(jobs.begin(), jobs.end(), [](const auto& job) {
    return RecoveryInvariants::Missing(*job.second) > 0;
  });
  if (!waits) return false;
  for (int i = 0; i < 10; ++i) {
    const std::string name = absl::StrCat("w", i);
    if (IsNameTaken(name)) continue;
    to_rejoin_.push_back(name);
    Join();
    return true;
  }
  return false;
}

// As a person does in the end.
void ClusterSimulation::PutBackThoseSetAside() {
  std::vector<std::string> aside;
  for (const auto& [id, worker] : cluster_->workers().all()) {
    if (!worker.status.set_aside().empty()) aside.push_back(worker.name());
  }
  for (const std::string& name : aside) {
    CordonWorkerRequest request;
    request.set_name(name);
    EXPECT_TRUE(cluster_->CordonWorker(request, now_, actions_).ok());
    integrity_.PutBack(name);
  }
}

void ClusterSimulation::Settle() {
  if (draining_) Restart();
  room_ = limits_.workers_max;
  // What was asked too long about is asked again when others come or go.
  if (planner_.LeavesOff()) Kill();
  Deliver();
  for (int i = 0; i < 40'000; ++i) {
    if (testing::Test::HasFailure()) return;
    PutBackThoseSetAside();
    if (i > 40 && AtRest() && !HelpOneThatWaits()) break;
    Pass(absl::Milliseconds(250));
    planner_.FinishOne(random_, *cluster_, now_, actions_);
    Deliver();
    WriteStore(false);
    Deliver();
    Check();
  }
  invariants_.CheckAtRest(*cluster_);
  recoveries_.CheckAtRest(*cluster_);
  elastics_.CheckAtRest(*cluster_, now_);
}

}  // namespace troupe
