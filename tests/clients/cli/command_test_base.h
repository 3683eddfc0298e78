// For tests of whole commands: `troupe` in this process, against a scheduler
// that answers from a script.
#ifndef TROUPE_TESTS_CLIENTS_CLI_COMMAND_TEST_BASE_H_
#define TROUPE_TESTS_CLIENTS_CLI_COMMAND_TEST_BASE_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/clients/cpp/fake_scheduler.h"

namespace troupe {

struct CommandOutcome {
  int code = -1;
  std::string out;
  std::string err;
};

CommandOutcome RunCommand(const std::vector<std::string>& arguments);

class CommandTestBase : public testing::Test {
 protected:
  // The scheduler has job 1, "demo", SUCCEEDED, and job 2, "demo", RUNNING.
  CommandTestBase();

  // With the fake scheduler's address.
  CommandOutcome Ask(std::vector<std::string> arguments) const;
  // Writes a file of the test's own and returns its path.
  static std::string File(const std::string& name, const std::string& content);
  static std::string Content(const std::string& path);
  // The scheduler reports one running step, then this end, to watchers.
  void WatchersSee(JobState end, const std::string& reason);

  FakeJobScheduler scheduler_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_CLI_COMMAND_TEST_BASE_H_
