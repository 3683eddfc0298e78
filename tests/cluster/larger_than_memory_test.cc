// A model that no memory of its worker holds trains from the disk: its state is
// ten times the device's budget and three times the host's.
#include <signal.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"
#include "tests/storage/spill/test_disk.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

using Settings = std::vector<std::string>;

const Settings kOnDisk = {"memory.optimizer=nvme", "memory.parameters=nvme",
                          "memory.gradients=host", "memory.activations=nvme"};

// Many blocks: of each, the device has little at once.
const Settings kModel = {
    "parallelism.data=1",         "model.num_hidden_layers=40",
    "model.hidden_size=128",      "model.num_attention_heads=4",
    "model.vocab_size=256",       "training.steps=3",
    "training.precision=bf16",    "training.gradient_precision=parameters",
    "data.validation_fraction=0", "training.global_batch_size=2"};

// Few that are wide: what an EVICT moves is some MiB. Saved after each step.
const Settings kWideModel = {
    "model.num_hidden_layers=3", "model.hidden_size=256",
    "training.global_batch_size=2", "checkpoint.every=1", kEndless};

Settings With(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

class LargerThanMemory : public ClusterTestBase {
 protected:
  void SetUp() override {
    if (!disk_.WhyNot().empty()) GTEST_SKIP() << disk_.WhyNot();
  }

  // As of the nvme tier, with what else is said.
  void UpWithDisk(int workers, Settings flags = {}) {
    Up(workers, With(std::move(flags),
                     {"--nvme", disk_.path(), "--nvme-size", "256MiB"}));
  }
  // Of the process that holds it.
  std::string SpillFileOf(pid_t pid) const {
    for (const auto& file : std::filesystem::directory_iterator(disk_.path())) {
      std::string line;
      std::getline(std::ifstream(file.path()), line);
      if (absl::StrContains(line, absl::StrCat("pid ", pid, " "))) {
        return file.path();
      }
    }
    ADD_FAILURE() << "none of " << pid << " in " << disk_.path();
    return "";
  }
  bool DiskIsEmpty() const { return std::filesystem::is_empty(disk_.path()); }

  // Of weights, their gradients, master weights and moments: 16 a parameter.
  int64_t StateBytes(const nlohmann::json& described) const {
    return 16 * described["plan"]["derived"]["parameters"].get<int64_t>();
  }

 private:
  const TestDisk disk_;
};

TEST_F(LargerThanMemory, TrainsFromTheDisk) {
  constexpr int64_t kDevice = 10 << 20;
  constexpr int64_t kHost = 34 << 20;
  UpWithDisk(1, {"--device-memory", absl::StrCat(kDevice), "--host-memory",
                 absl::StrCat(kHost)});
  const Outcome refused = Troupe(SubmitCommand(kModel));
  EXPECT_NE(refused.code, 0) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("device"));
  const int job = Submit(With(kModel, kOnDisk));
  const Outcome watched = Watch(job);
  ASSERT_EQ(watched.code, 0) << watched.out << watched.err;
  const nlohmann::json described = Describe(job);
  const int64_t state = StateBytes(described);
  EXPECT_GE(state, 10 * kDevice);
  EXPECT_GE(state, 3 * kHost);
  EXPECT_TRUE(DiskIsEmpty());
  // As one whose memory holds all of it.
  EXPECT_EQ(Troupe({"down"}).code, 0);
  Up(1);
  const std::vector<double> in_memory = Losses(kModel);
  ASSERT_EQ(described["steps"].size(), in_memory.size());
  for (size_t i = 0; i < in_memory.size(); ++i) {
    EXPECT_EQ(described["steps"][i]["loss"].get<double>(), in_memory[i]);
  }
}

// Of a file, as the kernel counts it, a few milliseconds in one.
int64_t LastWriteNs(const std::string& file) {
  struct stat found = {};
  EXPECT_EQ(stat(file.c_str(), &found), 0) << file;
  return found.st_mtim.tv_sec * int64_t{1'000'000'000} + found.st_mtim.tv_nsec;
}

// What of the steps of a job was recorded, by number.
std::map<int64_t, double> LossesByStep(const nlohmann::json& described) {
  std::map<int64_t, double> losses;
  for (const nlohmann::json& step : described["steps"]) {
    losses[step["step"]] = step["loss"];
  }
  return losses;
}

// A spill file is worth nothing to others: whatever a kill leaves half written
// there, the last checkpoint goes on as if nothing had happened.
TEST_F(LargerThanMemory, KilledWhileItEvictsItGoesOnFromItsCheckpoint) {
  Settings saved = With(With(kWideModel, kOnDisk),
                        {"checkpoint.directory=" + dir() + "/saved"});
  std::map<int64_t, double> losses;
  int64_t last = 0;
  for (int kills = 0; kills < 3; ++kills) {
    UpWithDisk(2);
    const int job = Submit(saved);
    TroupeProgram watch(Command({"watch", std::to_string(job)}));
    ASSERT_NE(watch.WaitForLine(absl::StrCat("step ", last + 2, "/")), "");
    const pid_t worker = WorkerPid(Describe(job)["workers"][kills % 2]);
    // In a step only EVICTs write there.
    const std::string file = SpillFileOf(worker);
    const int64_t before = LastWriteNs(file);
    while (LastWriteNs(file) == before) {
    }
    ASSERT_EQ(kill(worker, SIGKILL), 0);
    EXPECT_EQ(watch.Wait().code, 1);
    EXPECT_FALSE(DiskIsEmpty());
    if (kills == 0) saved.push_back("checkpoint.resume=latest");
    for (const auto& [step, loss] : LossesByStep(Describe(job))) {
      // A step that was trained but not saved is trained again, the same.
      const auto [it, is_new] = losses.emplace(step, loss);
      EXPECT_EQ(it->second, loss) << step;
      last = step;
    }
  }
  UpWithDisk(2);
  const std::string stop = absl::StrCat("training.stop_after=", last + 2);
  const int job = Submit(With(saved, {stop}));
  ASSERT_EQ(Watch(job).code, 0);
  losses.merge(LossesByStep(Describe(job)));
  EXPECT_TRUE(DiskIsEmpty());
  // As one that nothing happened to.
  const int quiet =
      Submit(With(With(kWideModel, kOnDisk),
                  {"checkpoint.directory=" + dir() + "/quiet", stop}));
  ASSERT_EQ(Watch(quiet).code, 0);
  EXPECT_EQ(losses, LossesByStep(Describe(quiet)));
}

// The next worker that makes a file on the disk removes what a killed one left
// there.
TEST_F(LargerThanMemory, WhatAKilledWorkerLeavesIsRemoved) {
  UpWithDisk(2);
  const Settings on_disk = {"parallelism.data=1", "memory.optimizer=nvme"};
  TroupeProgram job(
      Command(With(SubmitCommand(With(on_disk, {kEndless})), {"--watch"})));
  ASSERT_NE(job.WaitForLine("step 3/"), "");
  Kill(Describe(1)["workers"][0]);
  EXPECT_EQ(job.Wait().code, 1);
  EXPECT_FALSE(DiskIsEmpty());
  EXPECT_EQ(Watch(Submit(on_disk)).code, 0);
  EXPECT_TRUE(DiskIsEmpty());
}

}  // namespace
}  // namespace troupe
