#include "tests/clients/cli/command_test_base.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "clients/cli/run.h"

namespace troupe {

CommandOutcome RunCommand(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  const int code = RunTroupe(arguments, console);
  return {.code = code, .out = out.str(), .err = err.str()};
}

CommandTestBase::CommandTestBase() {
  for (int id = 1; id <= 2; ++id) {
    JobStatus& status = *scheduler_.jobs.emplace_back().mutable_status();
    status.set_id(id);
    status.set_name("demo");
    status.set_state(id == 1 ? SUCCEEDED : RUNNING);
    status.set_steps_total(4);
  }
}

CommandOutcome CommandTestBase::Ask(std::vector<std::string> arguments) const {
  arguments.push_back("--scheduler");
  arguments.push_back(scheduler_.address());
  arguments.push_back("--insecure");
  return RunCommand(arguments);
}

std::string CommandTestBase::File(const std::string& name,
                                  const std::string& content) {
  const std::string path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path) << content;
  return path;
}

std::string CommandTestBase::Content(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

void CommandTestBase::WatchersSee(JobState end, const std::string& reason) {
  WatchJobResponse step;
  *step.mutable_status() = scheduler_.jobs[1].status();
  step.add_events()->set_text("running");
  step.add_steps()->set_step(1);
  WatchJobResponse last;
  *last.mutable_status() = step.status();
  last.mutable_status()->set_state(end);
  last.mutable_status()->set_reason(reason);
  scheduler_.watch = {step, last};
}

}  // namespace troupe
