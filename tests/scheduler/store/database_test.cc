#include "scheduler/store/database.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string FreshPath(const char* name) {
  const std::string path = testing::TempDir() + "/" + name;
  unlink(path.c_str());
  return path;
}

TEST(Database, BindsRunsAndReads) {
  auto database = Database::Open(FreshPath("a.db"));
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE(database->Execute("CREATE TABLE t (k INTEGER, v BLOB)").ok());
  auto insert = database->Prepare("INSERT INTO t VALUES (?, ?)");
  const std::string zero("a\0b", 3);
  for (int i = 0; i < 3; ++i) {
    insert->Bind(1, int64_t{1} << (40 + i));
    insert->Bind(2, zero);
    ASSERT_TRUE(insert->Run().ok());
  }
  auto query = database->Prepare("SELECT k, v FROM t ORDER BY k");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(*query->Next());
    EXPECT_EQ(query->Int(0), int64_t{1} << (40 + i));
    EXPECT_EQ(query->Bytes(1), zero);
  }
  EXPECT_FALSE(*query->Next());
}

TEST(Database, ErrorsNameTheFile) {
  auto database = Database::Open("/nowhere/a.db");
  EXPECT_TRUE(absl::IsPermissionDenied(database.status()));
  EXPECT_TRUE(absl::StrContains(database.status().message(), "/nowhere/a.db"));

  const std::string path = FreshPath("b.db");
  std::ofstream(path) << std::string(4096, 'x');
  EXPECT_TRUE(absl::IsDataLoss(Database::Open(path).status()))
      << Database::Open(path).status();
}

TEST(Database, AFullDiskIsSaidSo) {
  auto database = Database::Open(FreshPath("c.db"));
  ASSERT_TRUE(database->Execute("CREATE TABLE t (v BLOB)").ok());
  ASSERT_TRUE(database->Execute("PRAGMA max_page_count = 4").ok());
  auto insert = database->Prepare("INSERT INTO t VALUES (?)");
  insert->Bind(1, std::string(1 << 20, 'x'));
  const absl::Status full = insert->Run();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(absl::StrContains(full.message(), "free some space")) << full;
}

}  // namespace
}  // namespace troupe
