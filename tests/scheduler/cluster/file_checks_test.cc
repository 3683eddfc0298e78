#include "scheduler/cluster/file_checks.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Workers that look for a job's files, one after another on each of the hosts.
struct Looking : Harness {
  explicit Looking(int workers) : Looking(workers, workers) {}
  Looking(int workers, int hosts) {
    for (int w = 0; w < workers; ++w) {
      Register request =
          RegisterOf(absl::StrCat("w", w), absl::StrCat("host-", w % hosts));
      request.set_checks_files(true);
      auto id = cluster.RegisterWorker(request, now, actions);
      CHECK_OK(id.status());
      all.push_back(*id);
    }
  }
  // Asks about the job, and returns the number of the question.
  int64_t Ask(const JobSpec& job = JobSpec()) {
    ClearActions();
    return cluster.CheckFiles(job, now, actions);
  }
  std::map<WorkerId, CheckJobFiles> Asked() {
    std::map<WorkerId, CheckJobFiles> asked;
    for (const SendToWorker& send : All<SendToWorker>()) {
      if (send.message.has_check_files()) {
        asked[send.worker] = send.message.check_files();
      }
    }
    return asked;
  }
  void Answer(WorkerId from, int64_t request, const std::string& error) {
    WorkerMessage message;
    message.mutable_files_checked()->set_request(request);
    message.mutable_files_checked()->set_error(error);
    Send(from, message);
  }
  std::vector<FilesLookedAt> Ends() { return All<FilesLookedAt>(); }

  std::vector<WorkerId> all;
};

constexpr char kAbsent[] = "data.tokens: a.tokens: No such file";

TEST(FileChecks, OneWorkerThatFindsAllWellIsEnough) {
  Looking c(3);
  const int64_t number = c.Ask();
  ASSERT_EQ(c.Asked().size(), 3u);
  c.Answer(c.all[0], number, kAbsent);
  EXPECT_TRUE(c.Ends().empty());
  c.Answer(c.all[1], number, "");
  ASSERT_EQ(c.Ends().size(), 1u);
  EXPECT_EQ(c.Ends()[0].request, number);
  EXPECT_TRUE(c.Ends()[0].status.ok());
  // The third one's answer comes too late for anything.
  c.Answer(c.all[2], number, kAbsent);
  EXPECT_EQ(c.Ends().size(), 1u);
}

// A job that waits for workers is not planned yet. A worker looks at the model
// and checkpoint of a resolved job only.
TEST(FileChecks, TheJobIsResolvedThoughItIsNotPlanned) {
  Looking c(1);
  c.Ask(SpecOf(4));
  ASSERT_EQ(c.Asked().size(), 1u);
  EXPECT_TRUE(c.Asked()[c.all[0]].job().has_evaluate());
}

TEST(FileChecks, AJobIsRefusedWhereAllFindItsFilesWrong) {
  Looking c(2);
  const int64_t number = c.Ask();
  c.Answer(c.all[1], number, absl::StrCat(kAbsent, "\n"));
  c.Answer(c.all[1], number, "said twice");
  EXPECT_TRUE(c.Ends().empty());
  c.Answer(c.all[0], number, "something else");
  ASSERT_EQ(c.Ends().size(), 1u);
  EXPECT_THAT(std::string(c.Ends()[0].status.message()),
              HasSubstr(absl::StrCat(kAbsent)));
  EXPECT_THAT(std::string(c.Ends()[0].status.message()),
              HasSubstr("(on w1)"));
}

TEST(FileChecks, SilenceIsNoObjection) {
  Looking c(2);
  const int64_t number = c.Ask();
  c.Answer(c.all[0], number, kAbsent);
  c.Pass(absl::Seconds(10), c.all);
  ASSERT_EQ(c.Ends().size(), 1u);
  EXPECT_TRUE(c.Ends()[0].status.ok()) << c.Ends()[0].status;
}

TEST(FileChecks, AWorkerThatIsLostIsNone) {
  Looking c(2);
  const int64_t number = c.Ask();
  c.Answer(c.all[0], number, kAbsent);
  c.Disconnect(c.all[1], "gone");
  c.Pass(absl::Seconds(60), {c.all[0]});
  ASSERT_EQ(c.Ends().size(), 1u);
  EXPECT_TRUE(c.Ends()[0].status.ok()) << c.Ends()[0].status;
}

TEST(FileChecks, ThreeHostsAreAskedAndNobodyWhoCannotAnswer) {
  Looking many(7);
  many.Ask();
  EXPECT_EQ(many.Asked().size(), 3u);
  Looking none(0);
  EXPECT_EQ(none.Ask(), 0);
}

// A worker whose root is wrong would keep all jobs from the queue.
TEST(FileChecks, OthersOfAHostAreAskedWhereThereAreFewHosts) {
  Looking c(2, /*hosts=*/1);
  const int64_t number = c.Ask();
  ASSERT_EQ(c.Asked().size(), 2u);
  c.Answer(c.all[0], number, kAbsent);
  EXPECT_TRUE(c.Ends().empty());
  c.Answer(c.all[1], number, "");
  ASSERT_EQ(c.Ends().size(), 1u);
  EXPECT_TRUE(c.Ends()[0].status.ok()) << c.Ends()[0].status;
}

TEST(FileChecks, EachHostIsAskedBeforeASecondWorkerOfOne) {
  Looking c(6, /*hosts=*/2);
  c.Ask();
  EXPECT_EQ(c.Asked().size(), 3u);
  EXPECT_EQ(c.Asked().count(c.all[0]), 1u);
  EXPECT_EQ(c.Asked().count(c.all[1]), 1u);
}

}  // namespace
}  // namespace troupe
