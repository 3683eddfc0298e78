// tokenizer_test compares with the library; here is what the library does not
// do, and tables that no library writes.
#include "storage/dataset/sentencepiece/normalizer.h"

#include "gtest/gtest.h"
#include "storage/engine/little_endian.h"
#include "tests/storage/dataset/sentencepiece/library.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

std::string Normalized(const SentencePieceModel& model, const char* text,
                       Normalizer::Part part = Normalizer::Part::kBeginning) {
  const PieceTrie none;
  const auto normalizer = Normalizer::Create(model, none);
  EXPECT_TRUE(normalizer.ok()) << normalizer.status().ToString();
  return normalizer->Normalize(text, part);
}

TEST(Normalizer, SpacesAreSymbols) {
  SentencePieceModel model;
  EXPECT_EQ(Normalized(model, "  a  b "),
            "\xe2\x96\x81"
            "a\xe2\x96\x81"
            "b");
  EXPECT_EQ(Normalized(model, " a", Normalizer::Part::kLater),
            "\xe2\x96\x81"
            "a");
  EXPECT_EQ(Normalized(model, ""), "");
  model.remove_extra_whitespaces = false;
  model.escape_whitespaces = false;
  EXPECT_EQ(Normalized(model, " a  "), "  a  ");
  model.add_dummy_prefix = false;
  EXPECT_EQ(Normalized(model, " a  "), " a  ");
}

TEST(Normalizer, BytesThatAreNoCharacterStayWhereTheyHavePieces) {
  SentencePieceModel model;
  EXPECT_EQ(Normalized(model, "a\xff", Normalizer::Part::kLater),
            "a\xef\xbf\xbd");
  model.byte_fallback = true;
  EXPECT_EQ(Normalized(model, "a\xff", Normalizer::Part::kLater), "a\xff");
}

TEST(Normalizer, ADamagedTableIsRefusedAndNeverFollowed) {
  const PieceTrie none;
  auto model = ParseSentencePieceModel(SmallModel({{"model_type", "unigram"}}));
  ASSERT_TRUE(model.ok());
  const std::string whole = model->precompiled_charsmap;
  EXPECT_EQ(Normalized(*model, "\xef\xbc\xa1", Normalizer::Part::kLater), "A");
  for (const size_t bytes : {size_t{1}, size_t{4}, size_t{1000}}) {
    model->precompiled_charsmap = whole.substr(0, bytes);
    EXPECT_TRUE(Fails(Normalizer::Create(*model, none).status(),
                      absl::StatusCode::kInvalidArgument,
                      {"precompiled_charsmap is damaged"}));
  }
  // Units that lead anywhere.
  std::string wild(4 + 4 * 512 + 1, '\xff');
  StoreLittleEndian<uint32_t>(4 * 512, wild.data());
  wild.back() = '\0';
  model->precompiled_charsmap = wild;
  Normalized(*model, "\xff\xff any text \x01");
  // Every byte leads back to the first unit.
  std::string endless(4 + 4 * 256 + 1, '\0');
  StoreLittleEndian<uint32_t>(4 * 256, endless.data());
  for (uint32_t byte = 0; byte < 256; ++byte) {
    StoreLittleEndian<uint32_t>(byte << 10 | byte,
                                endless.data() + 4 + 4 * byte);
  }
  model->precompiled_charsmap = endless;
  EXPECT_TRUE(Fails(Normalizer::Create(*model, none).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"precompiled_charsmap is damaged"}));
}

TEST(Normalizer, SeamsAreWhereNothingReachesOver) {
  const PieceTrie none;
  auto model = ParseSentencePieceModel(SmallModel(
      {{"model_type", "unigram"}, {"normalization_rule_name", "nfkc"}}));
  ASSERT_TRUE(model.ok());
  const auto normalizer = Normalizer::Create(*model, none);
  ASSERT_TRUE(normalizer.ok());
  const std::string rest = " and more than the longest entry of any table has";
  const auto seam = [&](const std::string& before, const std::string& after) {
    return normalizer->SeamAt(before + after + rest, before.size());
  };
  ASSERT_TRUE(seam("one", "\n").has_value());
  EXPECT_EQ(seam("one", "\n")->before, "e");
  EXPECT_EQ(seam("one", "\n")->after, "\n");
  // U+2163 is IV.
  EXPECT_EQ(seam("\xe2\x85\xa3", " ")->before, "V");
  EXPECT_EQ(seam("\xe2\x85\xa3", " ")->after, kSpaceSymbol);
  // A letter and its accent.
  EXPECT_FALSE(seam("e", "\xcc\x81").has_value());
  // Of a run of spaces one stays.
  EXPECT_FALSE(seam("one ", " ").has_value());
  EXPECT_FALSE(seam("one\xe3\x80\x80", " ").has_value());
  EXPECT_FALSE(normalizer->SeamAt("one\n", 3).has_value()) << "too near";
  EXPECT_FALSE(seam("", "\n").has_value());
}

}  // namespace
}  // namespace troupe
