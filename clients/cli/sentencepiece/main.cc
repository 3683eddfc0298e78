// troupe-tokenizer VOCAB_SIZE MODEL_TYPE: text on stdin, a SentencePiece model
// on stdout. `troupe data prepare` runs it.
#include <charconv>
#include <cstring>
#include <iostream>
#include <iterator>

#include "clients/cli/sentencepiece/train_model.h"

int main(int argc, char** argv) {
  troupe::TrainModelOptions options;
  if (argc != 3 ||
      std::from_chars(argv[1], argv[1] + strlen(argv[1]), options.vocab_size)
              .ec != std::errc()) {
    std::cerr << "usage: troupe-tokenizer VOCAB_SIZE unigram|bpe < text\n";
    return 2;
  }
  options.model_type = argv[2];
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const troupe::TrainedModel model = troupe::TrainModel(text, options);
  if (!model.error.empty()) {
    std::cerr << model.error << "\n";
    return 1;
  }
  std::cout << model.bytes << std::flush;
  return std::cout.good() ? 0 : 1;
}
