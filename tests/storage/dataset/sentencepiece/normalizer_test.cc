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
}

}  // namespace
}  // namespace troupe
