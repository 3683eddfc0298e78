// Workers that get no rank, with real daemons: one that a person has cordoned,
// and one that fails job after job.
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kOneRank[] = "parallelism.data=1";

class SetAsideTest : public ClusterTestBase {
 protected:
  // Until that is so, or for a minute.
  static bool Await(const std::function<bool()>& is_so) {
    const absl::Time end = absl::Now() + absl::Minutes(1);
    while (!is_so()) {
      if (absl::Now() > end) return false;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }

  static bool Says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  void Cancel(int job) {
    EXPECT_EQ(Troupe({"cancel", std::to_string(job)}).code, 0);
    Watch(job);
  }
  std::string WorkerOf(int job) { return Describe(job)["workers"][0]; }
  // Of the table of workers.
  std::string Line(const std::string& worker) {
    const std::string table = Troupe({"workers"}).out;
    const size_t at = table.find(worker);
    if (at == std::string::npos) return "";
    return table.substr(at, table.find('\n', at) - at);
  }
};

TEST_F(SetAsideTest, ACordonedWorkerGetsNoRankUntilItIsUncordoned) {
  Up(2);
  const Outcome cordoned =
      Troupe({"workers", "cordon", "worker-0", "--why", "its fan is broken"});
  ASSERT_EQ(cordoned.code, 0) << cordoned.err;
  EXPECT_THAT(Troupe({"workers"}).out,
              AllOf(HasSubstr("aside"), HasSubstr("its fan is broken")));
  for (int i = 0; i < 2; ++i) {
    const int job = Submit({kOneRank});
    EXPECT_EQ(Watch(job).code, 0);
    EXPECT_EQ(WorkerOf(job), "worker-1");
  }
  // One that needs both waits, and the cordon outlives the scheduler.
  const int wide = Submit();
  Kill("scheduler");
  Up(2);
  EXPECT_TRUE(Await(
      [&] { return Says(Troupe({"workers"}).out, "its fan is broken"); }));
  EXPECT_EQ(Describe(wide)["state"], "QUEUED");
  const Outcome back = Troupe({"workers", "uncordon", "worker-0"});
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(Watch(wide).code, 0);
  EXPECT_THAT(Troupe({"workers"}).out, Not(HasSubstr("aside")));
  EXPECT_EQ(Troupe({"workers", "cordon", "nobody"}).code, 1);
}

// Where its root has a file in place of a folder, each job fails at once. The
// scheduler learns that, and jobs run on the other one.
TEST_F(SetAsideTest, AWorkerThatFailsJobsIsSetAsideAndNoJobFails) {
  for (const char* root : {"good", "bad"}) {
    fs::create_directory(dir() + "/" + root);
    fs::copy(dir() + "/tiny.tokens", absl::StrCat(dir(), "/", root));
  }
  std::ofstream(dir() + "/bad/runs") << "in the way";
  Up(1, {"--root", "data=" + dir() + "/good"});
  const Json endpoints =
      Json::parse(std::ifstream(dir() + "/endpoints.json"), nullptr, false);
  const TroupeProgram bad({kWorker, "--scheduler", endpoints["grpc"], "--name",
                           "worker-bad", "--threads", kThreads,
                           "--device-memory", "256MiB", "--host-memory",
                           "256MiB", "--root", "data=" + dir() + "/bad",
                           "--certificates", dir() + "/trust/worker"});
  ASSERT_TRUE(
      Await([&] { return Says(Troupe({"workers"}).out, "worker-bad"); }));
  const auto submit = [this](const std::string& name,
                             const std::string& steps) {
    return Submit({kOneRank, steps, "data.tokens=data:tiny.tokens",
                   "checkpoint.directory=data:runs/" + name});
  };
  for (int i = 0; i < 3; ++i) {
    // The good one is busy, so that the next job is tried on the bad one.
    const int busy = submit(absl::StrCat("busy-", i), kEndless);
    ASSERT_TRUE(Await([&] {
      const Json job = Describe(busy);
      return job["state"] == "RUNNING" && job["workers"][0] == "worker-0";
    })) << Describe(busy);
    const int job = submit(absl::StrCat("job-", i), "training.steps=4");
    ASSERT_TRUE(Await([&] {
      return Says(Describe(job)["events"].dump(), "worker-bad");
    })) << Describe(job);
    Cancel(busy);
    EXPECT_EQ(Watch(job).code, 0) << Describe(job);
    EXPECT_EQ(WorkerOf(job), "worker-0");
  }
  EXPECT_TRUE(Await([&] { return Says(Line("worker-bad"), "aside"); }))
      << Troupe({"workers"}).out;
  // With a free bad worker and a busy good one, a job waits for the good one.
  const int busy = submit("busy", kEndless);
  ASSERT_TRUE(Await([&] { return Describe(busy)["state"] == "RUNNING"; }));
  const int waits = submit("waits", "training.steps=4");
  EXPECT_THAT(Describe(waits)["events"].dump(), Not(HasSubstr("worker-bad")));
  Cancel(busy);
  EXPECT_EQ(Watch(waits).code, 0);
  EXPECT_EQ(WorkerOf(waits), "worker-0");
}

}  // namespace
}  // namespace troupe
