#include "worker/service/options.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/proto/base/on_one_core.h"

namespace troupe {
namespace {

TEST(ParseBytes, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*ParseBytes("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(*ParseBytes("512MiB"), 512 << 20);
  EXPECT_EQ(*ParseBytes("1.5 GB"), 1'500'000'000);
  EXPECT_EQ(*ParseBytes(" 4096 "), 4096);
  EXPECT_EQ(*ParseBytes("2g"), int64_t{2} << 30);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* text :
       {"", "GiB", "-1GiB", "8 apples", "0", "1e3", "99999999TiB", "1..5GiB"}) {
    const absl::Status status = ParseBytes(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
  }
}

TEST(ResolveOptions, FillsInThisMachine) {
  const auto options = ResolveOptions({.scheduler = "127.0.0.1:1"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_GE(options->threads, 1);
  EXPECT_GT(options->device_memory, 1 << 20);
  EXPECT_GT(options->host_memory, 0);
}

// Of a worker that is pinned, more threads than cores would wait for each
// other.
TEST(ResolveOptions, TakesTheCoresThatItMayUse) {
  OnOneCore([](int) {
    const auto options = ResolveOptions({.scheduler = "127.0.0.1:1"});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->threads, 1);
  });
}

TEST(ResolveOptions, KeepsWhatIsSaid) {
  const auto options = ResolveOptions(
      {.threads = 3, .device_memory = 1000, .host_memory = 2000});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->device_memory, 1000);
  EXPECT_EQ(options->host_memory, 2000);
}

TEST(ResolveOptions, LeavesAGpusMemoryToTheGpu) {
  const auto options = ResolveOptions({.device = "cuda:3"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->device_memory, 0);
  EXPECT_GT(options->host_memory, 0);
  EXPECT_EQ(GpuOrdinal("cuda:3").value(), 3);
  EXPECT_FALSE(GpuOrdinal("cpu").value().has_value());
}

TEST(ResolveOptions, AnNvmeTierHasADirectoryAndASize) {
  const auto options =
      ResolveOptions({.nvme = "/nvme", .nvme_size = 10 * 4096 + 5});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->nvme_size, 10 * 4096);
  for (const char* device : {"cpu", "cuda:0"}) {
    EXPECT_EQ(ResolveOptions({.device = device, .nvme_size = 1 << 20})
                  .status()
                  .message()
                  .substr(0, 12),
              "--nvme-size:");
    for (const int64_t size : {0, 4095}) {
      EXPECT_EQ(
          ResolveOptions({.device = device, .nvme = "/nvme", .nvme_size = size})
              .status()
              .message(),
          "--nvme: how much of /nvme's disk may jobs take? say it with "
          "--nvme-size 100GiB");
    }
  }
}

TEST(ResolveOptions, NamesTheFlagThatIsWrong) {
  const auto message = [](WorkerOptions options) {
    return std::string(ResolveOptions(options).status().message());
  };
  EXPECT_EQ(message({.threads = -1}).substr(0, 9), "--threads");
  for (const char* device : {"cuda", "cuda:", "cuda:x", "cuda:-1", "gpu"}) {
    EXPECT_EQ(message({.device = device}),
              absl::StrCat("--device: \"", device,
                           "\" is no device; use cpu, or cuda:0 for the first "
                           "GPU"));
  }
  EXPECT_EQ(message({.name = ""}).substr(0, 6), "--name");
}

}  // namespace
}  // namespace troupe
