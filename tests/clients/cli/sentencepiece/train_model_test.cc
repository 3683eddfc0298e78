#include "clients/cli/sentencepiece/train_model.h"

#include "gtest/gtest.h"
#include "tests/storage/dataset/sentencepiece/library.h"

namespace troupe {
namespace {

std::string Text() {
  std::string text;
  for (const std::string& line : TrainingLines()) text += line + "\n";
  return text;
}

TEST(TrainModel, EveryByteHasAPieceAndTextStaysAsItIs) {
  for (const char* type : {"unigram", "bpe"}) {
    const TrainedModel model =
        TrainModel(Text(), {.vocab_size = 320, .model_type = type});
    ASSERT_EQ(model.error, "");
    const SentencePieceLibrary library(model.bytes);
    EXPECT_EQ(library.vocab_size(), 320u);
    EXPECT_EQ(library.eos_id(), 2);
    for (const char* text : {"The  quick\nfox ", "\xf0\x9f\xa6\x8a\t1234"}) {
      EXPECT_EQ(library.Decode(library.Encode(text)), text);
    }
  }
}

TEST(TrainModel, IsAFunctionOfItsText) {
  const TrainModelOptions options = {.vocab_size = 320};
  const std::string once = TrainModel(Text(), options).bytes;
  EXPECT_EQ(TrainModel(Text(), options).bytes, once);
  EXPECT_NE(TrainModel(Text() + "more text\n", options).bytes, once);
}

TEST(TrainModel, LongLinesAreTrainedOnToo) {
  std::string line;
  while (line.size() < 10'000) line += "zebras everywhere, zebras ";
  const TrainedModel model =
      TrainModel(line, {.vocab_size = 290, .model_type = "bpe"});
  ASSERT_EQ(model.error, "");
  const SentencePieceLibrary library(model.bytes);
  EXPECT_LT(library.Encode("zebras").size(), 4u);
}

TEST(TrainModel, SaysWhatIsTooMuch) {
  for (const char* text : {"", "a short text"}) {
    const TrainedModel model = TrainModel(text, {.vocab_size = 5000});
    EXPECT_NE(model.error.find("--vocab-size"), std::string::npos)
        << model.error;
  }
}

}  // namespace
}  // namespace troupe
