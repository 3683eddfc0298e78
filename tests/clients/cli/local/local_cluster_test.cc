#include "clients/cli/local/local_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cli/local/process.h"
#include "gtest/gtest.h"
#include "storage/disk/file_lock.h"
#include "tests/clients/cli/local/scripted_daemons.h"
#include "tests/clients/cpp/fake_scheduler.h"
#include "tests/storage/disk/is_awaited.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class LocalClusterTest : public testing::Test {
 protected:
  LocalClusterTest()
      : dir_(fs::path(testing::TempDir()) / "my cluster"),
        daemons_(fs::path(testing::TempDir()) / "programs", scheduler_) {
    fs::remove_all(dir_);
  }
  ~LocalClusterTest() override {
    StopLocalCluster({.dir = dir_.string()}).status().IgnoreError();
  }

  absl::StatusOr<LocalCluster> Start(absl::Duration start = absl::Minutes(2)) {
    return StartLocalCluster(
        {.dir = dir_.string(),
         .workers = workers_,
         .share = share_,
         .insecure = insecure_,
         .start = start,
         .search = {.self = (daemons_.folder() / "troupe").string(),
                    .path = ""}},
        keep_going_);
  }

  const fs::path dir_;
  FakeJobScheduler scheduler_;
  ScriptedDaemons daemons_;
  std::function<bool()> keep_going_ = [] { return true; };
  int workers_ = 2;
  bool insecure_ = true;  // as those scripts are
  WorkerShare share_ = {.threads = 3, .device_memory = "1GiB"};
};

// A user who wants workers without certificates says so each time.
TEST_F(LocalClusterTest, AddsNoInsecureWorkersUnasked) {
  ASSERT_TRUE(Start().ok());
  workers_ = 3;
  insecure_ = false;
  const absl::Status refused = Start().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("say --insecure again"), std::string::npos)
      << refused;
  insecure_ = true;
  EXPECT_TRUE(Start().ok());
}

TEST_F(LocalClusterTest, StartsAllAndStopsAll) {
  const LocalCluster cluster = Start().value();
  EXPECT_EQ(cluster.endpoints.grpc, scheduler_.address());
  ASSERT_EQ(cluster.members.size(), 3);
  EXPECT_EQ(cluster.members[0].name, "scheduler");
  EXPECT_EQ(cluster.members[2].name, "worker-1");
  for (const ClusterMember& member : cluster.members) {
    EXPECT_TRUE(IsRunning(member.process)) << member.name;
  }
  EXPECT_EQ(ReadClusterFile(dir_.string()).value(), cluster.members);
  const std::string arguments =
      daemons_.Arguments(cluster.members[2].process.pid);
  const std::string said = "--scheduler " + scheduler_.address() +
                           " --name worker-1 --threads 3 --device-memory 1GiB"
                           " --host-memory ";  // its share of this machine's
  EXPECT_EQ(arguments.substr(0, said.size()), said);
  EXPECT_GT(arguments.size(), said.size());

  const absl::Status again = Start().status();
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists) << again;
  EXPECT_NE(again.message().find("stop it with: troupe down --dir '" +
                                 dir_.string() + "'"),
            std::string::npos)
      << again << " can be copied";

  const StoppedCluster stopped =
      StopLocalCluster({.dir = dir_.string()}).value();
  EXPECT_EQ(stopped.stopped, 3);
  EXPECT_TRUE(stopped.killed.empty());
  for (const ClusterMember& member : cluster.members) {
    EXPECT_FALSE(IsRunning(member.process)) << member.name;
  }
  EXPECT_EQ(StopLocalCluster({.dir = dir_.string()}).status().code(),
            absl::StatusCode::kNotFound);
}

// A job that waited in the queue takes the workers as they come.
TEST_F(LocalClusterTest, WorkersThatAreBusyAtOnceAreThere) {
  daemons_.registered_as = WorkerStatus::BUSY;
  EXPECT_TRUE(Start().ok());
}

TEST_F(LocalClusterTest, StartsWorkersThatAreGoneAgain) {
  const LocalCluster cluster = Start().value();
  EXPECT_EQ(cluster.started,
            (std::vector<std::string>{"scheduler", "worker-0", "worker-1"}));
  const std::string log = (dir_ / "logs/worker-0.log").string();
  std::ofstream(log) << "its last words\n";
  ASSERT_EQ(
      EndProcesses({cluster.members[1].process}, {.grace = absl::Seconds(10)})
          .left.size(),
      0u);
  const auto whole = Start();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->started, std::vector<std::string>{"worker-0"});
  EXPECT_EQ(LogTail(log, 1), "\n  its last words");
  const auto members = ReadClusterFile(dir_.string()).value();
  ASSERT_EQ(members.size(), 3u);
  for (const ClusterMember& member : members) {
    EXPECT_TRUE(IsRunning(member.process)) << member.name;
  }
  EXPECT_EQ(members[0], cluster.members[0]);
  EXPECT_NE(std::find(members.begin(), members.end(), cluster.members[2]),
            members.end());
  // More are added in the same way.
  workers_ = 3;
  EXPECT_EQ(Start().value().started, std::vector<std::string>{"worker-2"});
  EXPECT_EQ(StopLocalCluster({.dir = dir_.string()}).value().stopped, 4);
}

