#include "scheduler/status/metrics.h"

#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/scheduler/cluster/harness.h"
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

// Of a cluster whose jobs have all that there is to say.
std::set<std::string> ExportedNames() {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Running(on);
  WorkerMessage message;
  *message.mutable_step()->mutable_ref() = h.Ref(id, 0);
  StepRecord& step = *message.mutable_step()->mutable_record();
  step.set_step(1);
  step.set_loss_scale(1024);
  step.mutable_routers()->set_entropy(1);
  step.set_mtp_loss(1);
  step.add_tiers()->set_tier(NVME);
  step.mutable_tiers(0)->set_seconds(1);
  h.Send(on[0], message);
  Metrics metrics;
  metrics.CountRpc("SubmitJob", absl::OkStatus());
  std::set<std::string> names;
  const std::string text = metrics.Text(h.cluster, absl::Seconds(1));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "# TYPE ")) continue;
    names.insert(std::string(line.substr(0, line.find(' '))));
  }
  return names;
}

// In what the dashboard asks Prometheus for.
void AddNamesAsked(const nlohmann::json& at, std::set<std::string>& names) {
  for (const auto& [key, value] : at.items()) {
    if (value.is_structured()) {
      AddNamesAsked(value, names);
    } else if (at.is_object() && (key == "expr" || key == "query")) {
      static const std::regex* const kName = new std::regex("troupe_[a-z_]+");
      const std::string asked = value;
      for (std::sregex_iterator it(asked.begin(), asked.end(), *kName), end;
           it != end; ++it) {
        // A histogram has series of several names.
        names.insert(std::string(absl::StripSuffix(it->str(), "_bucket")));
      }
    }
  }
}

// docs/grafana.json draws all that is exported, and nothing else.
TEST(Metrics, AreThoseOfTheDashboard) {
  std::ifstream in("docs/grafana.json");
  ASSERT_TRUE(in.good());
  std::set<std::string> asked;
  AddNamesAsked(nlohmann::json::parse(in), asked);
  EXPECT_GT(asked.size(), 20u);
  EXPECT_EQ(asked, ExportedNames());
}

}  // namespace
}  // namespace troupe
