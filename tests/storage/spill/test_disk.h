// A directory on a disk, for tests of workers whose nvme tier it is: they
// refuse memory (spill_preflight.h). It is below the test's own, or where that
// is no disk below TROUPE_TEST_DISK, if somebody says so:
//
//   bazel test --test_env=TROUPE_TEST_DISK=/var/tmp //tests/cluster/...
//
//   void SetUp() override {
//     if (!disk_.WhyNot().empty()) GTEST_SKIP() << disk_.WhyNot();
//   }
#ifndef TROUPE_TESTS_STORAGE_SPILL_TEST_DISK_H_
#define TROUPE_TESTS_STORAGE_SPILL_TEST_DISK_H_

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/status.h"
#include "storage/engine/posix_file.h"
#include "storage/spill/spill_preflight.h"
#include "tests/storage/temp_dir.h"

namespace troupe {

class TestDisk {
 public:
  TestDisk() {
    const absl::Status disk = IsDisk();
    if (disk.ok()) return;
    why_not_ = absl::StrCat(disk.message(),
                            "; TROUPE_TEST_DISK may name a directory on one");
  }

  const std::string& path() const { return dir_.path(); }
  // Empty: it is one.
  const std::string& WhyNot() const { return why_not_; }

 private:
  static std::string Parent() {
    const char* const named = std::getenv("TROUPE_TEST_DISK");
    return named == nullptr ? testing::TempDir() : named;
  }

  // Only what a test cannot help: all else is for the worker to refuse.
  absl::Status IsDisk() const {
    ASSIGN_OR_RETURN(const SpillFileSystem found, ReadSpillFileSystem(path()));
    RETURN_IF_ERROR(JudgeSpillFileSystem(found));
    const TempDir inside(path());
    WriteText(inside.File("direct"), "");
    return PosixFile::Open(inside.File("direct"), IoMode::kDirect).status();
  }

  const TempDir dir_{Parent()};
  std::string why_not_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_SPILL_TEST_DISK_H_
