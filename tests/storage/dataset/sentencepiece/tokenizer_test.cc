// Compares with the SentencePiece library, which this test links.
#include "storage/dataset/sentencepiece/tokenizer.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"
#include "tests/storage/dataset/sentencepiece/library.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

std::vector<int32_t> Encode(const Tokenizer& tokenizer,
                            const std::string& text) {
  std::vector<int32_t> ids;
  EXPECT_TRUE(tokenizer.Encode(text, ids).ok());
  return ids;
}

// Words of the training text and of none, in any order, with odd spaces.
std::vector<std::string> Texts() {
  std::vector<std::string> texts = {"",
                                    " ",
                                    "   ",
                                    "a",
                                    "\n",
                                    "x\ny\n\n",
                                    "  The quick fox ",
                                    "<s> </s> <0x0A> <unk>",
                                    "\t\xc2\xa0tabs",
                                    "\xef\xbc\xa1\xef\xbc\xb2",
                                    "\xf0\x9f\xa6\x8a!\xf0\x9f\xa6\x8a\xf0\x9f",
                                    "e\xcc\x81\xe2\x84\xab  \xe2\x85\xab"};
  texts.back() += " fox";
  texts[10].resize(9);  // whole characters only
  std::mt19937 random(7);
  const std::vector<std::string> lines = TrainingLines();
  const std::string odd[] = {"\n",  "  ",   "zq",           "\xc3\x9f",
                             "999", "KEEP", "\xe6\x9d\xb1", "\xf0\x9f\xa6\x8a"};
  for (int i = 0; i < 300; ++i) {
    std::string text;
    while (random() % 6 != 0) {
      const std::string& line = lines[random() % lines.size()];
      size_t begin = random() % line.size();
      size_t end = begin + random() % (line.size() - begin);
      const auto inside = [&](size_t at) { return (line[at] & 0xC0) == 0x80; };
      while (inside(begin)) --begin;
      while (end > begin && inside(end)) --end;
      text += line.substr(begin, end - begin) + odd[random() % std::size(odd)];
    }
    texts.push_back(text);
  }
  return texts;
}

class SentencePieceTokenizerTest
    : public testing::TestWithParam<TrainingArguments> {};

TEST_P(SentencePieceTokenizerTest, GivesTheIdsAndTextsOfTheLibrary) {
  const std::string model = SmallModel(GetParam());
  const SentencePieceLibrary library(model);
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ((*tokenizer)->vocab_size(), library.vocab_size());
  EXPECT_EQ((*tokenizer)->eos_id(), library.eos_id());
  for (const std::string& text : Texts()) {
    const std::vector<int32_t> ids = Encode(**tokenizer, text);
    ASSERT_EQ(ids, library.Encode(text)) << "\"" << text << "\"";
    EXPECT_EQ(*(*tokenizer)->Decode(ids), library.Decode(ids))
        << "\"" << text << "\"";
  }
}

// A text that comes in chunks of this size, cut where it may be.
std::vector<int32_t> EncodeInParts(const Tokenizer& tokenizer,
                                   const std::string& whole, size_t chunk,
                                   int& cuts) {
  std::vector<int32_t> ids;
  std::string waiting;
  size_t searched = 0;
  bool begun = false;
  for (size_t at = 0; at < whole.size(); at += chunk) {
    waiting += whole.substr(at, chunk);
    const bool last = at + chunk >= whole.size();
    const size_t cut =
        last ? waiting.size() : tokenizer.CutPoint(waiting, searched);
    if (cut == 0) continue;
    const std::string part = waiting.substr(0, cut);
    EXPECT_TRUE(
        (begun ? tokenizer.EncodeLater(part, ids) : tokenizer.Encode(part, ids))
            .ok());
    cuts += !last;
    begun = true;
    waiting.erase(0, cut);
    searched = 0;
  }
  return ids;
}

TEST_P(SentencePieceTokenizerTest, PartsGiveTheIdsOfTheWhole) {
  const std::string model = SmallModel(GetParam());
  const SentencePieceLibrary library(model);
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  // What a table of characters makes a space, nothing, or one character of
  // several, on both sides of where lines and words end.
  const std::string seams[] = {"\n",         "\r\n",
                               " \n",        " ",
                               "  \n\n ",    "\xe3\x80\x80 ",
                               "\xc2\xad\n", "\n\xcc\x81",
                               " \xcc\x88 ", "zq\n\xf0\x9f\xa6\x8a"};
  std::mt19937 random(11);
  std::string whole;
  for (const std::string& text : Texts()) {
    whole += text + seams[random() % std::size(seams)];
  }
  const std::vector<int32_t> want = library.Encode(whole);
  for (const size_t chunk : {1, 3, 7, 50, 1000}) {
    int cuts = 0;
    EXPECT_EQ(EncodeInParts(**tokenizer, whole, chunk, cuts), want) << chunk;
    EXPECT_GT(cuts, 3);
  }
}

