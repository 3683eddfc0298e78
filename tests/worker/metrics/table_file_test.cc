#include "worker/metrics/table_file.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"
#include "tests/worker/metrics/sample_row.h"
#include "worker/metrics/appended_file.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Attempt {
  int64_t first = 1;
  int64_t last = 0;
  bool ran_before = false;
  int number = 1;
};

// The text of a validation, whatever is in it, stays a string on one line.
TEST(TableFormat, AJsonLineHasTheSample) {
  MetricsRow row = SampleRow(3);
  row.record.mutable_sample()->set_prompt("Once");
  row.record.mutable_sample()->set_text(" \"upon\"\n\\a\x01 t\xC3\xAEme");
  const std::string line = JsonLinesFormat().line(row);
  EXPECT_THAT(
      line, testing::EndsWith(",\"sample\":\" \\\"upon\\\"\\u000a\\\\a\\u0001 "
                              "t\xC3\xAEme\"}\n"));
  EXPECT_EQ(JsonLinesFormat().step(line.substr(0, line.size() - 1)), 3);
  row.record.mutable_sample()->set_error("no memory");
  EXPECT_THAT(JsonLinesFormat().line(row),
              HasSubstr(",\"sample_error\":\"no memory\"}"));
  EXPECT_EQ(CsvFormat().line(row), CsvFormat().line(SampleRow(3)));
}

// Each test does the same with both formats.
class TableFileTest : public testing::TestWithParam<const TableFormat*> {
 protected:
  std::unique_ptr<TableFile> NewFile(const MetricsStart& start) const {
    return std::make_unique<TableFile>(directory(), *GetParam(), start);
  }
  std::string directory() const { return dir_.path() + "/runs/one"; }
  std::string path() const {
    return absl::StrCat(directory(), "/", GetParam()->file_name);
  }
  // Appends the attempt's rows; what its start says.
  std::vector<std::string> RunAttempt(const Attempt& attempt) const {
    const auto file = NewFile(
        {.first_step = attempt.first, .ran_before = attempt.ran_before});
    const auto notices = file->Start();
    EXPECT_TRUE(notices.ok()) << notices.status();
    for (int64_t step = attempt.first; step <= attempt.last; ++step) {
      EXPECT_TRUE(file->Append(SampleRow(step, attempt.number)).ok());
    }
    EXPECT_TRUE(file->Sync().ok());
    return notices.value();
  }
  // What the file holds where these attempts ran these steps.
  std::string Text(const std::vector<Attempt>& attempts) const {
    std::string text = GetParam()->header();
    for (const Attempt& attempt : attempts) {
      for (int64_t step = attempt.first; step <= attempt.last; ++step) {
        text += GetParam()->line(SampleRow(step, attempt.number));
      }
    }
    return text;
  }

  const TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Formats, TableFileTest,
                         testing::Values(&JsonLinesFormat(), &CsvFormat()),
                         [](const auto& info) {
                           return info.param == &CsvFormat() ? "Csv"
                                                             : "JsonLines";
                         });

TEST_P(TableFileTest, HasARowForEachStep) {
  EXPECT_THAT(RunAttempt({.last = 5}), IsEmpty());
  EXPECT_EQ(ReadText(path()), Text({{.last = 5}}));
}

// A worker that is killed while it writes the rows anew leaves a part of them
// under another name: on a small disk that would be room which nobody frees.
TEST_P(TableFileTest, RemovesWhatKilledWorkersLeftBesideIt) {
  RunAttempt({.last = 5});
  const std::vector<std::string> left = {".tmp-1", ".tmp-4194304"};
  const std::vector<std::string> others = {".tmp-x", ".tmp-", ".1", "x.tmp-1"};
  for (const std::string& end : left) std::ofstream(path() + end) << "rows";
  for (const std::string& end : others) std::ofstream(path() + end) << "rows";
  RunAttempt({.first = 4, .last = 5, .ran_before = true, .number = 2});
  for (const std::string& end : left) {
    EXPECT_FALSE(std::filesystem::exists(path() + end)) << end;
  }
  for (const std::string& end : others) {
    EXPECT_TRUE(std::filesystem::exists(path() + end)) << end;
  }
}

TEST_P(TableFileTest, AnAttemptGoesOnBehindTheStepsThatStand) {
  RunAttempt({.last = 9});
  for (const int64_t first : {10, 7, 7, 2, 1}) {
    const Attempt next = {
        .first = first, .last = 9, .ran_before = true, .number = 2};
    EXPECT_THAT(RunAttempt(next), IsEmpty());
    EXPECT_EQ(
        ReadText(path()),
        Text({{.last = first - 1}, {.first = first, .last = 9, .number = 2}}))
        << first;
    RunAttempt({.last = 9, .ran_before = true});
  }
}

// Its worker was killed in the middle of a row.
TEST_P(TableFileTest, ARowWithoutAnEndIsNone) {
  RunAttempt({.last = 4});
  const std::string whole = ReadText(path());
  const std::string next = GetParam()->line(SampleRow(5));
  for (size_t bytes = 1; bytes < next.size(); bytes += 7) {
    std::ofstream(path(), std::ios::binary) << whole << next.substr(0, bytes);
    EXPECT_THAT(RunAttempt({.first = 5, .last = 6, .ran_before = true}),
                IsEmpty());
    EXPECT_EQ(ReadText(path()), Text({{.last = 6}})) << bytes;
  }
}

TEST_P(TableFileTest, StepsThatNobodyWroteAreNamed) {
  RunAttempt({.last = 4});
  EXPECT_THAT(RunAttempt({.first = 8, .last = 9, .ran_before = true}),
              ElementsAre(HasSubstr(" has no rows of steps 5 to 7: ")));
  EXPECT_EQ(ReadText(path()), Text({{.last = 4}, {.first = 8, .last = 9}}));
}

