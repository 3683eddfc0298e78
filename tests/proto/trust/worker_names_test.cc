#include "proto/trust/worker_names.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(WorkerNames, AreWrittenAsUris) {
  EXPECT_EQ(WorkerNamesUri("gpu-7-*"), "troupe:worker-name:gpu-7-*");
  EXPECT_EQ(WorkerNamesOfUri("troupe:worker-name:gpu-7-*"), "gpu-7-*");
  EXPECT_EQ(WorkerNamesOfUri("troupe:worker"), absl::nullopt);
  EXPECT_EQ(WorkerNamesOfUri("https://gpu-7"), absl::nullopt);
}

TEST(WorkerNames, AreCheckedBeforeACertificateHasThem) {
  for (const char* good : {"gpu-7", "gpu_7.x", "gpu-7-*", "a", "*"}) {
    EXPECT_TRUE(CheckWorkerNames(good).ok()) << good;
  }
  const std::string long_name(101, 'a');
  for (const char* bad :
       {"", "a*b", "a**", "a b", "a,b", "\xc3\xa4", long_name.c_str()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckWorkerNames(bad))) << bad;
  }
}

TEST(WorkerNames, AllowTheseNamesAndNoOthers) {
  const absl::Status unnamed = CheckMayBeNamed("anything", {});
  EXPECT_TRUE(absl::IsPermissionDenied(unnamed));
  EXPECT_EQ(unnamed.message(),
            "the worker's certificate says no worker's name, and so is not for "
            "anything; make one that does: troupe cluster certificate HOST "
            "--role worker --name anything, or, of another authority, with the "
            "URI troupe:worker-name:anything among its alternative names. "
            "Until all have such ones, troupe-scheduler --unnamed-workers "
            "takes it for any name");
  EXPECT_TRUE(CheckMayBeNamed("anything", {"*"}).ok());
  EXPECT_TRUE(CheckMayBeNamed("gpu-7", {"gpu-7"}).ok());
  EXPECT_TRUE(CheckMayBeNamed("gpu-7-3", {"gpu-7", "gpu-7-*"}).ok());
  for (const char* other : {"gpu-70", "gpu-7", "gpu", "", "gpu-8-1"}) {
    const absl::Status refused = CheckMayBeNamed(other, {"gpu-7-*", "cpu"});
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << other;
  }
  EXPECT_EQ(CheckMayBeNamed("gpu-8", {"gpu-7", "gpu-7-*"}).message(),
            "the worker's certificate is for the name gpu-7, gpu-7-*, not for "
            "gpu-8; start it with --name and one of those, or make a "
            "certificate with troupe cluster certificate --name");
}

}  // namespace
}  // namespace troupe
