// A real cluster for a test: scheduler and workers as daemons on loopback,
// ports from the kernel, all files in the test's own folder, everything ended
// with the test. Workers have one thread each, and find the machine measured.
#ifndef TROUPE_TESTS_CLUSTER_CLUSTER_TEST_BASE_H_
#define TROUPE_TESTS_CLUSTER_CLUSTER_TEST_BASE_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/troupe_program.h"

namespace troupe {

class ClusterTestBase : public testing::Test {
 protected:
  ClusterTestBase();
  ~ClusterTestBase() override;

  const std::string& dir() const { return dir_; }

  // `troupe up` in dir(); checks that it succeeds.
  void Up(int workers, const std::vector<std::string>& more = {});
  // A `troupe` command with --dir.
  Outcome Troupe(std::vector<std::string> arguments) const;
  std::vector<std::string> Command(std::vector<std::string> arguments) const;

  // Submits a tiny job with these fields set ("training.steps=5"), and returns
  // its number; 0, with a test failure, where it is refused.
  int Submit(const std::vector<std::string>& settings = {}) const;
  // `troupe submit` with the tiny job and these fields.
  std::vector<std::string> SubmitCommand(
      const std::vector<std::string>& settings) const;
  // These fields, and those that give the tiny job's model four experts in each
  // layer, of which a token has two.
  static std::vector<std::string> WithExperts(
      std::vector<std::string> settings);
  // Follows the job to its end.
  Outcome Watch(int job) const;
  // Runs such a job to its end, which it must reach well; of each step.
  std::vector<double> Losses(const std::vector<std::string>& settings) const;
  // `troupe describe --json`.
  nlohmann::json Describe(int job) const;
  // Cancels the job when it has done some more steps than now: so it lasts for
  // as long as a test wants something of it, however quick the machine is.
  void CancelSomeStepsOn(int job) const;
  // The process of the worker with this name.
  pid_t WorkerPid(const std::string& name) const;
  // Kills the process of the worker with this name, or "scheduler", and returns
  // when it is gone: its connections are closed some time before.
  void Kill(const std::string& name) const;

 private:
  std::string dir_;
};

// Of each worker.
inline constexpr char kThreads[] = "1";

// A job that goes on until someone ends it.
inline constexpr char kEndless[] = "training.steps=1000000";

}  // namespace troupe

#endif  // TROUPE_TESTS_CLUSTER_CLUSTER_TEST_BASE_H_
