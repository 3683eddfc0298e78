#include "scheduler/cluster/describe.h"

#include "gtest/gtest.h"
#include "proto/base/status.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

// With nobody else's events in between.
class Shown {
 public:
  explicit Shown(const Cluster& cluster) : cluster_(cluster) {}
  void operator()(Look look) const { look(cluster_); }

 private:
  const Cluster& cluster_;
};

absl::StatusOr<JobDescription> Described(const Cluster& cluster, JobId id,
                                         const DescribeOptions& options = {}) {
  JobDescription description;
  RETURN_IF_ERROR(DescribeJob(Shown(cluster), id, options, description));
  return description;
}

absl::StatusOr<GetTimelineResponse> Timelines(const Cluster& cluster, JobId id,
                                              int64_t step = 0) {
  GetTimelineRequest request;
  request.set_id(id.value());
  request.set_step(step);
  GetTimelineResponse timelines;
  RETURN_IF_ERROR(TimelineOf(Shown(cluster), request, timelines));
  return timelines;
}

TEST(Describe, ShowsJobsAndWorkers) {
  Harness h;
  const std::vector<WorkerId> on = {h.Join("w10"), h.Join("w9"), h.Join("w1")};
  const JobId first = h.Submit(SpecOf(1));
  const JobId second = h.Submit(SpecOf(5));
  h.Disconnect(on[1], "gone");
  h.Ready(first, 0, on[2]);
  h.Step(first, 0, on[2], 1);

  ListJobsResponse jobs;
  ListJobs(Shown(h.cluster), jobs);
  ASSERT_EQ(jobs.jobs_size(), 2);
  EXPECT_EQ(jobs.jobs(0).id(), second.value()) << "newest first";

  ListWorkersResponse workers;
  ListWorkers(Shown(h.cluster), workers);
  ASSERT_EQ(workers.workers_size(), 3);
  EXPECT_EQ(workers.workers(0).description().name(), "w1");
  EXPECT_EQ(workers.workers(1).description().name(), "w10");
  EXPECT_EQ(workers.workers(2).state(), WorkerStatus::LOST);

  const JobDescription job = *Described(h.cluster, first);
  EXPECT_EQ(job.steps_size(), 1);
  EXPECT_EQ(job.plan().fingerprint(), "0123456789abcdef");
  EXPECT_EQ(job.plan().roles_size(), 0) << "without programs";
  EXPECT_GE(job.events_size(), 3);
  EXPECT_EQ(Described(h.cluster, first, {.steps = false})->steps_size(), 0);
  EXPECT_EQ(Described(h.cluster, second)->plan().job().name(), "job-5");
  EXPECT_TRUE(absl::IsNotFound(Described(h.cluster, JobId(9)).status()));
}

TEST(Describe, TimelinesOfWhatWasPredictedAndTraced) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const JobId waiting = h.Submit(SpecOf(2));
  const JobId id = h.Submit(SpecOf(1));
  EXPECT_TRUE(absl::IsNotFound(Timelines(h.cluster, waiting).status()));
  ASSERT_TRUE(Timelines(h.cluster, id).ok());
  EXPECT_TRUE(Timelines(h.cluster, id)->has_predicted());
  EXPECT_FALSE(Timelines(h.cluster, id)->has_measured());
  WorkerMessage step;
  *step.mutable_step()->mutable_ref() = h.Ref(id, 0);
  step.mutable_step()->mutable_timeline()->add_spans();
  for (int number = 1; number <= 2; ++number) {
    step.mutable_step()->mutable_record()->set_step(number);
    h.Send(worker, step);
  }
  EXPECT_EQ(Timelines(h.cluster, id)->measured().step(), 2) << "the last";
  EXPECT_EQ(Timelines(h.cluster, id, 1)->measured().step(), 1);
  EXPECT_EQ(Timelines(h.cluster, id, 3).status().message(),
            "job 2 has no trace of step 3; there are those of 1, 2");
}

// A caller that looks at much lets events come in between.
TEST(Describe, LooksAtPartsOfWhatIsLarge) {
  Harness h;
  const WorkerId worker = h.Join("w");
  const JobId id = h.Running({worker});
  int64_t step = 0;
  const auto train = [&](int64_t steps) {
    for (const int64_t last = step + steps; step < last;) {
      h.Step(id, 0, worker, ++step);
    }
  };
  constexpr int64_t kSteps = 2 * JobTable::kWatchStepsMax + 1;
  train(kSteps);
  int looks = 0;
  JobDescription job;
  const auto show = [&](Look look) {
    ++looks;
    look(h.cluster);
    train(1);
  };
  ASSERT_TRUE(DescribeJob(show, id, {}, job).ok());
  EXPECT_EQ(looks, 1 + 3);
  ASSERT_EQ(job.steps_size(), kSteps);
  for (int i = 0; i < kSteps; ++i) ASSERT_EQ(job.steps(i).step(), i + 1);

  std::vector<WorkerId> on = h.JoinMany(1030);
  looks = 0;
  ListWorkersResponse workers;
  ListWorkers(
      [&](Look look) {
        ++looks;
        look(h.cluster);
      },
      workers);
  EXPECT_EQ(workers.workers_size(), 1031);
  EXPECT_EQ(looks, 3 + 1) << "the links come last";
}

}  // namespace
}  // namespace troupe