TEST_F(LocalClusterTest, StartsAsManyAsAreMissing) {
  workers_ = 4;
  const LocalCluster cluster = Start().value();
  EndProcesses({cluster.members[1].process, cluster.members[2].process},
               {.grace = absl::Seconds(10)});
  workers_ = 3;
  const LocalCluster whole = Start().value();
  EXPECT_EQ(whole.started, std::vector<std::string>{"worker-0"});
  EXPECT_EQ(CountWorkers(whole.members), 3);
}

// The user who starts it again does not remember the flags, and is not told
// them.
TEST_F(LocalClusterTest, AWorkerInAnothersPlaceIsStartedAsThatOneWas) {
  share_.gpu = true;
  const LocalCluster cluster = Start().value();
  const auto end_one = [&] {
    const auto members = ReadClusterFile(dir_.string()).value();
    const auto worker =
        std::find_if(members.begin(), members.end(),
                     [](const auto& m) { return m.name == "worker-0"; });
    ASSERT_NE(worker, members.end());
    EndProcesses({worker->process}, {.grace = absl::Seconds(10)});
  };
  end_one();
  share_ = {.threads = 2};
  const absl::Status other = Start().status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(other.message().find("worker-0 of the cluster in " + dir_.string() +
                                 " was started with --threads 3 "
                                 "--device-memory 1GiB --host-memory " +
                                 cluster.members[1].share.host_memory +
                                 " on a GPU; leave out"),
            std::string::npos)
      << other;
  share_ = {};
  workers_ = 3;
  daemons_.Script("troupe-worker", "exit 1");
  EXPECT_TRUE(absl::IsAborted(Start().status())) << "as if it had not begun";
  daemons_.WriteScripts();
  const LocalCluster whole = Start().value();
  EXPECT_EQ(whole.started, (std::vector<std::string>{"worker-0", "worker-2"}));
  const auto arguments = [&](const std::string& name) {
    for (const ClusterMember& member : whole.members) {
      if (member.name == name) return daemons_.Arguments(member.process.pid);
    }
    return std::string();
  };
  EXPECT_EQ(arguments("worker-0"),
            daemons_.Arguments(cluster.members[1].process.pid));
  EXPECT_NE(arguments("worker-2").find("--device cuda:2"), std::string::npos)
      << "of one kind with them";
}

