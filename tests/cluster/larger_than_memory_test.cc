// A model that no memory of its worker holds trains from the disk: its state is
// ten times the device's budget and three times the host's.
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"
#include "tests/storage/spill/test_disk.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

using Settings = std::vector<std::string>;

// Many blocks: of each, the device has little at once.
const Settings kModel = {
    "parallelism.data=1",         "model.num_hidden_layers=40",
    "model.hidden_size=128",      "model.num_attention_heads=4",
    "model.vocab_size=256",       "training.steps=3",
    "training.precision=bf16",    "training.gradient_precision=parameters",
    "data.validation_fraction=0", "training.global_batch_size=2"};
const Settings kOnDisk = {"memory.optimizer=nvme", "memory.parameters=nvme",
                          "memory.gradients=host", "memory.activations=nvme"};

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

// Whoever next makes a file on the disk removes what a killed one left there.
TEST_F(LargerThanMemory, WhatAKilledWorkerLeavesIsRemoved) {
  UpWithDisk(2);
  const Settings on_disk = {"parallelism.data=1", "memory.optimizer=nvme"};
  TroupeProgram job(
      Command(With(SubmitCommand(With(on_disk, {kEndless})), {"--watch"})));
  ASSERT_NE(job.WaitForLine("step 3/"), "");
  ASSERT_EQ(kill(WorkerPid(Describe(1)["workers"][0]), SIGKILL), 0);
  EXPECT_EQ(job.Wait().code, 1);
  EXPECT_FALSE(DiskIsEmpty());
  EXPECT_EQ(Watch(Submit(on_disk)).code, 0);
  EXPECT_TRUE(DiskIsEmpty());
}

}  // namespace
}  // namespace troupe
