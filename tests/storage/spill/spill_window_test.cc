#include "storage/spill/spill_window.h"

#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "proto/base/philox.h"
#include "tests/storage/spill/spill_fixture.h"

namespace troupe {
namespace {

constexpr uint64_t kWindow = SpillWindow::kWindowBytes;
// Two windows, and a last one that is short.
constexpr uint64_t kBytes = 2 * kWindow + 3 * kIoAlignment;

class SpillWindowTest : public testing::Test {
 protected:
  // What the file holds, past the window.
  std::string Content() {
    const SpillMemory all(kBytes, 0);
    CHECK_OK(spill_.Read({0, kBytes}, all.data()));
    return std::string(all.data(), kBytes);
  }

  TempDir dir_;
  const std::unique_ptr<IoEngine> engine_ = SmallEngine();
  Spill spill_ =
      MakeSpill(*engine_, {.directory = dir_.path(), .bytes = kBytes});
  SpillWindow window_{*spill_.queue};
};

TEST_F(SpillWindowTest, WritesAndReadsAnyBytes) {
  std::string expected(kBytes, '\0');
  // Some of them over the edge of a window, and some in the last one.
  for (uint32_t i = 0; i < 60; ++i) {
    const uint64_t begin = PhiloxUint32({.seed = 1}, 2 * i) % (kBytes - 1);
    const uint64_t bytes = std::min<uint64_t>(
        kBytes - begin, 1 + PhiloxUint32({.seed = 1}, 2 * i + 1) %
                                (i % 3 == 0 ? kWindow : 9000));
    const std::string text(bytes, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(window_.Write(begin, bytes, text.data()).ok());
    expected.replace(begin, bytes, text);
    std::string back(bytes, 'x');
    ASSERT_TRUE(window_.Read(begin, bytes, back.data()).ok());
    ASSERT_EQ(back, text);
  }
  ASSERT_TRUE(window_.Flush().ok());
  EXPECT_EQ(Content(), expected);
}

TEST_F(SpillWindowTest, KeepsWhatLiesAround) {
  const SpillMemory before(kBytes, 1);
  ASSERT_TRUE(spill_.Write({0, kBytes}, before.data()).ok());
  std::string expected(before.data(), kBytes);
  const std::string text(kWindow + 100, 't');
  ASSERT_TRUE(window_.Write(kWindow - 50, text.size(), text.data()).ok());
  expected.replace(kWindow - 50, text.size(), text);
  ASSERT_TRUE(window_.Flush().ok());
  EXPECT_EQ(Content(), expected);
}

TEST_F(SpillWindowTest, ReadsWhatOthersWroteSinceItsFlush) {
  std::string found(8, 'x');
  ASSERT_TRUE(window_.Read(100, found.size(), found.data()).ok());
  EXPECT_EQ(found, std::string(8, '\0'));
  ASSERT_TRUE(window_.Flush().ok());
  const SpillMemory since(kBytes, 1);
  ASSERT_TRUE(spill_.Write({0, kBytes}, since.data()).ok());
  ASSERT_TRUE(window_.Read(1020, found.size(), found.data()).ok());
  EXPECT_EQ(found, std::string(since.data() + 1020, found.size()));
}

TEST_F(SpillWindowTest, HandsOnWhatTheDiskSays) {
  const SpillMemory data(kBytes, 1);
  std::filesystem::resize_file(spill_.path(), kSpillHeaderBytes + kWindow);
  char byte = 'x';
  EXPECT_TRUE(window_.Read(0, 1, &byte).ok());
  EXPECT_TRUE(Fails(window_.Read(kWindow, 1, &byte),
                    absl::StatusCode::kDataLoss,
                    {spill_.path(), "somebody cut it"}));
  EXPECT_TRUE(window_.Read(5, 1, &byte).ok()) << "the rest is good";
}

}  // namespace
}  // namespace troupe
