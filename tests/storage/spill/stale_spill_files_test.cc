#include "storage/spill/stale_spill_files.h"

#include <algorithm>
#include <filesystem>

#include "gtest/gtest.h"
#include "storage/spill/spill_header.h"
#include "tests/storage/spill/spill_fixture.h"

namespace troupe {
namespace {

TEST(StaleSpillFiles, RemovesOursThatNobodyHolds) {
  TempDir dir;
  const std::string header = SpillHeader({.cluster = "other", .job = "1"});
  const std::string block = header + "\n" + std::string(5000, '\0');
  WriteText(dir.File("troupe-spill-00000001"), block);
  WriteText(dir.File("troupe-spill-00000002"), "");
  // Of our name, but not ours; ours, but under another name; others'.
  const std::vector<std::string> kept = {"data.tokens", "kept-troupe-spill",
                                         "troupe-spill-00000003"};
  WriteText(dir.File("troupe-spill-00000003"), "the only copy of my thesis");
  WriteText(dir.File("kept-troupe-spill"), block);
  WriteText(dir.File("data.tokens"), "");
  const auto engine = SmallEngine();
  const auto live =
      MakeSpill(*engine, {.directory = dir.path(), .bytes = kIoAlignment});
  EXPECT_EQ(NamesIn(dir.path()).size(), 4u) << "who makes one removes first";

  WriteText(dir.File("troupe-spill-00000001"), block);
  std::filesystem::create_directory(dir.File("troupe-spill-00000004"));
  std::filesystem::create_symlink(dir.File("kept-troupe-spill"),
                                  dir.File("troupe-spill-00000005"));
  const auto stale = RemoveStaleSpillFiles(dir.path());
  ASSERT_TRUE(stale.ok()) << stale.status();
  EXPECT_EQ(stale->count, 1);
  EXPECT_EQ(stale->bytes, block.size());
  std::vector<std::string> expected = kept;
  expected.insert(expected.end(),
                  {"troupe-spill-00000004", "troupe-spill-00000005",
                   std::filesystem::path(live.path()).filename()});
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(NamesIn(dir.path()), expected);
  EXPECT_EQ(ReadText(dir.File("troupe-spill-00000003")),
            "the only copy of my thesis");
}

TEST(StaleSpillFiles, NamesTheDirectoryThatIsNotThere) {
  EXPECT_TRUE(Fails(RemoveStaleSpillFiles("/no/such").status(),
                    absl::StatusCode::kNotFound, {"/no/such"}));
}

}  // namespace
}  // namespace troupe
