#include "storage/corpus/choice_file.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/sample_reader.h"
#include "tests/storage/corpus/packed.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr char kTwoItems[] =
    "\xef\xbb\xbf{\"prompt\": \"ab\", \"choices\": [\" c\", \" de\"], "
    "\"answer\": 1}\r\n"
    "\n"
    "{\"prompt\": \"x\", \"choices\": [\" \u00e9\", \" y\", \" y\"], "
    "\"answer\": 0}";

class ChoiceFileTest : public testing::Test {
 protected:
  CorpusFile Written(const std::string& text) {
    path_ = dir_.File("questions.jsonl");
    WriteText(path_, text);
    return FindChoiceFile(path_).value();
  }
  absl::Status ReadError(const std::string& text) {
    return ReadChoices(Written(text), encoder_).status();
  }

  const TempDir dir_;
  const std::unique_ptr<Tokenizer> bytes_ = MakeBytesTokenizer();
  const ChoiceEncoder encoder_{*bytes_, {}};
  std::string path_;
};

TEST_F(ChoiceFileTest, KnowsItsItemsAndTheLongestRow) {
  const auto set = ReadChoices(Written(kTwoItems), encoder_);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->items.size(), 2u);
  EXPECT_EQ(set->items[0].line, 1);
  EXPECT_EQ(set->items[1].line, 3);
  EXPECT_EQ(set->items[0].answer, 1);
  EXPECT_EQ(set->rows, 5);
  const ChoiceItem::Choice& accented = set->items[1].choices[0];
  EXPECT_EQ(accented.characters, 2);
  EXPECT_EQ(accented.bytes, 3);
  EXPECT_EQ(accented.tokens, 3);
  EXPECT_EQ(set->longest.tokens, 5);
  EXPECT_EQ(set->longest.line, 1);
  EXPECT_EQ(set->longest.choice, 1);
  EXPECT_EQ(set->with_duplicates, 1);
  EXPECT_EQ(set->items[1].choices[1].same_as, ChoiceItem::Choice::kNone);
  EXPECT_EQ(set->items[1].choices[2].same_as, 1);
  EXPECT_FALSE(set->joins_words);
}

TEST_F(ChoiceFileTest, SeesChoicesThatJoinTheirPrompts) {
  const CorpusFile file = Written(
      "{\"prompt\": \"is\", \"choices\": [\"Rome\", \"Oslo\"], \"answer\": 0}");
  EXPECT_TRUE(ReadChoices(file, encoder_)->joins_words);
  EXPECT_FALSE(ReadChoices(file, ChoiceEncoder(*bytes_, {.delimiter = " "}))
                   ->joins_words);
  const CorpusFile chinese = Written(
      "{\"prompt\": \"\u4eba\", \"choices\": [\"\u751f\", \"\u81ea\"], "
      "\"answer\": 0}");
  EXPECT_FALSE(ReadChoices(chinese, encoder_)->joins_words);
}

TEST_F(ChoiceFileTest, SaysWhichLineIsWrong) {
  const std::string good =
      "{\"prompt\": \"p\", \"choices\": [\" a\", \" b\"], \"answer\": 0}\n";
  EXPECT_TRUE(Fails(ReadError(absl::StrCat(good, "\n", good, "{\"prompt\"}\n")),
                    absl::StatusCode::kInvalidArgument,
                    {"questions.jsonl:4: ", "JSON"}));
  EXPECT_TRUE(Fails(
      ReadError(absl::StrCat(good,
                             "{\"prompt\": \"\", \"choices\": [\"a\", \"b\"], "
                             "\"answer\": 0}")),
      absl::StatusCode::kInvalidArgument,
      {"questions.jsonl:2: its prompt is empty"}));
  for (const char* const empty : {"", "\n\n  \n"}) {
    EXPECT_TRUE(Fails(ReadError(empty), absl::StatusCode::kInvalidArgument,
                      {"questions.jsonl: has no question"}));
  }
  EXPECT_TRUE(Fails(ReadError(std::string(17 << 20, 'a')),
                    absl::StatusCode::kInvalidArgument,
                    {"questions.jsonl:1: the line has more than 16 MiB"}));
}

