#include "scheduler/store/cluster_id.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "scheduler/store/database.h"
#include "scheduler/store/store.h"

namespace troupe {
namespace {

std::string EmptyDirectory(const char* name) {
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

// An id for life.
TEST(ClusterId, EachStoreHasItsOwn) {
  const std::string directory = EmptyDirectory("store-id");
  std::string id;
  {
    const auto store = Store::Open(directory);
    ASSERT_TRUE(store.ok()) << store.status();
    id = (*store)->cluster_id();
    EXPECT_EQ(id.size(), 16u);
  }
  EXPECT_EQ((*Store::Open(directory))->cluster_id(), id);
  EXPECT_NE((*Store::Open(EmptyDirectory("store-id-2")))->cluster_id(), id);
}

std::string Sole(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Which no worker with a rank survives the loss of.
TEST(ClusterId, OutlivesTheFileThatLosesIt) {
  const std::string directory = EmptyDirectory("store-id-kept");
  const std::string id = (*Store::Open(directory))->cluster_id();
  const std::string db = directory + "/troupe.db";
  EXPECT_EQ(Sole(directory + "/cluster_id"), id);
  {  // As of a build before protocol 22.
    auto database = Database::Open(db);
    ASSERT_TRUE(database->Execute("DROP TABLE cluster").ok());
  }
  EXPECT_EQ((*Store::Open(directory))->cluster_id(), id);
  // An empty history.
  std::filesystem::rename(db, db + ".aside");
  EXPECT_EQ((*Store::Open(directory))->cluster_id(), id);
  // A backup of the store alone.
  std::filesystem::remove(directory + "/cluster_id");
  EXPECT_EQ((*Store::Open(directory))->cluster_id(), id);
  EXPECT_EQ(Sole(directory + "/cluster_id"), id);
  // What somebody wrote.
  std::ofstream(directory + "/cluster_id") << "not an id";
  EXPECT_EQ((*Store::Open(directory))->cluster_id(), id);
  std::ofstream(directory + "/cluster_id") << "0123456789abcdef\n";
  EXPECT_EQ((*Store::Open(directory))->cluster_id(), "0123456789abcdef");
  std::filesystem::remove(directory + "/cluster_id");
  EXPECT_EQ((*Store::Open(directory))->cluster_id(), "0123456789abcdef");
}

TEST(ClusterId, ADamagedTableEndsNoStart) {
  const std::string directory = EmptyDirectory("store-id-torn");
  std::string id;
  int64_t page = 0;
  {
    auto store = Store::Open(directory);
    id = (*store)->cluster_id();
    StoreBatch batch;
    auto row = std::make_shared<JobRow>();
    row->status.set_id(1);
    row->status.set_state(QUEUED);
    batch.jobs[JobId(1)] = std::move(row);
    ASSERT_TRUE((*store)->Write(batch).ok());
  }
  {
    auto database = Database::Open(directory + "/troupe.db");
    auto query = database->Prepare(
        "SELECT rootpage FROM sqlite_master WHERE name = 'cluster'");
    ASSERT_TRUE(*query->Next());
    page = query->Int(0);
  }
  {
    std::fstream file(directory + "/troupe.db",
                      std::ios::binary | std::ios::in | std::ios::out);
    constexpr int kDatabasePageBytes = 4096;
    file.seekp((page - 1) * kDatabasePageBytes);
    file << std::string(kDatabasePageBytes, '\xff');
  }
  for (const bool has_file : {true, false}) {
    if (!has_file) std::filesystem::remove(directory + "/cluster_id");
    auto store = Store::Open(directory);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->cluster_id() == id, has_file);
    EXPECT_EQ((*store)->cluster_id().size(), 16u);
    const auto jobs = (*store)->Load({});
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    EXPECT_EQ(jobs->jobs.size(), 1u);
  }
}

}  // namespace
}  // namespace troupe
