#include "scheduler/service/planning.h"

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

// Compiles when it is let.
class GatedCompiler final : public JobCompiler {
 public:
  absl::StatusOr<int> RanksNeeded(const JobSpec& job) const override {
    return fake_.RanksNeeded(job);
  }
  absl::StatusOr<CompiledJob> Compile(
      const JobSpec& job,
      const std::vector<WorkerDescription>& workers) const override {
    if (!started.HasBeenNotified()) started.Notify();
    open.WaitForNotification();
    return fake_.Compile(job, workers);
  }
  Plan PlanOfRank(const Plan& plan, int rank) const override {
    return fake_.PlanOfRank(plan, rank);
  }

  mutable absl::Notification started;
  absl::Notification open;

 private:
  FakeCompiler fake_;
};

struct Sink final : public ActionSink {
  void Carry(const Actions& actions) override {
    if (planning != nullptr) planning->Carry(actions);
  }
  Planning* planning = nullptr;
};

struct Planned {
  Planned() { sink.planning = &planning; }
  WorkerId Join(const std::string& name) {
    return host.Apply([&](Cluster& c, absl::Time now, Actions& out) {
      return *c.RegisterWorker(RegisterOf(name), now, out);
    });
  }
  Compilation Ask() {
    return *host.Read(
        [](const Cluster& c, absl::Time) { return c.Consider(SpecOf(1)); });
  }

  GatedCompiler compiler;
  RealClock clock;
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
  p.planning.Stop();  // behind the compilation in progress
  p.host.Read([&](const Cluster& c, absl::Time) {
    EXPECT_EQ((*c.FindJob(job))->status.state(), STARTING);
  });
}

TEST(Planning, ClientsAreAnsweredOrRefused) {
  Planned p;
  p.Join("w0");
  int answered = 0, refused = 0, stopped = 0;
  const auto done = [&](const absl::StatusOr<CompileOutcome>& outcome) {
    answered += outcome.ok() && outcome->fits();
    refused += absl::IsResourceExhausted(outcome.status());
    stopped += absl::IsUnavailable(outcome.status());
  };
  p.planning.Compile(p.Ask(), done);
  p.compiler.started.WaitForNotification();
  for (size_t i = 0; i < Planning::kClientsMax; ++i) {
    p.planning.Compile(p.Ask(), done);
  }
  EXPECT_EQ(refused, 0);
  p.planning.Compile(p.Ask(), done);
  EXPECT_EQ(refused, 1);
  p.compiler.open.Notify();
  p.planning.Stop();
  EXPECT_EQ(answered + stopped, static_cast<int>(Planning::kClientsMax) + 1);
  EXPECT_GE(answered, 1);
  p.planning.Compile(p.Ask(), done);
  EXPECT_EQ(answered + stopped, static_cast<int>(Planning::kClientsMax) + 2);
}

}  // namespace
}  // namespace troupe
