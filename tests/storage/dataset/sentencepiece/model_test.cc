#include "storage/dataset/sentencepiece/model.h"

#include "gtest/gtest.h"
#include "tests/storage/dataset/sentencepiece/library.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Model, ReadsWhatTheLibraryWrites) {
  const auto model = ParseSentencePieceModel(SmallModel(LikeLlama("bpe")));
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->kind, SegmentationKind::kBpe);
  EXPECT_EQ(model->pieces.size(), 420u);
  EXPECT_EQ(model->unknown_id, 0);
  EXPECT_EQ(model->eos_piece, "</s>");
  EXPECT_EQ(model->pieces[2].text, "</s>");
  EXPECT_EQ(model->pieces[2].type, PieceType::kControl);
  EXPECT_TRUE(model->byte_fallback);
  EXPECT_TRUE(model->add_dummy_prefix);
  EXPECT_FALSE(model->remove_extra_whitespaces);
  EXPECT_TRUE(model->precompiled_charsmap.empty());
  const std::vector<int32_t> bytes = BytePieces(*model);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(bytes[byte], 3 + byte);

  const auto nfkc =
      ParseSentencePieceModel(SmallModel({{"model_type", "unigram"}}));
  EXPECT_EQ(nfkc->kind, SegmentationKind::kUnigram);
  EXPECT_TRUE(nfkc->remove_extra_whitespaces);
  EXPECT_GT(nfkc->precompiled_charsmap.size(), 100'000u);
}

TEST(Model, DamageIsRefusedAndNeverFollowed) {
  const std::string whole = SmallModel(LikeLlama("unigram"));
  for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    // A cut between two fields may leave a model that is whole but shorter.
    const auto model = ParseSentencePieceModel(whole.substr(0, bytes));
    if (model.ok()) {
      EXPECT_LE(model->pieces.size(), 420u);
    }
  }
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x55);
    ParseSentencePieceModel(flipped).status().IgnoreError();
  }
  for (const char* bytes : {"", "no model", "\x0a\xff\xff\xff\xff\x0f"}) {
    EXPECT_TRUE(Fails(ParseSentencePieceModel(bytes).status(), kInvalid,
                      {"SentencePiece model"}));
  }
}

TEST(Model, KindsThatAreNotReadAreNamed) {
  EXPECT_TRUE(Fails(ParseSentencePieceModel(SmallModel({{"model_type", "char"},
                                                        {"vocab_size", "30"}}))
                        .status(),
                    kInvalid, {"type 4", "unigram (1) and bpe (2)"}));
  EXPECT_TRUE(Fails(ParseSentencePieceModel(
                        SmallModel({{"model_type", "unigram"},
                                    {"treat_whitespace_as_suffix", "true"}}))
                        .status(),
                    kInvalid, {"treat_whitespace_as_suffix"}));
}

}  // namespace
}  // namespace troupe
