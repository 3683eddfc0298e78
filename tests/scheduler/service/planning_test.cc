#include "scheduler/service/planning.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/plan/plan_limits.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

constexpr absl::Duration kLong = absl::Minutes(1);

// Compiles when it is let; a job named "endless" until it may not go on. A plan
// of "large" is as long as may be, and takes kPlanMax.
class GatedCompiler final : public JobCompiler {
 public:
  absl::StatusOr<int> RanksNeeded(const JobSpec& job) const override {
    return fake_.RanksNeeded(job);
  }
  std::vector<JobSpec> Narrower(const JobSpec& job,
                                int workers) const override {
    return fake_.Narrower(job, workers);
  }
  absl::StatusOr<CompiledJob> Compile(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const override {
    if (job.name() == "job-2" && !second_started.HasBeenNotified()) {
      second_started.Notify();
    }
    if (job.name() != "job-2" && !started.HasBeenNotified()) started.Notify();
    ++compiled;
    if (job.name() == "endless") {
      while (true) {
        if (absl::Status over = Ask(may_go_on); !over.ok()) return over;
        ++asked;
        std::this_thread::yield();
      }
    }
    if (job.name() == "large") {
      const absl::Status room = AskForRoom(may_go_on, kInstructionsMax);
      if (!room.ok()) return room;
      large_at_once_max = std::max<int>(large_at_once_max, ++large_at_once);
      if (!has_room.HasBeenNotified()) has_room.Notify();
      open.WaitForNotification();
      clock->Advance(kPlanMax - absl::Seconds(1));
      const absl::Status over = Ask(may_go_on);
      --large_at_once;
      if (!over.ok()) return over;
    } else if (job.name() != "job-2") {
      open.WaitForNotification();
    }
    return fake_.Compile(job, workers, may_go_on);
  }
  absl::StatusOr<Explanation> Explain(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const override {
    const absl::Status compiled = Compile(job, workers, may_go_on).status();
    if (!compiled.ok()) return compiled;
    return fake_.Explain(job, workers, may_go_on);
  }
  Plan PlanFor(const Plan& plan,
               const std::vector<WorkerDescription>&) const override {
    return plan;
  }
  Plan PlanOfRank(const Plan& plan, int rank) const override {
    return fake_.PlanOfRank(plan, rank);
  }
  absl::StatusOr<TextPlan> PlanText(const JobSpec& job) const override {
    return fake_.PlanText(job);
  }
  void ConnectText(const std::vector<WorkerDescription>& workers,
                   TextPlan& plan) const override {
    fake_.ConnectText(workers, plan);
  }

  mutable absl::Notification started;
  mutable absl::Notification second_started;  // of "job-2", which is not gated
  mutable std::atomic<int> compiled = 0;
  mutable std::atomic<int> asked = 0;  // whether it may go on
  absl::Notification open;
  mutable absl::Notification has_room;  // a "large" one
  mutable std::atomic<int> large_at_once = 0;
  mutable std::atomic<int> large_at_once_max = 0;
  ManualClock* clock = nullptr;

 private:
  FakeCompiler fake_;
};

struct Sink final : public ActionSink {
  void Carry(const Actions& actions) override {
    if (planning != nullptr) planning->Carry(actions);
    for (const Action& action : actions) {
      const auto* job = std::get_if<PersistJob>(&action);
      if (job == nullptr || job->row->status.state() != STARTING) continue;
      job_starts.Notify();
    }
  }
  absl::Notification job_starts;  // one does
  Planning* planning = nullptr;
};

struct Planned {
  Planned() {
    sink.planning = &planning;
    compiler.clock = &clock;
  }
  WorkerId Join(const std::string& name) {
    return host.Apply([&](Cluster& c, absl::Time now, Actions& out) {
      return *c.RegisterWorker(RegisterOf(name), now, out);
    });
  }
  Compilation Ask(const std::string& name = "job-1") {
    JobSpec spec = SpecOf(1);
    spec.set_name(name);
    return *host.Read(
        [&](const Cluster& c, absl::Time) { return c.Consider(spec); });
  }
  JobId Submit(const JobSpec& spec, const std::string& client = "") {
    return host.Apply([&](Cluster& c, absl::Time now, Actions& out) {
      return *c.Submit(spec, {}, now, out, {.client = client});
    });
  }

  GatedCompiler compiler;
  ManualClock clock;
  Sink sink;
  Cluster cluster{Limits(), compiler};
  ClusterHost host{cluster, clock, sink};
  Planning planning{host, compiler};
};

TEST(Planning, TheClusterGoesOnWhileAJobIsCompiled) {
  Planned p;
  const JobId job = p.host.Apply([](Cluster& c, absl::Time now, Actions& out) {
    return *c.Submit(SpecOf(1), {}, now, out);
  });
  const WorkerId worker = p.Join("w0");
  p.compiler.started.WaitForNotification();
  p.host.Apply([&](Cluster& c, absl::Time now, Actions& out) {
    WorkerMessage heartbeat;
    heartbeat.mutable_heartbeat()->set_memory_bytes(1);
    c.HandleMessage(worker, heartbeat, now, out);
    EXPECT_EQ((*c.FindJob(job))->status.reason(), "is being planned");
  });
  p.compiler.open.Notify();
  EXPECT_TRUE(p.sink.job_starts.WaitForNotificationWithTimeout(kLong));
}

TEST(Planning, ClientsAreAnsweredOrRefused) {
  Planned p;
  p.Join("w0");
  std::atomic<int> answered = 0, refused = 0, stopped = 0;
  absl::Notification first;
  const auto done = [&](const absl::StatusOr<CompileOutcome>& outcome) {
    if (outcome.ok() && outcome->fits() && ++answered == 1) first.Notify();
    refused += absl::IsResourceExhausted(outcome.status());
    stopped += absl::IsUnavailable(outcome.status());
  };
  p.planning.Compile(p.Ask(), {}, done);
  p.compiler.started.WaitForNotification();
  for (int i = 1; i < Planning::kClientsMax; ++i) {
    p.planning.Compile(p.Ask(), {}, done);
  }
  EXPECT_EQ(refused, 0);
  p.planning.Compile(p.Ask(), {}, done);
  EXPECT_EQ(refused, 1);
  p.compiler.open.Notify();
  EXPECT_TRUE(first.WaitForNotificationWithTimeout(kLong));
  p.planning.Stop();
  EXPECT_EQ(answered + stopped, Planning::kClientsMax);
  p.planning.Compile(p.Ask(), {}, done);
  EXPECT_EQ(answered + stopped, Planning::kClientsMax + 1);
}

TEST(Planning, AJobThatCouldStartWaitsForNoQuestion) {
  Planned p;
  p.Join("w0");
  p.planning.Compile(p.Ask(), {}, [](const auto&) {});
  p.planning.Compile(p.Ask(), {}, [](const auto&) {});
  p.compiler.started.WaitForNotification();
  p.Join("w1");
  p.Submit(SpecOf(2));
  EXPECT_TRUE(p.compiler.second_started.WaitForNotificationWithTimeout(kLong));
  p.compiler.open.Notify();
}

TEST(Planning, AQuickQuestionDoesNotWaitForASlowOne) {
  Planned p;
  p.Join("w0");
  p.Join("w1");
  p.planning.Compile(p.Ask("endless"), {.submits = true}, [](const auto&) {});
  p.compiler.started.WaitForNotification();
  absl::Notification answered;
  p.planning.Compile(p.Ask("job-2"), {},
                     [&](const auto&) { answered.Notify(); });
  EXPECT_TRUE(answered.WaitForNotificationWithTimeout(kLong));
  p.planning.Stop();
}

TEST(Planning, ASubmissionWaitsForNobodyWhoOnlyAsks) {
  Planned p;
  p.Join("w0");
  p.Join("w1");
  for (int i = 0; i < 2 * Planning::kQuestionThreads; ++i) {
    p.planning.Compile(p.Ask("endless"), {}, [](const auto&) {});
  }
  absl::Notification answered;
  p.planning.Compile(p.Ask("job-2"), {.submits = true},
                     [&](const auto&) { answered.Notify(); });
  EXPECT_TRUE(answered.WaitForNotificationWithTimeout(kLong));
  p.planning.Stop();
}

// Each kind has places of its own, and each client a share of them.
TEST(Planning, OneClientLeavesPlacesForOthersAndPlansForSubmissions) {
  Planned p;
  p.Join("w0");
  p.Join("w1");
  absl::Status last;
  const auto ask = [&](const std::string& client, bool submits) {
    last = absl::OkStatus();
    p.planning.Compile(p.Ask("endless"), {.submits = submits, .client = client},
                       [&](const auto& outcome) {
                         // The others are told when planning stops.
                         if (absl::IsResourceExhausted(outcome.status())) {
                           last = outcome.status();
                         }
                       });
    return last.ok();
  };
  int taken = 0;
  while (ask("ada", false)) ++taken;
  EXPECT_EQ(taken, Planning::kClientsMax / 2);
  EXPECT_EQ(last.message(),
            "32 plans of ada are not answered yet, its share: half of the "
            "places that other clients leave free, of 64; wait for answers "
            "before asking again");
  EXPECT_TRUE(ask("bob", false));
  EXPECT_TRUE(ask("ada", true)) << "a submission is none of them";
  // Of another client, both are answered at once.
  for (const bool submits : {false, true}) {
    absl::Notification answered;
    p.planning.Compile(p.Ask("job-2"), {.submits = submits, .client = "eve"},
                       [&](const auto&) { answered.Notify(); });
    EXPECT_TRUE(answered.WaitForNotificationWithTimeout(kLong)) << submits;
  }
  p.planning.Stop();
}

TEST(Planning, ASlowJobKeepsNoOtherFromItsPlan) {
  Planned p;
  JobSpec endless = SpecOf(1);
  endless.set_name("endless");
  p.Join("w0");
  p.Submit(endless);
  p.compiler.started.WaitForNotification();
  p.Submit(SpecOf(1));
  p.clock.Advance(Limits().planning_patience);
  p.host.Apply(
      [](Cluster& c, absl::Time now, Actions& out) { c.Tick(now, out); });
  p.compiler.open.Notify();
  EXPECT_TRUE(p.sink.job_starts.WaitForNotificationWithTimeout(kLong));
  p.planning.Stop();
}

// However many of them: they do not take all threads.
TEST(Planning, SlowJobsOfOneClientKeepNoOtherClientsJobFromItsPlan) {
  Planned p;
  JobSpec endless = SpecOf(1);
  endless.set_name("endless");
  for (int i = 0; i < Planning::kJobThreads; ++i) p.Submit(endless, "ada");
  p.Submit(SpecOf(1), "bob");
  p.Join("w0");
  const auto tick = [](Cluster& c, absl::Time now, Actions& out) {
    c.Tick(now, out);
  };
  for (int i = 0; i < Planning::kJobThreads; ++i) {
    p.clock.Advance(Limits().planning_patience);
    p.host.Apply(tick);
  }
  p.compiler.open.Notify();
  EXPECT_TRUE(p.sink.job_starts.WaitForNotificationWithTimeout(kLong));
  EXPECT_LE(p.compiler.compiled, Planning::kOfClientAtOnce + 1);
  p.planning.Stop();
}

TEST(Planning, NothingIsCompiledForOneWhoHasGivenUpOrHasNoTimeLeft) {
  Planned p;
  p.Join("w0");
  absl::Status cancelled, late;
  absl::BlockingCounter answers(2);
  p.planning.Compile(p.Ask(), {.has_given_up = [] { return true; }},
                     [&](const auto& o) {
                       cancelled = o.status();
                       answers.DecrementCount();
                     });
  p.planning.Compile(p.Ask(), {.patience = -absl::Seconds(1)},
                     [&](const auto& o) {
                       late = o.status();
                       answers.DecrementCount();
                     });
  answers.Wait();
  EXPECT_TRUE(absl::IsCancelled(cancelled)) << cancelled;
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_EQ(p.compiler.compiled, 0);
}

// By NTP, or as a machine wakes up.
TEST(Planning, AStepOfTheWallClockEndsNothing) {
  Planned p;
  p.Join("w0");
  absl::Status outcome;
  absl::Notification answered;
  p.planning.Compile(p.Ask("endless"), {.patience = kPlanMax},
                     [&](const auto& o) {
                       outcome = o.status();
                       answered.Notify();
                     });
  p.compiler.started.WaitForNotification();
  for (const absl::Duration by : {absl::Hours(2), -absl::Hours(4)}) {
    p.clock.Step(by);
    const int before = p.compiler.asked;
    while (p.compiler.asked < before + 2 && !answered.HasBeenNotified()) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(answered.HasBeenNotified()) << outcome;
  }
  p.clock.Advance(kPlanMax + absl::Seconds(1));
  ASSERT_TRUE(answered.WaitForNotificationWithTimeout(kLong));
  EXPECT_TRUE(absl::IsDeadlineExceeded(outcome)) << outcome;
}

// And each takes as long as it may, beside waiting for the other.
TEST(Planning, LongPlansWaitForEachOtherAndAreNoLaterForIt) {
  Planned p;
  p.Join("w0");
  absl::BlockingCounter answers(2);
  std::atomic<int> asked = 0;  // when the second begins, and while it waits
  const auto compile = [&](std::function<bool()> has_given_up) {
    p.planning.Compile(p.Ask("large"), {.has_given_up = has_given_up},
                       [&](const auto& outcome) {
                         EXPECT_TRUE(outcome.ok()) << outcome.status();
                         answers.DecrementCount();
                       });
  };
  compile(nullptr);
  p.compiler.has_room.WaitForNotification();
  compile([&] {
    ++asked;
    return false;
  });
  while (asked < 2) std::this_thread::yield();
  p.compiler.open.Notify();
  answers.Wait();
  EXPECT_EQ(p.compiler.large_at_once_max, 1);
}

// As many wait for room as there are threads: they leave them to others.
TEST(Planning, AShortQuestionWaitsForNoneThatWaitsForRoom) {
  for (const bool submits : {false, true}) {
    Planned p;
    p.Join("w0");
    p.Join("w1");
    for (int i = 0; i <= 2 * Planning::kQuestionThreads; ++i) {
      p.planning.Compile(
          p.Ask("large"),
          {.submits = submits, .client = absl::StrCat("client ", i / 2)},
          [](const auto&) {});
    }
    absl::Notification answered;
    p.planning.Compile(p.Ask("job-2"), {.submits = submits, .client = "ada"},
                       [&](const auto& outcome) {
                         EXPECT_TRUE(outcome.ok()) << outcome.status();
                         answered.Notify();
                       });
    EXPECT_TRUE(answered.WaitForNotificationWithTimeout(kLong)) << submits;
    p.compiler.has_room.WaitForNotification();
    EXPECT_EQ(p.compiler.large_at_once, 1);
    p.compiler.open.Notify();
  }
}

TEST(Planning, AShortJobWaitsForNoneThatWaitsForRoom) {
  Planned p;
  JobSpec large = SpecOf(1);
  large.set_name("large");
  for (int i = 0; i <= Planning::kJobThreads; ++i) {
    p.Submit(large, absl::StrCat("client ", i / 2));
  }
  p.Submit(SpecOf(2), "ada");
  const std::vector<WorkerId> workers = {p.Join("w0"), p.Join("w1")};
  // Each is overtaken when its planning takes long.
  for (int i = 0; i < 1000; ++i) {
    p.clock.Advance(Limits().planning_patience);
    p.host.Apply([&](Cluster& c, absl::Time now, Actions& out) {
      WorkerMessage heartbeat;
      heartbeat.mutable_heartbeat()->set_memory_bytes(1);
      for (const WorkerId worker : workers) {
        c.HandleMessage(worker, heartbeat, now, out);
      }
      c.Tick(now, out);
    });
    if (p.compiler.second_started.WaitForNotificationWithTimeout(
            absl::Milliseconds(10))) {
      break;
    }
  }
  EXPECT_TRUE(p.compiler.second_started.HasBeenNotified());
  p.compiler.open.Notify();
}

// A caller that stops waiting hears what it has waited for.
TEST(Planning, AQuestionThatWaitedInVainSaysWhatWasTooLarge) {
  Planned p;
  p.Join("w0");
  p.planning.Compile(p.Ask("large"), {}, [](const auto&) {});
  p.compiler.has_room.WaitForNotification();
  absl::Status refused;
  absl::Notification answered;
  std::atomic<int> asked = 0;
  p.planning.Compile(p.Ask("large"),
                     {.has_given_up = [&] { return ++asked > 1; }},
                     [&](const auto& outcome) {
                       refused = outcome.status();
                       answered.Notify();
                     });
  answered.WaitForNotification();
  EXPECT_EQ(refused.message(),
            "the plan of large has 1048576 instructions and waited for others, "
            "of 1048576 in all, as at most 1441792 are planned at a time: "
            "nobody waits for the plan any more");
  p.compiler.open.Notify();
}

TEST(Planning, StopEndsWhatIsBeingPlanned) {
  Planned p;
  p.Join("w0");
  absl::Status outcome;
  absl::Status explained;
  p.planning.Compile(p.Ask("endless"), {},
                     [&](const auto& o) { outcome = o.status(); });
  Compilation explain = p.Ask("endless");
  explain.explain = true;
  p.planning.Compile(std::move(explain), {},
                     [&](const auto& o) { explained = o.status(); });
  p.compiler.started.WaitForNotification();
  p.planning.Stop();
  EXPECT_TRUE(absl::IsUnavailable(outcome)) << outcome;
  EXPECT_TRUE(absl::IsUnavailable(explained)) << explained;
}

TEST(Planning, AJobThatIsCancelledIsNotPlannedFurther) {
  Planned p;
  JobSpec endless = SpecOf(1);
  endless.set_name("endless");
  const JobId first = p.Submit(endless);
  p.Join("w0");
  p.Join("w1");
  p.compiler.started.WaitForNotification();
  p.Submit(SpecOf(2));
  p.host.Apply([&](Cluster& c, absl::Time now, Actions& out) {
    CHECK_OK(c.Cancel(first, now, out));
  });
  EXPECT_TRUE(p.compiler.second_started.WaitForNotificationWithTimeout(kLong));
}

TEST(Planning, AJobThatIsPlannedWhenTheSchedulerStopsStaysInTheQueue) {
  Planned p;
  JobSpec endless = SpecOf(1);
  endless.set_name("endless");
  const JobId job = p.Submit(endless);
  p.Join("w0");
  p.compiler.started.WaitForNotification();
  p.planning.Stop();
  p.host.Read([&](const Cluster& c, absl::Time) {
    EXPECT_EQ((*c.FindJob(job))->status.state(), QUEUED);
  });
}

}  // namespace
}  // namespace troupe
