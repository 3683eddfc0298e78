// A cluster of real daemons on this machine, as a user starts it, for
// benchmarks that want what their users would see.
//
//   DaemonCluster cluster(folder, 4);
//   const JobRun run = cluster.Run({.file = ..., .settings = {...}});
#ifndef TROUPE_TESTS_BENCH_DAEMON_CLUSTER_H_
#define TROUPE_TESTS_BENCH_DAEMON_CLUSTER_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe {

// `troupe <arguments>`; CHECKs that it succeeds. Returns what it printed.
std::string RunTroupe(std::vector<std::string> arguments);

struct BenchJob {
  std::string file;
  std::vector<std::string> settings;  // --set
};

// What `troupe describe --json` says of a job that has ended.
struct JobRun {
  nlohmann::json description;

  const nlohmann::json& prediction() const {
    return description.at("plan").at("prediction");
  }
  // The median of the steps' times, without the first `skipped`. CHECKs that
  // there are at least three others.
  double MedianStepSeconds(int skipped) const;
  // How much slower than at its calibration the machine was, as its workers
  // said: 0.12 is 12 %. The median of the steps' without the first.
  double MedianSlower(int skipped) const;
  // Resident, of the worker that used most, after any step.
  double MemoryBytesMax() const;
};

// Up from its construction to its destruction.
class DaemonCluster {
 public:
  // `folder` exists, and keeps the cluster's. `flags`: more of `troupe up`.
  DaemonCluster(const std::string& folder, int workers,
                const std::vector<std::string>& flags = {});
  ~DaemonCluster();
  DaemonCluster(const DaemonCluster&) = delete;
  DaemonCluster& operator=(const DaemonCluster&) = delete;

  // Submits the job and waits for its end; CHECKs that it succeeds.
  JobRun Run(const BenchJob& job) const;

 private:
  const std::string dir_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_DAEMON_CLUSTER_H_
