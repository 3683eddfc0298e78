#include "clients/cli/local/machine_share.h"

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/proto/base/on_one_core.h"

namespace troupe {
namespace {

TEST(MachineShare, KeepsWhatIsSaid) {
  const WorkerShare share =
      ShareOfMachine(4, {.threads = 3, .device_memory = "2GiB"});
  EXPECT_EQ(
      ShareArguments(share, 1),
      (std::vector<std::string>{"--threads", "3", "--device-memory", "2GiB",
                                "--host-memory", share.host_memory}));
  EXPECT_TRUE(ShareArguments({}, 0).empty());
  EXPECT_EQ(ShareOfMachine(4, {.host_memory = "3GiB"}).host_memory, "3GiB");
  EXPECT_EQ(ShareOfMachine(4, {.host_memory = "3GiB", .gpu = true}).host_memory,
            "3GiB");
}

TEST(MachineShare, HandsRootsOn) {
  EXPECT_EQ(ShareArguments({.roots = {"a=/a", "b=/b"}}, 0),
            (std::vector<std::string>{"--root", "a=/a", "--root", "b=/b"}));
}

TEST(MachineShare, GivesEachWorkerAGpu) {
  const WorkerShare share = ShareOfMachine(2, {.threads = 3, .gpu = true});
  EXPECT_TRUE(share.device_memory.empty());
  EXPECT_EQ(
      ShareArguments(share, 1),
      (std::vector<std::string>{"--threads", "3", "--host-memory",
                                share.host_memory, "--device", "cuda:1"}));
}

TEST(MachineShare, DividesTheRest) {
  const WorkerShare many = ShareOfMachine(100000, {});
  EXPECT_EQ(many.threads, 1);
  const WorkerShare one = ShareOfMachine(1, {});
  EXPECT_GE(one.threads, 1);
  int64_t all = 0;
  int64_t part = 0;
  ASSERT_TRUE(absl::SimpleAtoi(one.device_memory, &all));
  ASSERT_TRUE(absl::SimpleAtoi(many.device_memory, &part));
  EXPECT_LT(part, all / 1000);
  EXPECT_GT(part, 0);
  ASSERT_TRUE(absl::SimpleAtoi(many.host_memory, &part))
      << "left to themselves, all would count on what one leaves over";
  EXPECT_LT(part, all / 1000);
}

TEST(MachineShare, IsOfTheCoresThatTroupeMayUse) {
  OnOneCore([](int) { EXPECT_EQ(ShareOfMachine(1, {}).threads, 1); });
}

}  // namespace
}  // namespace troupe
