// A whole cluster under a seed: workers join, work, hang, die and leave,
// clients submit and cancel, messages and plans come late or never, and after
// every event the invariants hold. A failure names its seed.
#include <deque>
#include <map>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "scheduler/cluster/hand_out.h"
#include "tests/faults/simulated_planner.h"
#include "tests/faults/simulated_worker.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed), h_(MakeLimits()) {
    h_.by_hand = h_.stored_by_hand = true;
  }

  void Run(int events) {
    for (int i = 0; i < events; ++i) {
      Event();
      Deliver();
      Check();
    }
    Settle();
  }

  int ended() const { return static_cast<int>(ended_.size()); }
  int succeeded() const { return succeeded_; }

 private:
  static Limits MakeLimits() {
    Limits limits;
    limits.jobs_queued_max = 6;
    limits.workers_max = 8;
    limits.start_max = absl::Seconds(30);
    limits.gone_workers_kept = 4;
    return limits;
  }

  int Draw(int below) { return static_cast<int>(random_() % below); }

  SimulatedWorker* Any() {
    if (workers_.empty()) return nullptr;
    auto it = workers_.begin();
    std::advance(it, Draw(static_cast<int>(workers_.size())));
    victim_ = it->first;
    return &it->second;
  }

  void Join() {
    const std::string name = absl::StrCat("w", Draw(10));
    const auto id = h_.cluster.RegisterWorker(
        RegisterOf(name, absl::StrCat("host", Draw(2))), h_.now, h_.actions);
    if (id.ok()) workers_[*id].name = name;
  }

  void Kill() {
    if (Any() == nullptr) return;
    workers_.erase(victim_);
    h_.cluster.Disconnected(victim_, "connection closed", h_.now, h_.actions);
  }

  void Leave() {
    SimulatedWorker* worker = Any();
    if (worker == nullptr || worker->hangs) return;
    WorkerMessage message;
    message.mutable_goodbye()->set_reason("asked to stop");
    worker->outbox.push_back(message);
  }

  void Submit() {
    JobSpec spec = SpecOf(1 + Draw(4), 1 + Draw(6));
    const CompileOutcome planned = planner_.Consider(spec, h_);
    if (planned.fits()) spec = planned.compiled.plan->job();
    const auto id = h_.cluster.Submit(spec, planned, h_.now, h_.actions);
    if (id.ok()) {
      submitted_.push_back(*id);
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(id.status())) << id.status();
    }
  }

  void Cancel() {
    if (submitted_.empty()) return;
    const JobId id = submitted_[Draw(static_cast<int>(submitted_.size()))];
    EXPECT_TRUE(h_.cluster.Cancel(id, h_.now, h_.actions).ok());
  }

  // What was asked first is stored first; now and then the disk is full.
  void AnswerStore() {
    if (to_store_.empty()) return;
    const AwaitStored start = to_store_.front();
    to_store_.pop_front();
    h_.Stored(start, Draw(10) == 0 ? absl::ResourceExhaustedError("disk full")
                                   : absl::OkStatus());
  }

  void Generate() {
    GenerateRequest request;
    request.set_checkpoint("/c");
    request.set_max_new_tokens(1);
    const auto id = h_.cluster.Generate(request, h_.now, h_.actions);
    if (!id.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(id.status()));
    }
  }

  void Event() {
    h_.now += absl::Milliseconds(Draw(400));
    const int what = Draw(100);
    if (what < 6)
      Join();
    else if (what < 8)
      Kill();
    else if (what < 9)
      Leave();
    else if (what < 14)
      Submit();
    else if (what < 16)
      Cancel();
    else if (what < 17)
      Generate();
    else if (what < 18 && Any() != nullptr)
      (Draw(2) == 0 ? workers_[victim_].hangs : workers_[victim_].stubborn) =
          true;
    else if (what < 26)
      Tick();
    else if (what < 30)
      planner_.FinishOne(random_, h_);
    else if (what < 40)
      AnswerStore();
    else if (what < 70) {
      for (auto& [id, worker] : workers_) worker.Work(random_);
    } else if (Any() != nullptr) {
      Receive(victim_);
    }
    // Now and then a message of the past comes again, from anyone.
    if (Draw(20) == 0 && !past_.empty() && Any() != nullptr) {
      h_.Send(victim_, past_[Draw(static_cast<int>(past_.size()))]);
    }
  }

  void Tick() {
    h_.cluster.Tick(h_.now, h_.actions);
    for (const Worker* worker : h_.cluster.workers().Alive()) {
      EXPECT_LE(h_.now - worker->heard, Limits().lease) << worker->name();
    }
  }

  // What one worker has sent arrives.
  void Receive(WorkerId id) {
    std::deque<WorkerMessage> messages = std::exchange(workers_[id].outbox, {});
    for (const WorkerMessage& message : messages) {
      h_.Send(id, message);
      if (message.has_heartbeat() || message.has_goodbye()) continue;
      if (past_.size() < 100) past_.emplace_back();
      past_[Draw(static_cast<int>(past_.size()))] = message;
    }
  }

  void Deliver() {
    for (const Action& action : h_.actions) {
      if (const auto* send = std::get_if<SendToWorker>(&action)) {
        const Worker* to = h_.cluster.workers().Find(send->worker);
        if (to == nullptr || !to->alive() ||
            workers_.count(send->worker) == 0) {
          // Only one that died later in the same event may have been meant.
          EXPECT_EQ(dropped_.count(send->worker), 0u) << "sent to the dead";
          continue;
        }
        workers_[send->worker].inbox.push_back(Completed(*send, h_.compiler));
      } else if (const auto* drop = std::get_if<DropWorker>(&action)) {
        EXPECT_TRUE(dropped_.insert(drop->worker).second) << "dropped twice";
        workers_.erase(drop->worker);
      } else if (const auto* compile = std::get_if<CompileJob>(&action)) {
        planner_.Ask(*compile);
      } else if (const auto* start = std::get_if<AwaitStored>(&action)) {
        to_store_.push_back(*start);
      }
    }
    h_.ClearActions();
  }

  void Check() {
    std::map<int64_t, std::set<int>> seats;  // by job, of the workers
    for (const auto& [id, worker] : h_.cluster.workers().all()) {
      if (worker.status.state() != WorkerStatus::BUSY) {
        EXPECT_EQ(worker.status.job(), 0);
        continue;
      }
      EXPECT_NE(worker.status.job() != 0, worker.status.text() != 0)
          << "one thing at a time";
      if (worker.status.job() == 0) continue;
      EXPECT_TRUE(
          seats[worker.status.job()].insert(worker.status.rank()).second)
          << "a rank has two workers";
    }
    for (const auto& [id, job] : h_.cluster.jobs().all()) {
      std::set<int> live;
      if (job->run != nullptr) {
        ASSERT_EQ(job->run->ranks.size(),
                  static_cast<size_t>(job->ranks_needed))
            << "all ranks or none";
        for (size_t r = 0; r < job->run->ranks.size(); ++r) {
          if (job->run->ranks[r].live()) live.insert(static_cast<int>(r));
        }
        EXPECT_FALSE(live.empty()) << "a run that all have left";
      }
      EXPECT_EQ(live, seats[id.value()]) << "job " << id;
      CheckState(*job, live);
    }
  }

  void CheckState(const Job& job, const std::set<int>& live) {
    switch (job.status.state()) {
      case QUEUED:
        EXPECT_NE(job.status.reason(), "") << "a job that waits says why";
        EXPECT_EQ(job.run, nullptr);
        break;
      case STARTING:
      case RUNNING:
      case STOPPING:
        EXPECT_NE(job.run, nullptr);
        break;
      case FAILED:
        EXPECT_NE(job.status.reason(), "");
        [[fallthrough]];
      case SUCCEEDED:
      case CANCELLED:
        if (ended_.insert(job.id).second) {
          succeeded_ += job.status.state() == SUCCEEDED;
        }
        if (job.status.state() != FAILED) {
          EXPECT_EQ(job.run, nullptr);
        }
        break;
      default:
        ADD_FAILURE() << "job " << job.id << " has no state";
    }
    if (ended_.count(job.id) > 0) {
      EXPECT_TRUE(Job::IsEnded(job.status.state())) << "the end is final";
    }
  }

  // No more events from outside: everything comes to its end by itself.
  void Settle() {
    for (int i = 0; i < 4000 && !(i > 40 && Settled()); ++i) {
      h_.now += absl::Milliseconds(250);
      for (auto& [id, worker] : workers_) worker.Work(random_);
      std::vector<WorkerId> ids;
      for (auto& [id, worker] : workers_) ids.push_back(id);
      for (const WorkerId id : ids) {
        if (workers_.count(id) > 0) Receive(id);
        Deliver();
      }
      planner_.FinishOne(random_, h_);
      AnswerStore();
      Tick();
      Deliver();
      Check();
    }
    EXPECT_TRUE(Settled());
  }

  // All is at rest: workers idle, and jobs ended unless workers are missing.
  bool Settled() const {
    if (!planner_.idle() || !to_store_.empty()) return false;
    const size_t alive = h_.cluster.workers().Alive().size();
    if (h_.cluster.workers().Idle().size() != alive) return false;
    for (const auto& [id, job] : h_.cluster.jobs().all()) {
      if (job->run != nullptr) return false;
      if (!job->ended() && job->ranks_needed <= static_cast<int>(alive)) {
        return false;
      }
    }
    return true;
  }

  std::mt19937 random_;
  Harness h_;
  std::map<WorkerId, SimulatedWorker> workers_;
  WorkerId victim_;
  std::vector<JobId> submitted_;
  SimulatedPlanner planner_;
  std::deque<AwaitStored> to_store_;
  std::vector<WorkerMessage> past_;
  std::set<WorkerId> dropped_;
  std::set<JobId> ended_;
  int succeeded_ = 0;
};

TEST(ClusterSimulation, InvariantsHoldUnderManySeeds) {
  int ended = 0, succeeded = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Simulation simulation(seed);
    simulation.Run(1500);
    ended += simulation.ended();
    succeeded += simulation.succeeded();
    if (testing::Test::HasFailure()) break;
  }
  // The dice let enough happen.
  EXPECT_GT(ended, 1000);
  EXPECT_GT(succeeded, 200);
  EXPECT_LT(succeeded, ended);
}

}  // namespace
}  // namespace troupe