TrainingArguments With(TrainingArguments base, TrainingArguments more) {
  more.insert(base.begin(), base.end());
  return more;
}

INSTANTIATE_TEST_SUITE_P(
    Models, SentencePieceTokenizerTest,
    testing::Values(
        LikeLlama("unigram"), LikeLlama("bpe"),
        // As T5's and ALBERT's: NFKC, spaces squeezed, unknown characters.
        TrainingArguments{{"model_type", "unigram"}},
        TrainingArguments{{"model_type", "bpe"},
                          {"vocab_size", "290"},
                          {"normalization_rule_name", "nfkc_cf"}},
        With(LikeLlama("bpe"), {{"user_defined_symbols", "KEEP,\xe6\x9d\xb1"}}),
        With(LikeLlama("unigram"), {{"user_defined_symbols", "KEEP,fox"}}),
        With(LikeLlama("bpe"), {{"add_dummy_prefix", "false"}}),
        // CR and LF are both unknown: one token, unless they are cut apart.
        TrainingArguments{{"model_type", "unigram"},
                          {"add_dummy_prefix", "false"},
                          {"normalization_rule_name", "nfkc"}},
        // Pieces of several words.
        With(LikeLlama("bpe"), {{"split_by_whitespace", "false"}}),
        With(LikeLlama("unigram"), {{"user_defined_symbols", "\n\n,s\n"}}),
        With(LikeLlama("unigram"), {{"add_dummy_prefix", "false"}})));

// Pieces may reach over thousands of line ends in turn.
TEST(SentencePieceTokenizer, AFarPlaceToCutIsFound) {
  const auto tokenizer = MakeSentencePieceTokenizer(SmallModel(
      With(LikeLlama("unigram"), {{"user_defined_symbols", "s\n"}})));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::string uncut = "fox";
  for (int i = 0; i < 5000; ++i) uncut += "s\n";
  size_t searched = 0;
  EXPECT_EQ((*tokenizer)->CutPoint("fox\n" + uncut, searched), 3);
  EXPECT_EQ(searched, 0);
  EXPECT_EQ((*tokenizer)->CutPoint(uncut, searched), 0);
  // Of what was searched only the end is searched again.
  EXPECT_GT(searched, uncut.size() - 100);
  EXPECT_LT(searched, uncut.size());
  const size_t before = searched;
  EXPECT_EQ((*tokenizer)->CutPoint(uncut + "fox\nfox fox", searched),
            uncut.size() + 3);
  EXPECT_EQ(searched, before);
}

class AnyText : public testing::TestWithParam<const char*> {};

TEST_P(AnyText, ComesBackAsItWas) {
  const auto tokenizer =
      MakeSentencePieceTokenizer(SmallModel(LikeLlama(GetParam())));
  ASSERT_TRUE(tokenizer.ok());
  std::vector<std::string> texts = Texts();
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {  // any bytes
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    texts.push_back(bytes);
  }
  for (const std::string& text : texts) {
    EXPECT_EQ(*(*tokenizer)->Decode(Encode(**tokenizer, text)), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyText, testing::Values("unigram", "bpe"));

TEST(SentencePieceTokenizer, IsNamedAfterItsModel) {
  const std::string model = SmallModel(LikeLlama("bpe"));
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->name().substr(0, 14), "sentencepiece:");
  EXPECT_EQ((*tokenizer)->name().size(), 22u);
  const auto other = MakeSentencePieceTokenizer(
      SmallModel(With(LikeLlama("bpe"), {{"vocab_size", "400"}})));
  EXPECT_NE((*other)->name(), (*tokenizer)->name());
  EXPECT_TRUE(absl::IsInvalidArgument((*tokenizer)->TokenText(-1).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument((*tokenizer)->Decode({1, 2, 420}).status()));
  EXPECT_EQ(*(*tokenizer)->TokenText(*(*tokenizer)->eos_id()), "");
  EXPECT_FALSE(MakeSentencePieceTokenizer("").ok());
}

}  // namespace
}  // namespace troupe
