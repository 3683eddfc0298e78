#include "worker/service/run_worker.h"

#include <google/protobuf/text_format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "gtest/gtest.h"
#include "proto/base/log.h"
#include "proto/cluster.pb.h"
#include "tests/worker/service/fake_scheduler.h"
#include "worker/calibrate/calibration_file.h"

namespace troupe {
namespace {

// A kept calibration, so that nothing is measured.
std::string CalibrationFile() {
  const std::string path = testing::TempDir() + "/run_worker.textproto";
  Calibration kept;
  kept.set_device(CalibrationDevice());
  kept.set_threads(1);
  std::string text;
  EXPECT_TRUE(google::protobuf::TextFormat::PrintToString(kept, &text));
  std::ofstream(path) << text;
  return path;
}

// Before any thread is there, as in main.
void BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
}

TEST(RunWorker, ServesUntilASignal) {
  BlockSignals();
  FakeScheduler scheduler;
  std::thread killer([&] {
    scheduler.AwaitMessages(1, [](const auto& m) { return m.has_heartbeat(); });
    kill(getpid(), SIGTERM);
  });
  EXPECT_EQ(RunWorker({.scheduler = scheduler.address(),
                       .trust = {.insecure = 1},
                       .threads = 1,
                       .device_memory = 1 << 20,
                       .calibration_file = CalibrationFile()}),
            0);
  killer.join();
  EXPECT_EQ(
      scheduler.AwaitMessages(1, [](const auto& m) { return m.has_goodbye(); })
          .size(),
      1u);
}

// And it says so: a reader of the log of one that ended at once wants to know.
TEST(RunWorker, EndsWhereItsParentIsGone) {
  const std::string log = testing::TempDir() + "/orphan.log";
  EXPECT_EQ(
      RunWorker(
          {.scheduler = "127.0.0.1:1", .log_file = log, .parent = 99999999}),
      0);
  FlushLog();  // a thread of its own writes it
  std::stringstream said;
  said << std::ifstream(log).rdbuf();
  EXPECT_NE(said.str().find("process 99999999, which started this one, is "
                            "gone"),
            std::string::npos)
      << said.str();
}

TEST(RunWorker, ARefusalIsAFailure) {
  FakeScheduler scheduler({.refusal = absl::AlreadyExistsError("taken")});
  EXPECT_EQ(RunWorker({.scheduler = scheduler.address(),
                       .trust = {.insecure = 1},
                       .threads = 1,
                       .device_memory = 1 << 20,
                       .calibration_file = CalibrationFile()}),
            1);
}

TEST(RunWorker, BadFlagsAreAFailure) {
  EXPECT_EQ(RunWorker({.device = "abacus"}), 1);
  EXPECT_EQ(RunWorker({.log_file = "/proc/no/such/log"}), 1);
  // Set aside for documents (RFC 5737): no host has it.
  EXPECT_EQ(RunWorker({.scheduler = "127.0.0.1:1",
                       .trust = {.insecure = 1},
                       .address = "198.51.100.7"}),
            1);
  EXPECT_EQ(RunWorker({.scheduler = "198.51.100.7:1",
                       .trust = {.insecure = 2},
                       .address = "127.0.0.1"}),
            1);
  EXPECT_EQ(RunCalibrate({.worker = {.threads = -1}}), 1);
}

TEST(RunCalibrate, DescribesThisMachineOnStdout) {
  testing::internal::CaptureStdout();
  const int code =
      RunCalibrate({.worker = {.name = "ada",
                               .threads = 1,
                               .device_memory = 1 << 20,
                               .calibration_file = CalibrationFile()},
                    .describe = true});
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  WorkerDescription description;
  ASSERT_TRUE(description.ParseFromString(out));
  EXPECT_EQ(description.name(), "ada");
  EXPECT_EQ(description.calibration().device(), CalibrationDevice());
}

}  // namespace
}  // namespace troupe
