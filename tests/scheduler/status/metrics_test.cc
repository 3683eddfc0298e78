#include "scheduler/status/metrics.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

TEST(Metrics, TellsOfTheClusterAndItsJobs) {
  Metrics metrics;
  MadeUpCluster made_up(&metrics);
  metrics.CountRpc("SubmitJob", absl::OkStatus());
  metrics.CountRpc("SubmitJob", absl::InvalidArgumentError(""));
  metrics.CountRpc("SubmitJob", absl::InvalidArgumentError(""));
  const std::string text =
      made_up.host.Read([&](const Cluster& cluster, absl::Time) {
        return metrics.Text(cluster, absl::Seconds(90));
      });
  for (const char* line :
       {"# HELP troupe_workers Workers, by their state",
        "# TYPE troupe_workers gauge", "troupe_workers{state=\"busy\"} 4\n",
        "troupe_workers{state=\"left\"} 0\n",
        "troupe_jobs{state=\"running\"} 1\n",
        "troupe_jobs{state=\"succeeded\"} 1\n", "troupe_ranks_awaited 0\n",
        "troupe_steps_total 140\n", "# TYPE troupe_step_seconds histogram",
        "troupe_step_seconds_count 140\n",
        "troupe_rpcs_total{code=\"INVALID_ARGUMENT\",rpc=\"SubmitJob\"} 2\n",
        "troupe_rpcs_total{code=\"OK\",rpc=\"SubmitJob\"} 1\n",
        "direction=\"in\"", "tier=\"nvme\"} 0.125\n", "tier=\"nvme\"} 0.25\n",
        "# TYPE troupe_job_tier_bytes gauge",
        "# TYPE troupe_job_tier_bytes_per_second gauge",
        // 500 MiB of each of four ranks in a quarter of a second.
        "tier=\"nvme\"} 8388608000\n", "troupe_uptime_seconds 90\n",
        "name=\"demo\"} 120\n", "# TYPE troupe_job_restarts gauge",
        "# TYPE troupe_job_unsaved gauge",
        "# TYPE troupe_job_stood_seconds gauge", "troupe_job_attempt{job=",
        "troupe_worker_memory_bytes{worker=\"worker-0\"}"}) {
    EXPECT_TRUE(absl::StrContains(text, line)) << line << "\nin\n" << text;
  }
  EXPECT_FALSE(absl::StrContains(text, "worker-5")) << "it is lost";
}

}  // namespace
}  // namespace troupe
