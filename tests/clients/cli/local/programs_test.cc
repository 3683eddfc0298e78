#include "clients/cli/local/programs.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

fs::path MakeProgram(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "#!/bin/sh\n";
  fs::permissions(file, fs::perms::owner_all);
  return file;
}

TEST(FindProgram, LooksBesideThenInBazelBinThenOnThePath) {
  const fs::path root = fs::path(testing::TempDir()) / "programs";
  fs::remove_all(root);
  const fs::path self = root / "clients/cli/troupe";
  const ProgramSearch search{.self = self.string(),
                             .path = ":/no/such:" + (root / "bin").string()};
  const absl::Status none = FindProgram("troupe-worker", search).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(none.message().find((root / "worker/troupe-worker").string()),
            std::string::npos)
      << none;

  const fs::path on_path = MakeProgram(root / "bin/troupe-worker");
  EXPECT_EQ(FindProgram("troupe-worker", search).value(), on_path);
  const fs::path built = MakeProgram(root / "worker/troupe-worker");
  EXPECT_EQ(FindProgram("troupe-worker", search).value(), built);
  const fs::path beside = MakeProgram(root / "clients/cli/troupe-worker");
  EXPECT_EQ(FindProgram("troupe-worker", search).value(), beside);
  fs::permissions(beside, fs::perms::owner_read);
  EXPECT_EQ(FindProgram("troupe-worker", search).value(), built)
      << "a file that cannot be run is none";
}

TEST(ThisProgram, KnowsItself) { EXPECT_TRUE(fs::exists(ThisProgram().self)); }

}  // namespace
}  // namespace troupe