// Rank 0 ran on another machine before.
TEST_P(TableFileTest, AFileThatIsElsewhereIsNamed) {
  EXPECT_THAT(RunAttempt({.first = 8, .last = 9, .ran_before = true}),
              ElementsAre(HasSubstr(" has no rows of steps 1 to 7: ")));
  EXPECT_EQ(ReadText(path()), Text({{.first = 8, .last = 9}}));
}

// It resumes a checkpoint that lies elsewhere.
TEST_P(TableFileTest, AJobThatBeginsLateInAFolderOfItsOwnMissesNothing) {
  EXPECT_THAT(RunAttempt({.first = 8, .last = 9}), IsEmpty());
  EXPECT_EQ(ReadText(path()), Text({{.first = 8, .last = 9}}));
}

TEST_P(TableFileTest, AJobThatBeginsAnewKeepsWhatAnEarlierRunLeft) {
  RunAttempt({.last = 4});
  EXPECT_THAT(RunAttempt({.last = 2, .number = 2}),
              ElementsAre(HasSubstr(absl::StrCat("kept as ", path(), ".1"))));
  EXPECT_THAT(RunAttempt({.last = 3, .number = 3}),
              ElementsAre(HasSubstr(absl::StrCat("kept as ", path(), ".2"))));
  EXPECT_EQ(ReadText(path() + ".1"), Text({{.last = 4}}));
  EXPECT_EQ(ReadText(path() + ".2"), Text({{.last = 2, .number = 2}}));
  EXPECT_EQ(ReadText(path()), Text({{.last = 3, .number = 3}}));
}

TEST_P(TableFileTest, LinesOfSomebodyElseAreKept) {
  RunAttempt({.last = 4});
  const std::string whole = ReadText(path());
  const std::string again = GetParam()->line(SampleRow(4));
  for (const std::string& other :
       {std::string("my notes\n"), again, std::string(100'000, 'x')}) {
    std::ofstream(path(), std::ios::binary) << whole << other;
    EXPECT_THAT(RunAttempt({.first = 5, .last = 6, .ran_before = true}),
                ElementsAre(HasSubstr(".1, ")));
    EXPECT_EQ(ReadText(path() + ".1"), whole + other);
    EXPECT_EQ(ReadText(path()), Text({{.last = 6}}));
    std::filesystem::remove(path() + ".1");
  }
}

// More than a piece of the file, and rows on the seams.
TEST_P(TableFileTest, LongFilesAreCutLikeShortOnes) {
  RunAttempt({.last = 9000});
  EXPECT_GT(std::filesystem::file_size(path()), 512u << 10);
  EXPECT_THAT(RunAttempt({.first = 5501, .last = 5502, .ran_before = true}),
              IsEmpty());
  EXPECT_EQ(ReadText(path()), Text({{.last = 5502}}));
}

// A stopped process that nobody waited for.
TEST_P(TableFileTest, AnEarlierAttemptThatRunsOnDisturbsNobody) {
  const std::string name = "job a (job-1-77-";
  const auto old = NewFile({.holder = name + "1), pid 3"});
  ASSERT_TRUE(old->Start().ok());
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(old->Append(SampleRow(step)).ok());
  }
  const auto next = NewFile({.first_step = 3,
                             .ran_before = true,
                             .holder = name + "2), pid 4",
                             .supersedes = name});
  ASSERT_TRUE(next->Start().ok());
  ASSERT_TRUE(old->Append(SampleRow(4)).ok());
  ASSERT_TRUE(next->Append(SampleRow(3, 2)).ok());
  EXPECT_EQ(ReadText(path()),
            Text({{.last = 2}, {.first = 3, .last = 3, .number = 2}}));
}

TEST_P(TableFileTest, AnotherJobIsRefused) {
  const auto one = NewFile({.holder = "job a (job-1-77-1), pid 3"});
  ASSERT_TRUE(one->Start().ok());
  ASSERT_TRUE(one->Append(SampleRow(1)).ok());
  const absl::Status refused =
      NewFile({.holder = "job b (job-2-78-1), pid 4"})->Start().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("job a (job-1-77-1), pid 3 writes ",
                                     GetParam()->file_name, " there")));
  ASSERT_TRUE(one->Append(SampleRow(2)).ok());
  EXPECT_EQ(ReadText(path()), Text({{.last = 2}}));
}

TEST_P(TableFileTest, ADeviceInItsPlaceIsRefused) {
  std::filesystem::create_directories(directory());
  std::filesystem::create_symlink("/dev/full", path());
  const absl::Status refused = NewFile({})->Start().status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is a device"));
}

TEST(AppendedFile, SaysThatADiskIsFull) {
  auto file = AppendedFile::Open("/dev/full", 0);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status full = file->Append("a row\n");
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(file->bytes(), 0u);
}

// The kernel writes up to the limit, as a full disk takes a part of a row.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_;
  sighandler_t signal_;
};

TEST(AppendedFile, WhatWasWrittenInPartIsTakenBack) {
  const TempDir dir;
  const std::string path = dir.path() + "/rows";
  auto file = AppendedFile::Open(path, 0);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append("the first row\n").ok());
  {
    const FileSizeLimit limit(20);
    EXPECT_FALSE(file->Append("the second row\n").ok());
    EXPECT_EQ(ReadText(path), "the first row\n");
  }
  ASSERT_TRUE(file->Append("the second row\n").ok());
  EXPECT_EQ(ReadText(path), "the first row\nthe second row\n");
}

}  // namespace
}  // namespace troupe
