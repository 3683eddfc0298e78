#include "tests/bench/daemon_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "tests/cluster/troupe_program.h"

namespace troupe {

std::string RunTroupe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kTroupe);
  Outcome outcome = RunProgram(arguments, absl::InfiniteDuration());
  CHECK_EQ(outcome.code, 0) << outcome.out << outcome.err;
  return std::move(outcome.out);
}

double JobRun::MedianStepSeconds(int skipped) const {
  std::vector<double> seconds;
  for (const nlohmann::json& step : description.at("steps")) {
    seconds.push_back(step.at("step_seconds").get<double>());
  }
  CHECK_GE(static_cast<int>(seconds.size()), skipped + 3);
  seconds.erase(seconds.begin(), seconds.begin() + skipped);
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

double JobRun::MemoryBytesMax() const {
  double bytes = 0;
  for (const nlohmann::json& step : description.at("steps")) {
    bytes = std::max(bytes, step.at("memory_bytes").get<double>());
  }
  return bytes;
}

double JobRun::MedianSlower(int skipped) const {
  std::vector<double> slower;
  for (const nlohmann::json& step : description.at("steps")) {
    if (skipped-- > 0 || !step.contains("machine")) continue;
    slower.push_back(step["machine"].value("slower", 0.0));
  }
  if (slower.empty()) return 0;
  std::sort(slower.begin(), slower.end());
  return slower[slower.size() / 2];
}

DaemonCluster::DaemonCluster(const std::string& folder, int workers,
                             const std::vector<std::string>& flags)
    : dir_(folder + "/cluster") {
  std::vector<std::string> up = {"up", "--workers", absl::StrCat(workers),
                                 "--dir", dir_};
  up.insert(up.end(), flags.begin(), flags.end());
  RunTroupe(std::move(up));
}

DaemonCluster::~DaemonCluster() { RunTroupe({"down", "--dir", dir_}); }

JobRun DaemonCluster::Run(const BenchJob& job) const {
  std::vector<std::string> submit = {"submit", job.file, "--dir", dir_,
                                     "--watch"};
  for (const std::string& setting : job.settings) {
    submit.insert(submit.end(), {"--set", setting});
  }
  RunTroupe(submit);
  return {.description = nlohmann::json::parse(
              RunTroupe({"describe", "latest", "--json", "--dir", dir_}))};
}

}  // namespace troupe
