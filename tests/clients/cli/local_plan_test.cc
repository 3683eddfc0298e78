#include "clients/cli/local_plan.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// Scripts in place of the daemons: the worker prints a description and keeps
// its arguments, the scheduler prints a response and keeps its request.
class LocalPlanTest : public testing::Test {
 protected:
  LocalPlanTest() : dir_(fs::path(testing::TempDir()) / "local_plan") {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    WorkerDescription worker;
    worker.set_device("cpu");
    worker.set_threads(3);
    Write("worker.out", worker.SerializeAsString());
    Script("troupe-worker", "echo \"$@\" > worker.args; cat worker.out");
    Script("troupe-scheduler",
           "echo \"$@\" > scheduler.args; cat > scheduler.in; "
           "cat scheduler.out");
    CompileResponse response;
    response.mutable_plan()->set_fingerprint("abc");
    Write("scheduler.out", response.SerializeAsString());
    job_.set_name("demo");
  }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(dir_ / name, std::ios::binary) << content;
  }
  void Script(const std::string& name, const std::string& body) {
    Write(name, "#!/bin/sh\ncd " + dir_.string() + "\n" + body + "\n");
    fs::permissions(dir_ / name, fs::perms::owner_all);
  }
  std::string Read(const std::string& name) {
    std::stringstream content;
    content << std::ifstream(dir_ / name, std::ios::binary).rdbuf();
    return content.str();
  }
  LocalPlanOptions Options() {
    return {.workers = 2,
            .share = {.threads = 3, .device_memory = "1GiB"},
            .calibration = "file",
            .search = {.self = (dir_ / "troupe").string(), .path = ""}};
  }

  const fs::path dir_;
  JobSpec job_;
};

TEST_F(LocalPlanTest, AsksTheWorkerThenThePlanner) {
  const CompileResponse response = PlanLocally(job_, Options()).value();
  EXPECT_EQ(response.plan().fingerprint(), "abc");
  const std::string args = Read("worker.args");
  EXPECT_TRUE(absl::StartsWith(args,
                               "calibrate --describe --threads 3 "
                               "--device-memory 1GiB --host-memory "))
      << args;
  EXPECT_TRUE(absl::EndsWith(args, " --calibration file\n")) << args;
  CompileRequest request;
  ASSERT_TRUE(request.ParseFromString(Read("scheduler.in")));
  EXPECT_EQ(request.job().name(), "demo");
  ASSERT_EQ(request.workers_size(), 2);
  EXPECT_EQ(request.workers(1).name(), "worker-1");
  EXPECT_EQ(request.workers(1).threads(), 3);
  EXPECT_FALSE(request.explain());
  EXPECT_EQ(Read("scheduler.args"), "compile\n");
  LocalPlanOptions options = Options();
  options.explain = true;
  options.extras = {.programs = true, .timeline = true};
  ASSERT_TRUE(PlanLocally(job_, options).ok());
  ASSERT_TRUE(request.ParseFromString(Read("scheduler.in")));
  EXPECT_TRUE(request.explain());
  EXPECT_EQ(Read("scheduler.args"), "compile --programs --timeline\n");
}

// No worker is described for a number of ranks that nobody plans.
TEST_F(LocalPlanTest, RefusesSizesBeforeAnybodyIsAsked) {
  job_.mutable_parallelism()->set_tensor(std::numeric_limits<int>::max());
  EXPECT_EQ(PlanLocally(job_, Options()).status(),
            absl::InvalidArgumentError(
                "parallelism.tensor: 2147483647 is out of range; use 1 to "
                "1024"));
  EXPECT_FALSE(fs::exists(dir_ / "worker.args"));
}

TEST_F(LocalPlanTest, PlansForWorkersThatAreDescribed) {
  CompileRequest asked;
  for (int i = 0; i < 3; ++i) asked.add_workers();
  asked.mutable_workers(2)->set_name("node-0/2");
  fs::remove(dir_ / "troupe-worker");  // is not asked
  const CompileResponse response =
      PlanForWorkers(asked, {}, Options().search).value();
  EXPECT_EQ(response.plan().fingerprint(), "abc");
  CompileRequest request;
  ASSERT_TRUE(request.ParseFromString(Read("scheduler.in")));
  ASSERT_EQ(request.workers_size(), 3);
  EXPECT_EQ(request.workers(2).name(), "node-0/2");
}

TEST_F(LocalPlanTest, HandsTheRefusalOn) {
  CompileResponse response;
  response.set_error("parallelism.data: 3 does not divide 8");
  Write("scheduler.out", response.SerializeAsString());
  EXPECT_EQ(
      PlanLocally(job_, Options()).status(),
      absl::InvalidArgumentError("parallelism.data: 3 does not divide 8"));
}

TEST_F(LocalPlanTest, SaysWhichProgramFails) {
  Script("troupe-worker", "echo no device >&2; exit 1");
  const absl::Status failed = PlanLocally(job_, Options()).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kAborted);
  EXPECT_NE(failed.message().find("no device"), std::string::npos) << failed;
  Script("troupe-worker", "echo this is no message");
  EXPECT_EQ(PlanLocally(job_, Options()).status().code(),
            absl::StatusCode::kInternal);
  fs::remove(dir_ / "troupe-worker");
  EXPECT_EQ(PlanLocally(job_, Options()).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
