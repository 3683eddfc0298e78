#include "worker/calibrate/choices_file.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

class ChoicesFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/choices";
    std::filesystem::remove_all(directory_);
    path_ = directory_ + "/deep/product-kernels.txt";
  }
  // Each process has one; two have the same file.
  absl::optional<std::string> Ask(const std::string& key,
                                  const std::string& choice) {
    return ChoicesFile(path_).FindOrChoose(key, [&] {
      ++chosen_;
      return choice;
    });
  }

  std::string directory_, path_;
  std::atomic<int> chosen_{0};
};

TEST_F(ChoicesFileTest, AChoiceIsMadeOnce) {
  EXPECT_EQ(Ask("GPU, m 1", "a"), "a");
  EXPECT_EQ(Ask("GPU, m 1 n 2", "b"), "b");
  EXPECT_EQ(Ask("GPU, m 1", "c"), "a");
  EXPECT_EQ(Ask("GPU, m 1 n 2", "c"), "b");
  EXPECT_EQ(Ask("GPU, m", "d"), "d");
  EXPECT_EQ(chosen_, 3);
}

TEST_F(ChoicesFileTest, WhoAsksMeanwhileWaits) {
  std::vector<std::thread> workers;
  std::atomic<int> alike{0};
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&, i] {
      const auto first = Ask("key", absl::StrCat(i));
      if (first.has_value() && Ask("key", "other") == first) ++alike;
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(chosen_, 1);
  EXPECT_EQ(alike, 8);
}

TEST_F(ChoicesFileTest, NoChoiceIsNotKept) {
  EXPECT_EQ(Ask("key", ""), absl::nullopt);
  EXPECT_EQ(Ask("key", "a"), "a");
}

TEST_F(ChoicesFileTest, HasABound) {
  ASSERT_EQ(Ask("key", "a"), "a");
  std::ofstream file(path_, std::ios::app);
  for (int i = 1; i < ChoicesFile::kChoicesMax; ++i) {
    file << "m " << i << " = b\n";
  }
  file.close();
  EXPECT_EQ(Ask("other", "c"), absl::nullopt);
  EXPECT_EQ(Ask("key", "c"), "a");
  EXPECT_EQ(chosen_, 1);
}

TEST_F(ChoicesFileTest, WithoutAFolderNothingIsChosen) {
  std::ofstream(directory_) << "a file, and no folder";
  EXPECT_EQ(Ask("key", "a"), absl::nullopt);
  EXPECT_EQ(chosen_, 0);
}

TEST(ChoicesPath, IsBesideTheCalibration) {
  EXPECT_EQ(ChoicesPath("/data/gpu.textproto"), "/data/product-kernels.txt");
  EXPECT_EQ(std::filesystem::path(ChoicesPath("")).filename(),
            "product-kernels.txt");
}

}  // namespace
}  // namespace troupe