// A small packed file may hold more than memory and disk.
TEST_F(ChoiceFileTest, StopsWhereThereAreTooManyChoices) {
  const CorpusFile file = Written(absl::StrCat(kTwoItems, "\nnever read"));
  EXPECT_TRUE(Fails(ReadChoices(file, encoder_, nullptr, 4).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"questions.jsonl:3: the questions up to here have 5 "
                     "choices, and one evaluation measures at most 4"}));
  EXPECT_TRUE(ReadChoices(Written(kTwoItems), encoder_, nullptr, 5).ok());
}

TEST_F(ChoiceFileTest, MustBeReadTwice) {
  EXPECT_TRUE(Fails(FindChoiceFile("-").status(),
                    absl::StatusCode::kInvalidArgument, {"read twice"}));
  EXPECT_TRUE(Fails(FindChoiceFile(dir_.path()).status(),
                    absl::StatusCode::kInvalidArgument, {dir_.path()}));
  EXPECT_TRUE(Fails(FindChoiceFile(dir_.File("none.jsonl")).status(),
                    absl::StatusCode::kNotFound, {"none.jsonl"}));
}

TEST_F(ChoiceFileTest, StopsWhenItsUserLeaves) {
  EXPECT_EQ(
      ReadChoices(Written(kTwoItems), encoder_, [](uint64_t) { return false; })
          .status()
          .code(),
      absl::StatusCode::kCancelled);
}

// As a job reads them: a window for each row, of which the choice's tokens are
// the only targets.
void ExpectWindows(const std::string& path, bool isolates) {
  constexpr uint64_t kLength = 6;
  const auto reader = SampleReader::Create({.sources = {},
                                            .validation = path,
                                            .sequence_length = kLength,
                                            .isolate_documents = isolates});
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ(reader->validation_windows(), 5u);
  const std::vector<std::string> rows = {"ab c", "ab de", "x \u00e9", "x y",
                                         "x y"};
  const std::vector<size_t> counted = {2, 2, 1, 1, 1};  // from this token on
  for (size_t w = 0; w < rows.size(); ++w) {
    std::vector<int32_t> tokens(kLength), targets(kLength), documents(kLength);
    SampleOut out = {.tokens = absl::MakeSpan(tokens),
                     .targets = absl::MakeSpan(targets)};
    if (isolates) out.documents = absl::MakeSpan(documents);
    ASSERT_TRUE(reader->ReadValidation(w, out).ok());
    for (size_t i = 0; i < kLength; ++i) {
      const bool within = i + 1 < rows[w].size();
      const int32_t next = within ? static_cast<uint8_t>(rows[w][i + 1]) : 0;
      EXPECT_EQ(targets[i], within && i + 1 >= counted[w] ? next : -1)
          << "row " << w << " token " << i;
      EXPECT_EQ(tokens[i],
                i < rows[w].size() ? static_cast<uint8_t>(rows[w][i]) : 0);
    }
  }
}

TEST_F(ChoiceFileTest, BecomesAWindowForEachRow) {
  const CorpusFile file = Written(kTwoItems);
  const std::string path = dir_.File("rows.tokens");
  ASSERT_EQ(
      WriteChoiceRows(file, encoder_, {.path = path, .sequence_length = 6}),
      absl::OkStatus());
  ExpectWindows(path, false);
  ExpectWindows(path, true);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial.lock"));
}

TEST_F(ChoiceFileTest, MayBePacked) {
  const std::string plain = dir_.File("plain.tokens");
  const std::string packed = dir_.File("packed.tokens");
  ASSERT_TRUE(WriteChoiceRows(Written(kTwoItems), encoder_,
                              {.path = plain, .sequence_length = 7})
                  .ok());
  WriteText(dir_.File("questions.jsonl.gz"), Gzipped(kTwoItems));
  const auto file = FindChoiceFile(dir_.File("questions.jsonl.gz"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(
      WriteChoiceRows(*file, encoder_, {.path = packed, .sequence_length = 7})
          .ok());
  EXPECT_EQ(ReadText(packed), ReadText(plain));
}

TEST_F(ChoiceFileTest, MustNotChangeInBetween) {
  const CorpusFile file = Written(kTwoItems);
  WriteText(path_, absl::StrCat(kTwoItems, "\n", kTwoItems));
  const std::string path = dir_.File("rows.tokens");
  EXPECT_EQ(
      WriteChoiceRows(file, encoder_, {.path = path, .sequence_length = 6})
          .code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace troupe