TEST_F(LocalClusterTest, WorkersOnGpusDoNotJoinOthers) {
  ASSERT_TRUE(Start().ok());
  share_.gpu = true;
  workers_ = 3;
  EXPECT_EQ(Start().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LocalClusterTest, AFailureLeavesWhatRanBefore) {
  const LocalCluster cluster = Start().value();
  daemons_.Script("troupe-worker", "echo no such device; exit 1");
  workers_ = 3;
  EXPECT_EQ(Start().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReadClusterFile(dir_.string()).value(), cluster.members);
  for (const ClusterMember& member : cluster.members) {
    EXPECT_TRUE(IsRunning(member.process)) << member.name;
  }
}

// As a cron job and a person do. Whatever comes of it, `down` must find all.
TEST_F(LocalClusterTest, TwoThatStartItAtOnceTakeTurns) {
  for (const int workers : {6, 12}) {  // all of them, and more beside those
    workers_ = workers;
    absl::Status outcomes[2];
    std::thread other([&] { outcomes[1] = Start().status(); });
    outcomes[0] = Start().status();
    other.join();
    if (!outcomes[0].ok()) std::swap(outcomes[0], outcomes[1]);
    EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
    EXPECT_TRUE(absl::IsAlreadyExists(outcomes[1])) << outcomes[1];
    const auto members = ReadClusterFile(dir_.string()).value();
    EXPECT_EQ(members.size(), workers + 1u);
    for (const WorkerStatus& worker : daemons_.Workers()) {
      EXPECT_TRUE(std::any_of(members.begin(), members.end(),
                              [&](const ClusterMember& member) {
                                return member.process.pid == worker.pid();
                              }))
          << worker.pid() << " is not in " << kClusterFile;
    }
  }
}

TEST_F(LocalClusterTest, WaitsForItsTurnNoLongerThanForAStart) {
  fs::create_directories(dir_);
  const auto turn = FileLock::Take(dir_ / "up.lock", "somebody else");
  ASSERT_TRUE(turn.ok()) << turn.status();
  const absl::Status late = Start(absl::Milliseconds(100)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(late.message().find("for somebody else, which starts the cluster"),
            std::string::npos)
      << late;
  keep_going_ = [] { return false; };
  EXPECT_TRUE(absl::IsCancelled(Start().status()));
}

// The folder outlives its container, which was killed. Whose the cluster is is
// decided before there is a scheduler of ours, which holds DIR/lock, too.
TEST_F(LocalClusterTest, TakesThePlaceOfOneWhoseContainerIsGone) {
  fs::create_directories(dir_);
  const ProcessSpace here = ThisProcessSpace();
  std::ofstream(dir_ / kClusterFile)
      << "{\"host\": \"gone\", \"boot\": \"" << here.boot
      << "\", \"pids\": " << here.pids + 1 << ", \"members\": [{\"name\": "
      << "\"scheduler\", \"pid\": 7, \"start_ticks\": 77}]}";
  const std::string turn = (dir_ / "pids.lock").string();
  std::optional<FileLock> first = *FileLock::Take(turn, "the test");
  absl::StatusOr<LocalCluster> cluster;
  std::thread up([&] { cluster = Start(); });
  while (!IsAwaited(turn)) std::this_thread::yield();
  std::optional<FileLock> scheduler;
  if (fs::exists(dir_ / "logs/scheduler.log")) {  // it was started, and runs
    scheduler = *FileLock::Take((dir_ / "lock").string(), "its scheduler");
  }
  first.reset();
  up.join();
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ReadClusterFile(dir_.string()).value(), cluster->members);
}

// A worker of the script says when it is asked to end, and takes its time.
TEST_F(LocalClusterTest, WaitsForAJobThatIsSaved) {
  const fs::path asked = dir_ / "asked";
  const fs::path saved = dir_ / "saved";
  daemons_.Script(
      "troupe-worker",
      absl::StrCat("trap \"touch '", asked.string(), "'\" TERM\n", "touch '",
                   daemons_.folder().string(), "'/$$.args\n", "while [ ! -e '",
                   saved.string(), "' ]; do sleep 0.01; ", "done"));
  workers_ = 1;
  ASSERT_TRUE(Start().ok());
  daemons_.registered_as = WorkerStatus::BUSY;
  daemons_.job = 7;
  bool saves = false;
  const auto news = [&](const std::vector<std::string>& names,
                        absl::Duration grace) {
    EXPECT_EQ(names, std::vector<std::string>{"worker-0"});
    saves = saves || grace == absl::InfiniteDuration();
    if (fs::exists(asked)) std::ofstream(saved) << "all of it";
  };
  const StoppedCluster stopped =
      StopLocalCluster({.news = news,
                        .dir = dir_.string(),
                        .worker_grace = absl::ZeroDuration()})
          .value();
  EXPECT_TRUE(stopped.killed.empty());
  EXPECT_TRUE(saves);
}

TEST_F(LocalClusterTest, KillsWhoSavesNothing) {
  daemons_.Script(
      "troupe-worker",
      absl::StrCat("trap '' TERM\ntouch '", daemons_.folder().string(),
                   "'/$$.args\n", "while :; do sleep 0.01; done"));
  workers_ = 1;
  const auto stop = [&](const std::function<bool()>& hurried) {
    EXPECT_TRUE(Start().ok());
    return StopLocalCluster({.hurried = hurried,
                             .dir = dir_.string(),
                             .worker_grace = absl::Milliseconds(50)})
        .value();
  };
  EXPECT_EQ(stop(nullptr).killed, std::vector<std::string>{"worker-0"});
  daemons_.registered_as = WorkerStatus::BUSY;
  daemons_.job = 7;
  EXPECT_EQ(stop([] { return true; }).killed,
            std::vector<std::string>{"worker-0"})
      << "nor who is not waited for";
}

TEST_F(LocalClusterTest, SaysWhyItCannotEndThemAndWhatToDo) {
  const LocalCluster cluster = Start().value();
  const auto stop = [&](int error) {
    const absl::Status status =
        StopLocalCluster({.dir = dir_.string(),
                          .worker_grace = absl::ZeroDuration(),
                          .scheduler_grace = absl::ZeroDuration(),
                          .after = absl::Milliseconds(20),
                          .signal =
                              [error](pid_t, int) {
                                errno = error;
                                return error == 0 ? 0 : -1;
                              }})
            .status();
    EXPECT_EQ(ReadClusterFile(dir_.string()).value(), cluster.members);
    return status;
  };
  const absl::Status refused = stop(EPERM);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_NE(refused.message().find("end them as the user who started them"),
            std::string::npos)
      << refused;
  const absl::Status held = stop(0);
  EXPECT_EQ(held.code(), absl::StatusCode::kUnavailable) << held;
  EXPECT_NE(held.message().find("killed, but the kernel holds it; they wait "
                                "for a disk or a device"),
            std::string::npos)
      << held;
}

// It waits for nobody: what is started meanwhile ends without its scheduler.
TEST_F(LocalClusterTest, MayBeStoppedWhileItStarts) {
  scheduler_.workers = nullptr;  // nobody ever registers
  keep_going_ = [this] {
    StopLocalCluster({.dir = dir_.string()}).status().IgnoreError();
    return true;
  };
  EXPECT_TRUE(absl::IsAborted(Start().status()));
  EXPECT_FALSE(fs::exists(dir_ / kClusterFile));
  for (const WorkerStatus& worker : daemons_.Workers()) {
    EXPECT_FALSE(IsRunning(worker.pid()));
  }
}

// What its workers run is worth more than their places: they find the new one
// where the old one was, and nobody else is touched.
TEST_F(LocalClusterTest, AClusterWithoutItsSchedulerGetsOne) {
  workers_ = 3;
  const LocalCluster before = Start().value();
  EndProcesses({before.members[0].process, before.members[2].process},
               {.grace = absl::Seconds(10)});
  const LocalCluster after = Start().value();
  EXPECT_EQ(after.started, (std::vector<std::string>{"scheduler", "worker-1"}));
  ASSERT_EQ(after.members.size(), 4u);
  EXPECT_EQ(after.members[0].name, "scheduler");
  EXPECT_EQ(after.members[1], before.members[1]);
  EXPECT_EQ(after.members[2], before.members[3]);
  EXPECT_EQ(after.members[3].share, before.members[2].share);
  std::ifstream arguments(dir_ / "scheduler.args");
  std::string line;
  std::getline(arguments, line);
  EXPECT_NE(line.find("--listen " + scheduler_.address()), std::string::npos)
      << line;
  EXPECT_NE(line.find("--insecure"), std::string::npos)
      << "as it was: " << line;
  EXPECT_EQ(ReadClusterFile(dir_.string()).value().front().name, "scheduler");
  EXPECT_EQ(StopLocalCluster({.dir = dir_.string()}).value().stopped, 4);
}

TEST_F(LocalClusterTest, WorkersThatLookNowhereKnownAreRefused) {
  const LocalCluster cluster = Start().value();
  EndProcesses({cluster.members[0].process}, {.grace = absl::Seconds(10)});
  ASSERT_TRUE(
      ChangeClusterFile(dir_.string(), [](std::vector<ClusterMember>& members) {
        for (auto& m : members) m.scheduler.clear();
      }).ok());
  const absl::Status status = Start().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(StopLocalCluster({.dir = dir_.string()}).value().stopped, 2);
}

// What an earlier scheduler left says another start than the process has whose
// number is the same.
TEST_F(LocalClusterTest, AReusedProcessIdIsNoScheduler) {
  fs::create_directories(dir_);
  std::ofstream(dir_ / "endpoints.json")
      << "{\"grpc\": \"127.0.0.1:1\", \"host\": \"" << HostName()
      << "\", \"pid\": " << getpid() << ", \"start_ticks\": 1}";
  EXPECT_TRUE(Start().ok()) << Start().status();
}

TEST_F(LocalClusterTest, ShowsTheLogOfTheOneThatFails) {
  daemons_.Script("troupe-worker", "echo no such device; exit 1");
  const absl::Status failed = Start().status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kAborted);
  EXPECT_NE(failed.message().find("ended while starting; its log ends with\n  "
                                  "no such device"),
            std::string::npos)
      << failed;
  EXPECT_FALSE(ReadEndpoints(dir_.string()).ok()) << "the scheduler is gone";
  EXPECT_FALSE(fs::exists(dir_ / kClusterFile));
}

TEST_F(LocalClusterTest, GivesUpWhenToldToOrWhenTimeIsUp) {
  scheduler_.workers = nullptr;  // nobody ever registers
  const absl::Status late = Start(absl::Milliseconds(200)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(late.message().find("2 of 2 workers to register"),
            std::string::npos)
      << late;
  keep_going_ = [this] { return daemons_.Workers().size() < 2; };
  EXPECT_EQ(Start().status().code(), absl::StatusCode::kCancelled);
  for (const WorkerStatus& worker : daemons_.Workers()) {
    EXPECT_FALSE(IsRunning(worker.pid()));
  }
}

TEST_F(LocalClusterTest, SaysWhatIsMissing) {
  fs::remove(daemons_.folder() / "troupe-worker");
  EXPECT_EQ(Start().status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadEndpoints(dir_.string()).ok()) << "the scheduler is gone";
}

}  // namespace
}  // namespace troupe
